"""The sample logs and their truth, held to a second reading of the files that shares no code with them."""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pycountry
import pytest
from backports import zstd
from crawleruseragents import is_crawler
from hypothesis import given
from hypothesis import strategies as st

from include.errors import UsageError
from include.job_arguments import exit_with
from include.log_hours import Hour
from include.tables import QUARANTINE_REASONS
from samples import catalog, sample_logs
from samples.__main__ import main
from samples.malformed_lines import DAMAGES
from samples.normal_url import normalize_url
from samples.sample_logs import make_sample
from samples.sample_spec import SampleSpec

REPOSITORY = Path(__file__).resolve().parents[2]
SMALL = SampleSpec(start=Hour.parse("2026-03-01T10"), hours=2, clicks_per_hour=1500)
# Over midnight, with all of the lateness, and with more files than some hours have lines to fill evenly.
LONG = SampleSpec(start=Hour.parse("2026-02-28T19"), hours=9, clicks_per_hour=400, files_per_hour=4, seed=3)
BRIEF = SampleSpec(start=Hour.parse("2026-03-01T00"), hours=12, clicks_per_hour=2000)
# A canary first, then everybody.
BROKEN = replace(LONG, clicks_per_hour=3000, broken={LONG.start.plus(2): 0.1, LONG.start.plus(4): 0.7})
REASONS = {
    "not_json", "not_utf8", "blank", "missing_event_id", "missing_time", "bad_time", "time_out_of_range",
    "missing_url", "bad_url", "line_too_long",
}  # fmt: skip
COUNTRY_CODES = {country.alpha_2 for country in pycountry.countries}
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
    data = file.read_bytes()
    if file.suffix == ".gz":
        data = gzip.decompress(data)
    elif file.suffix == ".zst":
        data = zstd.decompress(data)
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
    return re.sub(r"[^!-~]", lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), page)


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


@pytest.fixture(scope="module")
def brief(tmp_path_factory: pytest.TempPathFactory) -> Reading:
    landing = tmp_path_factory.mktemp("brief") / "landing"
    make_sample(BRIEF, landing)
    return read_sample(landing)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(SMALL, id="two hours"),
        pytest.param(replace(SMALL, hours=1, files_per_hour=1, compression="zstd"), id="one hour, one file"),
        pytest.param(LONG, id="nine hours over midnight"),
        pytest.param(replace(LONG, is_clean=True, compression="gzip"), id="clean"),
        pytest.param(replace(SMALL, clicks_per_hour=1, hours=3, compression="none"), id="hardly any clicks"),
        pytest.param(BROKEN, id="a release that goes wrong"),
    ],
)
def test_truth_is_what_a_plain_reading_of_the_files_finds(spec: SampleSpec, tmp_path: Path) -> None:
    make_sample(spec, tmp_path / "landing").write(tmp_path / "truth.json")
    truth = json.loads((tmp_path / "truth.json").read_bytes())
    found = read_sample(tmp_path / "landing")
    assert truth.keys() == {"source", "seed", "log_hours", "clicks_by_url", "clicks_by_country"}
    assert (truth["source"], truth["seed"]) == (spec.source, spec.seed)
    assert truth["log_hours"] == found.log_hours
    assert truth["clicks_by_country"] == found.clicks_by_country
    assert truth["clicks_by_url"] == found.clicks_by_url
    assert list(truth["log_hours"]) == [str(hour) for hour in spec.log_hours]


def test_truth_in_memory_says_what_its_file_says(tmp_path: Path) -> None:
    truth = make_sample(SMALL, tmp_path / "landing")
    truth.write(tmp_path / "truth.json")
    written = json.loads((tmp_path / "truth.json").read_bytes())
    assert {hour: vars(log_hour) for hour, log_hour in truth.log_hours.items()} == written["log_hours"]
    for name in ("clicks_by_url", "clicks_by_country"):
        in_memory = {hour: {k: v._asdict() for k, v in keys.items()} for hour, keys in getattr(truth, name).items()}
        assert in_memory == written[name]


