"""A second reading of sample logs that shares no code with them."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pycountry
from crawleruseragents import is_crawler

from include.hours import Hour
from samples.sample_spec import SampleSpec
from tests.support.log_files import content_of

SMALL = SampleSpec(start=Hour.parse("2026-03-01T10"), hours=2, clicks_per_hour=1500)
# Over midnight, with all of the lateness, and with more files than some hours have lines to fill evenly.
LONG = SampleSpec(start=Hour.parse("2026-02-28T19"), hours=9, clicks_per_hour=400, files_per_hour=4, seed=3)
COUNTRY_CODES = {country.alpha_2 for country in pycountry.countries} | {"XK"}
TRACKING = re.compile(r"utm_[^=]*|gclid|fbclid|msclkid|dclid|yclid|igshid|mc_cid|mc_eid", re.IGNORECASE)


@dataclass
class Reading:
    """What a plain reading of the files finds, in the truth's words; ``events`` are the accepted records."""

    log_hours: dict[str, dict[str, Any]] = field(default_factory=dict)
    clicks_by_url: dict[str, dict[str, dict[str, int]]] = field(default_factory=dict)
    clicks_by_country: dict[str, dict[str, dict[str, int]]] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    raw: dict[str, list[bytes]] = field(default_factory=lambda: defaultdict(list))


def lines_of(file: Path) -> list[bytes]:
    data = content_of(file)
    assert data == b"" or data.endswith(b"\n")
    return data.split(b"\n")[:-1]


def data_files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if file.name[0] not in "._")


def hours_in(landing: Path, source: str = "web") -> Iterator[tuple[str, Path]]:
    for folder in sorted((landing / source).glob("log_date=*/log_hour=*")):
        yield (
            f"{folder.parent.name.removeprefix('log_date=')}T{folder.name.removeprefix('log_hour=')}",
            folder,
        )


def reason_of(line: bytes) -> tuple[str | None, dict[str, Any]]:
    if len(line) > 65536:
        return "line_too_long", {}
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        return "not_utf8", {}
    if not text.strip(" "):
        return "blank", {}
    try:
        record = json.loads(text)
    except ValueError:
        return "not_json", {}
    if not isinstance(record, dict):
        return "not_json", {}
    if not record.get("event_id"):
        return "missing_event_id", {}
    if not record.get("ts"):
        return "missing_time", {}
    try:
        clicked_at = datetime.fromisoformat(record["ts"]).astimezone(UTC)
    except ValueError:
        return "bad_time", {}
    if not 2020 < clicked_at.year < 2030:
        return "time_out_of_range", {}
    if not record.get("url"):
        return "missing_url", {}
    if not re.match(r"https?://[^/?#]", record["url"], re.IGNORECASE):
        return "bad_url", {}
    return None, record | {"clicked_at": clicked_at}


def url_key(url: str) -> str:
    parts = urlsplit(url)
    host = parts.netloc.lower()
    name, _, port = host.partition(":")
    if (parts.scheme, port) in {("http", "80"), ("https", "443")}:
        host = name
    kept = [pair for pair in parts.query.split("&") if not TRACKING.fullmatch(pair.split("=", 1)[0])]
    page = f"{parts.scheme}://{host}{parts.path or '/'}" + ("?" + "&".join(kept) if any(kept) else "")
    return re.sub(r"[^!-~]", lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), page)


def country_key(record: dict[str, Any]) -> str:
    code = ((record.get("geo") or {}).get("country") or "").upper()
    return code if code in COUNTRY_CODES else "unknown"


def read_sample(landing: Path, source: str = "web") -> Reading:
    reading = Reading()
    seen: set[str] = set()
    by: dict[str, dict[str, dict[str, list[dict[str, Any]]]]] = {
        "url": defaultdict(lambda: defaultdict(list)), "country": defaultdict(lambda: defaultdict(list))
    }  # fmt: skip
    is_bot = cache(is_crawler)
    for log_hour, folder in hours_in(landing, source):
        count: Counter[str] = Counter()
        reasons: Counter[str] = Counter()
        for file in data_files(folder):
            latest = datetime.min.replace(tzinfo=UTC)
            for line in lines_of(file):
                count["lines"] += 1
                reason, record = reason_of(line)
                if reason:
                    reasons[reason] += 1
                    reading.raw[reason].append(line)
                    continue
                clicked_at = record["clicked_at"]
                if record["event_id"] in seen:
                    count["duplicates"] += 1
                else:
                    seen.add(record["event_id"])
                    count["accepted"] += 1
                    click_hour = f"{clicked_at:%Y-%m-%dT%H}"
                    count["late"] += click_hour < log_hour
                    count["out_of_order"] += clicked_at < latest
                    record["is_bot"] = is_bot(record["user_agent"])
                    record["before_log_hour"] = datetime.fromisoformat(f"{log_hour}:00Z") - clicked_at
                    reading.events.append(record)
                    by["url"][click_hour][url_key(record["url"])].append(record)
                    by["country"][click_hour][country_key(record)].append(record)
                latest = max(latest, clicked_at)
        names = ("lines", "accepted", "duplicates", "late", "out_of_order")
        reading.log_hours[log_hour] = {name: count[name] for name in names} | {
            "quarantined": dict(reasons), "files": len(data_files(folder))
        }  # fmt: skip
    for key, counts in (("url", reading.clicks_by_url), ("country", reading.clicks_by_country)):
        for click_hour, of_hour in by[key].items():
            counts[click_hour] = {
                value: {
                    "clicks": len(clicks),
                    "bots": sum(click["is_bot"] for click in clicks),
                    "visitors": len({click["visitor_id"] for click in clicks if not click["is_bot"]}),
                }
                for value, clicks in of_hour.items()
            }
    return reading


def digests(folder: Path) -> dict[str, str]:
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
