"""What is in the sample logs and in their truth, held to a second reading of the files."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from crawleruseragents import is_crawler

from include.hours import Hour
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
    read_sample,
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
    reading = read_sample(tmp_path / "landing")
    assert truth.keys() == {"source", "seed", "log_hours", "clicks_by_url", "clicks_by_country"}
    assert (truth["source"], truth["seed"]) == (spec.source, spec.seed)
    assert truth["log_hours"] == reading.log_hours
    assert truth["clicks_by_country"] == reading.clicks_by_country
    assert truth["clicks_by_url"] == reading.clicks_by_url
    assert list(truth["log_hours"]) == [str(hour) for hour in spec.log_hours]


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
    for reading in (brief, read_sample(tmp_path)):
        assert set(reading.raw) == REASONS
        assert 1 <= len(reading.raw["line_too_long"]) <= 2
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
    reading = read_sample(tmp_path)
    assert sum(hour.duplicates for hour in truth.log_hours.values()) > 500
    # Where a copy was read first, its country and its line's order would count instead.
    assert {hour: vars(log_hour) for hour, log_hour in truth.log_hours.items()} == reading.log_hours
    in_memory = {
        hour: {country: counts._asdict() for country, counts in of_hour.items()}
        for hour, of_hour in truth.clicks_by_country.items()
    }
    assert in_memory == reading.clicks_by_country


def test_crawlers_are_known_crawlers_and_browsers_are_not() -> None:
    assert [agent for agent in catalog.CRAWLER_AGENTS if not is_crawler(agent)] == []
    assert [agent for agent in catalog.human_agents() if is_crawler(agent)] == []


def test_countries_are_assigned_codes_and_the_unknown_ones_are_not() -> None:
    assert set(catalog.COUNTRY_SHARES) <= COUNTRY_CODES
    assert 35 <= len(catalog.COUNTRY_SHARES) <= 45
    for geo in catalog.UNKNOWN_GEO:
        assert country_key(json.loads(f'{{"status":200{geo}}}')) == "unknown"
