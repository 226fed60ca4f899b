"""What is in the sample logs and in their truth, held to a second reading of the files."""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from crawleruseragents import is_crawler

from include.log_hours import Hour
from include.tables import QUARANTINE_REASONS
from samples import catalog, sample_logs
from samples.malformed_lines import DAMAGES
from samples.sample_logs import make_sample
from samples.sample_spec import SampleSpec
from tests.samples.reading import (
    COUNTRY_CODES,
    LONG,
    SMALL,
    Reading,
    country_key,
    data_files,
    digests,
    hours_in,
    lines_of,
    read_sample,
    reason_of,
    url_key,
)

BRIEF = SampleSpec(start=Hour.parse("2026-03-01T00"), hours=12, clicks_per_hour=2000)
# A canary first, then everybody.
BROKEN = replace(LONG, clicks_per_hour=3000, broken={LONG.start.plus(2): 0.1, LONG.start.plus(4): 0.7})
REASONS = {
    "not_json", "not_utf8", "blank", "missing_event_id", "missing_time", "bad_time", "time_out_of_range",
    "missing_url", "bad_url", "line_too_long",
}  # fmt: skip


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