@pytest.mark.parametrize("spec", [SMALL, LONG, BRIEF, BROKEN])
def test_every_line_is_accepted_duplicate_or_quarantined(spec: SampleSpec, tmp_path: Path) -> None:
    truth = make_sample(spec, tmp_path)
    for hour in truth.log_hours.values():
        assert hour.lines == hour.accepted + hour.duplicates + sum(hour.quarantined.values())
    accepted = sum(hour.accepted for hour in truth.log_hours.values())
    for counts in (truth.clicks_by_url, truth.clicks_by_country):
        assert sum(key.clicks for keys in counts.values() for key in keys.values()) == accepted


def test_same_spec_gives_the_same_bytes(tmp_path: Path) -> None:
    spec = replace(SMALL, clicks_per_hour=300)
    first, again = tmp_path / "first", tmp_path / "again"
    for folder in (first, again):
        make_sample(spec, folder / "landing").write(folder / "truth.json")
    assert digests(first) == digests(again)
    assert {Path(name).suffix for name in digests(first / "landing")} == {".json", ".gz", ".zst", ""}


def test_same_spec_gives_the_same_bytes_in_another_process(tmp_path: Path) -> None:
    spec = replace(SMALL, clicks_per_hour=100)
    make_sample(spec, tmp_path / "here" / "landing").write(tmp_path / "here" / "web_truth.json")
    arguments = cli_arguments(tmp_path / "there" / "landing", **{"--from": str(spec.start), "--clicks-per-hour": "100"})
    done = subprocess.run(
        [sys.executable, "-m", "samples", *arguments],
        cwd=REPOSITORY, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stderr == ""  # no progress bar where stderr is no terminal
    assert digests(tmp_path / "here") == digests(tmp_path / "there")


@pytest.mark.parametrize("change", [{"seed": 8}, {"source": "shop"}])
def test_seed_and_source_give_other_clicks(change: dict[str, Any], tmp_path: Path) -> None:
    spec = replace(SMALL, clicks_per_hour=100)
    other = replace(spec, **change)
    make_sample(spec, tmp_path / "one")
    make_sample(other, tmp_path / "other")
    one, another = read_sample(tmp_path / "one").events, read_sample(tmp_path / "other", other.source).events
    assert one
    # Other visitors too, so that the truths of two sources add up.
    for name in ("event_id", "visitor_id"):
        assert {event[name] for event in one}.isdisjoint(event[name] for event in another)


def test_an_hour_is_the_same_however_many_come_after(tmp_path: Path) -> None:
    clean = replace(LONG, is_clean=True)
    make_sample(clean, tmp_path / "nine")
    make_sample(replace(clean, hours=2), tmp_path / "two")
    nine, two = digests(tmp_path / "nine"), digests(tmp_path / "two")
    assert two.items() < nine.items()


def test_small_samples_have_every_reason(brief: Reading, tmp_path: Path) -> None:
    make_sample(SMALL, tmp_path)
    for found in (brief, read_sample(tmp_path)):
        assert set(found.raw) == REASONS
        assert 1 <= len(found.raw["line_too_long"]) <= 2
    assert {reason for reason, _ in DAMAGES} | {"line_too_long"} == REASONS
    assert set(QUARANTINE_REASONS) >= REASONS


def test_small_samples_have_every_kind_of_damage(brief: Reading) -> None:
    def fields(reason: str, name: str) -> set[Any]:
        return {json.loads(line).get(name, "absent") for line in brief.raw[reason]}

    assert fields("missing_event_id", "event_id") == {"absent", None, ""}
    assert fields("missing_time", "ts") == {"absent", None, ""}
    assert fields("missing_url", "url") == {"absent", None, ""}
    assert fields("bad_url", "url") == {"not a url", "javascript:alert(1)", "ftp://x/y"}
    assert {time[:4] for time in fields("time_out_of_range", "ts")} == {"1970", "2100"}
    assert {bool(line) for line in brief.raw["blank"]} == {True, False}
    assert {line[:1] for line in brief.raw["not_json"]} >= {b"{", b"["}
    assert any(line.isdigit() for line in brief.raw["not_json"])
    assert any(line[:1] not in b"{[" and not line.isdigit() for line in brief.raw["not_json"])


def test_malformed_lines_are_a_few_dozen_in_a_large_sample(tmp_path: Path) -> None:
    truth = make_sample(SampleSpec(start=Hour.parse("2026-03-01T12"), hours=1, clicks_per_hour=100_000), tmp_path)
    (hour,) = truth.log_hours.values()
    assert 24 <= sum(hour.quarantined.values()) / hour.lines * 100_000 <= 60


def test_clean_sample_has_nothing_wrong_but_order(tmp_path: Path) -> None:
    truth = make_sample(replace(SMALL, is_clean=True), tmp_path)
    for hour in truth.log_hours.values():
        assert (hour.duplicates, hour.late, hour.quarantined) == (0, 0, {})
        assert hour.lines == hour.accepted > 0
        assert hour.out_of_order > 0


def test_a_broken_log_hour_has_clicks_of_its_own_hour_only_and_few_of_them(tmp_path: Path) -> None:
    truth = make_sample(BROKEN, tmp_path / "broken")
    for log_hour, share in BROKEN.broken.items():
        of_hour = truth.log_hours[str(log_hour)]
        assert share - 0.06 < of_hour.quarantined["missing_url"] / of_hour.lines < share + 0.12
        assert (of_hour.late, of_hour.accepted > 0) == (0, True)
    broken = [json.loads(line) for line in read_sample(tmp_path / "broken").raw["missing_url"] if b"page_url" in line]
    assert {record["page_url"][:4].lower() for record in broken} == {"http"}
    # None is lost: what is not broken is accepted, there or later.
    fine = make_sample(replace(BROKEN, broken={}), tmp_path / "fine")
    assert len(broken) == sum(fine.log_hours[hour].accepted - of.accepted for hour, of in truth.log_hours.items()) > 0


def test_broken_log_hours_leave_the_ones_before_as_they_are(tmp_path: Path) -> None:
    make_sample(replace(BROKEN, broken={}), tmp_path / "fine")
    make_sample(BROKEN, tmp_path / "broken")
    fine, broken = digests(tmp_path / "fine"), digests(tmp_path / "broken")
    assert fine.keys() == broken.keys()
    changed = {re.findall(r"log_hour=(\d+)", name)[0] for name in fine if fine[name] != broken[name]}
    assert not changed & {"19", "20"}
    assert {f"{hour.hour:02d}" for hour in BROKEN.broken} <= changed


def test_shares_are_those_of_real_logs(brief: Reading) -> None:
    total = Counter[str]()
    for hour in brief.log_hours.values():
        total.update({name: count for name, count in hour.items() if isinstance(count, int)})
    accepted = total["accepted"]
    # What is late or sent again beyond the last hour is missing, hence the wide bounds below.
    assert 0.035 < total["late"] / accepted < 0.055
    assert 0.006 < total["duplicates"] / accepted < 0.013
    assert 0.013 < total["out_of_order"] / accepted < 0.026
    assert 0.07 < sum(event["is_bot"] for event in brief.events) / accepted < 0.09
    countries = Counter(country_key(event) for event in brief.events)
    assert 30 <= len(countries) <= 45
    assert 0.15 < countries["DE"] / accepted < 0.35
    assert 0.01 < countries["unknown"] / accepted < 0.05
    assert any((event.get("geo") or {}).get("country") == "de" for event in brief.events)
    assert Counter(event["status"] for event in brief.events).keys() == {200, 301, 404, 500}
    assert {event["ts"][-6:] for event in brief.events if event["ts"][-1] != "Z"} >= {"+02:00", "-05:00"}


def test_late_clicks_are_mostly_one_hour_and_at_most_five_hours_late(tmp_path: Path) -> None:
    make_sample(replace(BRIEF, start=Hour.parse("2026-03-01T08")), tmp_path)
    before = [event["before_log_hour"] for event in read_sample(tmp_path).events]
    late = Counter(math.ceil(time / timedelta(hours=1)) for time in before if time > timedelta())
    assert late.keys() == {1, 2, 3, 4, 5}
    assert late[1] > late.total() / 2


def test_visitors_return_and_urls_are_skewed(brief: Reading) -> None:
    people = Counter(event["visitor_id"] for event in brief.events if not event["is_bot"])
    hours = {(event["visitor_id"], event["clicked_at"].hour) for event in brief.events if not event["is_bot"]}
    assert len(people) < 0.6 * people.total()
    hours_of = Counter(visitor for visitor, _ in hours)
    assert 0.2 < sum(times > 1 for times in hours_of.values()) / len(people) < 0.6
    assert max(hours_of.values()) >= 8  # some come back all day
    urls = Counter(url_key(event["url"]) for event in brief.events)
    assert len(urls) > 1000
    assert urls.most_common(1)[0][1] > 20 * urls.total() / len(urls)
    crawlers = {event["visitor_id"] for event in brief.events if event["is_bot"]}
    assert crawlers.isdisjoint(people)


def test_volume_follows_the_day(tmp_path: Path) -> None:
    truth = make_sample(replace(BRIEF, hours=24, clicks_per_hour=500, is_clean=True), tmp_path)
    clicks = [hour.accepted for hour in truth.log_hours.values()]
    assert sum(clicks) == pytest.approx(24 * 500, rel=0.03)
    assert clicks.index(min(clicks)) in range(2, 6)
    assert clicks.index(max(clicks)) in range(17, 22)
    assert max(clicks) > 5 * min(clicks)


def test_the_copy_comes_after_the_first_arrival_and_within_three_log_hours(tmp_path: Path) -> None:
    make_sample(replace(BRIEF, start=Hour.parse("2026-03-01T08")), tmp_path)
    places: dict[str, list[tuple[int, str, int]]] = defaultdict(list)
    accepted_time: dict[str, datetime] = {}
    for number, (_, folder) in enumerate(hours_in(tmp_path)):
        for file in data_files(folder):
            for line_number, line in enumerate(lines_of(file)):
                reason, record = reason_of(line)
                if reason is None:
                    places[record["event_id"]].append((number, file.name, line_number))
                    # The click is the same one, whenever it is sent.
                    assert accepted_time.setdefault(record["event_id"], record["clicked_at"]) == record["clicked_at"]
    again = [place for place in places.values() if len(place) > 1]
    after = Counter(copy[0] - place[0][0] for place in again for copy in place[1:])
    assert after.keys() == {0, 1, 2, 3}
    in_same_hour = [place for place in again if place[0][0] == place[1][0]]
    assert any(first[1] == copy[1] for first, copy, *_ in in_same_hour)
    assert any(first[1] < copy[1] for first, copy, *_ in in_same_hour)
    assert any(len(place) > 2 for place in again)


def test_the_first_arrival_stays_first_however_soon_its_copy_and_however_many_slip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (
        ("SENT_AGAIN_MILLISECONDS", 1),
        ("DUPLICATE_SHARE", 0.3),
        ("OUT_OF_ORDER_SHARE", 0.5),
    ):
        monkeypatch.setattr(sample_logs, name, value)
    truth = make_sample(SMALL, tmp_path)
    found = read_sample(tmp_path)
    assert sum(hour.duplicates for hour in truth.log_hours.values()) > 500
    # Where a copy was read first, its country and its line's order would count instead.
    assert {hour: vars(log_hour) for hour, log_hour in truth.log_hours.items()} == found.log_hours
    in_memory = {
        hour: {country: counts._asdict() for country, counts in of_hour.items()}
        for hour, of_hour in truth.clicks_by_country.items()
    }
    assert in_memory == found.clicks_by_country


def test_lines_ascend_in_time_but_for_a_few_that_slip_and_copies(tmp_path: Path) -> None:
    make_sample(SMALL, tmp_path)
    seen: set[str] = set()
    firsts = steps_back = 0
    for _, folder in hours_in(tmp_path):
        for file in data_files(folder):
            times = []
            for line in lines_of(file):
                reason, record = reason_of(line)
                if reason is None and record["event_id"] not in seen:
                    seen.add(record["event_id"])
                    times.append(record["clicked_at"])
            firsts += len(times)
            steps_back += sum(later < earlier for earlier, later in pairwise(times))
    assert 0 < steps_back < 0.03 * firsts


def test_files_are_numbered_renamed_into_place_and_closed_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moves: list[tuple[str, str, bool]] = []
    move = Path.replace

    def watched(source: Path, target: Path) -> Path:
        moves.append((source.name, target.name, (target.parent / "_SUCCESS").exists()))
        return move(source, target)

    monkeypatch.setattr(Path, "replace", watched)
    closed: list[tuple[Hour, int]] = []
    make_sample(replace(SMALL, hours=3), tmp_path)
    make_sample(replace(SMALL, hours=3), tmp_path, lambda hour, lines: closed.append((hour, lines)))
    folder = tmp_path / "web" / "log_date=2026-03-01" / "log_hour=12"
    assert sorted(file.name for file in folder.iterdir()) == sorted(
        ["_SUCCESS", *SMALL.file_names(Hour.parse("2026-03-01T12"))]
    )
    assert (folder / "_SUCCESS").read_bytes() == b""
    assert len(moves) == 18
    for source, target, was_closed in moves:
        assert source.startswith(".")
        assert re.fullmatch(r"part-\d{5}\.json(\.gz|\.zst)?", target)
        assert not was_closed
    assert [str(hour) for hour, _ in closed] == ["2026-03-01T10", "2026-03-01T11", "2026-03-01T12"]
    assert all(lines > 0 for _, lines in closed)


@pytest.mark.parametrize(
    ("compression", "suffixes"),
    [("none", {".json"}), ("gzip", {".gz"}), ("zstd", {".zst"}), ("mixed", {".json", ".gz", ".zst"})],
)
def test_compression_is_what_was_asked_for(compression: Any, suffixes: set[str], tmp_path: Path) -> None:
    make_sample(replace(SMALL, clicks_per_hour=50, compression=compression), tmp_path)
    assert {file.suffix for _, folder in hours_in(tmp_path) for file in data_files(folder)} == suffixes


def test_compression_does_not_change_the_lines(tmp_path: Path) -> None:
    for name in ("none", "mixed"):
        make_sample(replace(SMALL, clicks_per_hour=200, compression=name), tmp_path / name)
    plain, mixed = (
        [lines_of(file) for _, folder in hours_in(tmp_path / name) for file in data_files(folder)]
        for name in ("none", "mixed")
    )
    assert plain == mixed


def test_running_again_gives_the_same_files_and_other_data_is_left_alone(tmp_path: Path) -> None:
    spec = replace(SMALL, clicks_per_hour=50)
    make_sample(spec, tmp_path)
    before = digests(tmp_path)
    make_sample(spec, tmp_path)
    assert digests(tmp_path) == before
    with pytest.raises(UsageError, match=r"log_hour=10 already holds part-00001.json.zst.*\(\d such\); expected"):
        make_sample(replace(spec, compression="gzip"), tmp_path)
    assert digests(tmp_path) == before


def test_lines_are_compact_objects_with_the_agreed_fields(brief: Reading) -> None:
    for event in brief.events:
        assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", event["event_id"])
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(Z|[+-]\d\d:\d\d)", event["ts"])
        assert event["visitor_id"]
        assert event["user_agent"]


def test_lines_are_written_without_spaces(tmp_path: Path) -> None:
    make_sample(replace(SMALL, clicks_per_hour=50, is_clean=True), tmp_path)
    lines = [line for _, folder in hours_in(tmp_path) for file in data_files(folder) for line in lines_of(file)]
    for line in lines:
        assert json.dumps(json.loads(line), separators=(",", ":"), ensure_ascii=False).encode() == line


def test_crawlers_are_known_crawlers_and_browsers_are_not() -> None:
    assert [agent for agent in catalog.CRAWLER_AGENTS if not is_crawler(agent)] == []
    assert [agent for agent in catalog.human_agents() if is_crawler(agent)] == []


def test_countries_are_assigned_codes_and_the_unknown_ones_are_not() -> None:
    assert set(catalog.COUNTRY_SHARES) <= COUNTRY_CODES
    assert 35 <= len(catalog.COUNTRY_SHARES) <= 45
    for geo in catalog.UNKNOWN_GEO:
        assert country_key(json.loads(f'{{"status":200{geo}}}')) == "unknown"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("HTTPS://WWW.Example.COM:443/P/Abc?page=2#top", "https://www.example.com/P/Abc?page=2"),
        ("http://example.com:80", "http://example.com/"),
        ("http://example.com:443/a", "http://example.com:443/a"),
        ("https://example.com:80/a", "https://example.com:80/a"),
        ("https://example.com:8443/a", "https://example.com:8443/a"),
        ("https://example.com?page=2", "https://example.com/?page=2"),
        ("https://example.com#top", "https://example.com/"),
        ("https://example.com/?", "https://example.com/"),
        ("https://example.com/?utm_source=a&utm_medium=b", "https://example.com/"),
        ("https://example.com/?utm_source=a&page=2&gclid=x&sort=a#f", "https://example.com/?page=2&sort=a"),
        ("https://example.com/?GCLID=x&Utm_Campaign=y&fbclid&B=1&a=2", "https://example.com/?B=1&a=2"),
        ("https://example.com/?msclkid=1&dclid=2&yclid=3&igshid=4&mc_cid=5&mc_eid=6", "https://example.com/"),
        ("https://example.com/?utm=1&gclidx=2&xutm_a=3", "https://example.com/?utm=1&gclidx=2&xutm_a=3"),
        ("https://example.com/?q=utm_source&r=gclid", "https://example.com/?q=utm_source&r=gclid"),
        ("https://example.com/?q=%20a+b&&x=%c3%a9", "https://example.com/?q=%20a+b&&x=%c3%a9"),
        ("https://example.com/a#b?utm_source=c", "https://example.com/a"),
        (
            "https://example.com/a?to=https://B.org/?utm_source=x",
            "https://example.com/a?to=https://B.org/?utm_source=x",
        ),
        ("https://User:Pass@Example.com/a", "https://User:Pass@example.com/a"),
        ("http://[2001:DB8::1]:80/a", "http://[2001:db8::1]/a"),
    ],
)
def test_normal_form_of_a_url(url: str, expected: str) -> None:
    assert normalize_url(url) == expected


_URLS = st.builds(
    "{}://{}{}{}{}{}".format,
    st.sampled_from(["http", "HTTPS", "https"]),
    st.sampled_from(["example.com", "WWW.Example.com"]),
    st.sampled_from(["", ":80", ":443", ":8080"]),
    st.sampled_from(["", "/", "/a/B", "/%7Ea//b"]),
    st.lists(st.sampled_from(["page=2", "", "utm_source=x", "GCLID=1", "q=a=b", "gclid"]), max_size=5).map(
        lambda parameters: f"?{'&'.join(parameters)}" if parameters else ""
    ),
    st.sampled_from(["", "#", "#a?b=c&utm_x=1"]),
)


@given(_URLS)
def test_normal_form_is_its_own_normal_form(url: str) -> None:
    assert normalize_url(normalize_url(url)) == normalize_url(url)


BAD_ARGUMENTS = [
    pytest.param({"--hours": "0"}, "hours 0: expected 1 to 87600", id="no hours"),
    pytest.param({"--hours": "x"}, "argument --hours: invalid int value: 'x'", id="hours no number"),
    pytest.param({"--clicks-per-hour": "-1"}, "clicks_per_hour -1: expected 1 to", id="clicks"),
    pytest.param({"--files-per-hour": "0"}, "files_per_hour 0: expected 1 to", id="files"),
    pytest.param({"--seed": "-3"}, "seed -3: expected 0 to", id="seed"),
    pytest.param({"--broken": "2026-03-01T08"}, "expected an hour and a share, such as", id="broken without a share"),
    pytest.param({"--broken": "2026-02-01T08=0.5"}, "broken 2026-02-01T08=0.5: expected a log hour of", id="broken"),
    pytest.param({"--from": "2026-03-01"}, "not an hour: '2026-03-01'; expected UTC such as 2026-03-01T05", id="from"),
    pytest.param({"--from": "1970-06-01T00"}, "start 1970-06-01T00: expected hours within 1971", id="year"),
    pytest.param({"--source": "Web/.."}, "source 'Web/..': expected lower case letters", id="source"),
    pytest.param({"--compression": "lz4"}, "argument --compression: invalid choice: 'lz4'", id="compression"),
    pytest.param({"--colour": "red"}, "unrecognized arguments: --colour red", id="unknown argument"),
    pytest.param({"--landing": __file__}, "is a file; expected a folder", id="landing is a file"),
    pytest.param({"--landing": __file__ + "/deep/er"}, "is a file; expected a folder", id="landing in a file"),
    pytest.param({"--truth": str(REPOSITORY)}, "is a folder; expected a file's name", id="truth is a folder"),
]


def cli_arguments(landing: Path, **given: str) -> list[str]:
    values = {"--landing": str(landing), "--source": "web", "--from": "2026-03-01T00", "--hours": "2",
              "--clicks-per-hour": "40", "--seed": "7"} | given  # fmt: skip
    return [text for pair in values.items() for text in pair]


@pytest.mark.parametrize(("wrong", "message"), BAD_ARGUMENTS)
def test_bad_arguments_are_one_line_and_exit_code_2(
    wrong: dict[str, str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exited:
        exit_with(lambda: main(cli_arguments(tmp_path / "landing", **wrong)))
    said = capsys.readouterr()
    assert exited.value.code == 2
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert message in said.err
    assert list(tmp_path.iterdir()) == []


def test_all_wrong_values_are_named_at_once() -> None:
    with pytest.raises(UsageError, match=r"hours 0: .*; seed -1: .*; source 'A': .*; compression 'zip': "):
        SampleSpec(SMALL.start, source="A", hours=0, seed=-1, compression="zip")  # type: ignore[arg-type]


def test_bad_arguments_from_a_shell_are_no_stack_trace(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "samples", *cli_arguments(tmp_path / "landing", **{"--hours": "0"})],
        cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "wrong arguments: hours 0: expected 1 to 87600\n"


def test_truth_lands_beside_the_landing_zone_or_where_it_is_told(tmp_path: Path) -> None:
    main(cli_arguments(tmp_path / "landing"))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["landing", "web_truth.json"]
    main([*cli_arguments(tmp_path / "landing"), "--truth", str(tmp_path / "deep" / "truth.json")])
    assert (tmp_path / "deep" / "truth.json").read_bytes() == (tmp_path / "web_truth.json").read_bytes()


def test_clean_is_a_flag(tmp_path: Path) -> None:
    main([*cli_arguments(tmp_path / "landing"), "--clean"])
    assert read_sample(tmp_path / "landing").raw == {}


def test_a_file_that_cannot_be_written_is_one_line_and_exit_code_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(self: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device", str(self))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(SystemExit) as exited:
        exit_with(lambda: main(cli_arguments(tmp_path / "landing")))
    assert exited.value.code == 1
    assert re.fullmatch(r"failed: cannot write .*: No space left on device; .*\n", capsys.readouterr().err)
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []
