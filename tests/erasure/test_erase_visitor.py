"""Erased from a lake of sample logs: what is left is what a lake has to which the lines had never come."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from include.errors import ClickmillError, UsageError
from include.hours import Hour
from include.settings import REPOSITORY
from include.sources import load_sources
from include.tables import CLICKS, INGEST_ACCOUNTING, PUBLISHED_CLICKS_BY_URL_HOURLY, QUALITY_RESULTS
from include.unpublished import files_landed_since
from include.visitor_keys import VisitorKeys
from samples.sample_logs import make_sample
from samples.sample_spec import SampleSpec
from spark_jobs.erasure.erase import erase as erase_visitors
from spark_jobs.erasure.erase import plan
from spark_jobs.erasure.requests import Requests
from tests.erasure.erased_lake import (
    busiest_visitors,
    certificate,
    comparable,
    erase,
    files_with,
    lake_without,
    landed,
    move_landing_away,
    without_lines,
)
from tests.support.log_files import content_of
from tests.support.temporary_lake import TemporaryLake, assert_same_tables

pytestmark = pytest.mark.spark

SPEC = SampleSpec(start=Hour.parse("2026-03-01T10"), hours=3, clicks_per_hour=1200, seed=7)
START, END = str(SPEC.log_hours.start), str(SPEC.log_hours.end)


def run_all(lake: TemporaryLake) -> None:
    lake.run_jobs(START, END, "ingest", "aggregate", "validate", "publish")


@pytest.fixture(scope="module")
def sample_lake(make_lake: Callable[[str], TemporaryLake]) -> TemporaryLake:
    lake = make_lake("erasure")
    make_sample(SPEC, lake.settings.landing)
    run_all(lake)
    return lake


def test_an_erased_visitor_is_as_if_never_come(sample_lake: TemporaryLake, tmp_path: Path) -> None:
    lake = sample_lake.copy(tmp_path / "erased")
    (visitor,) = busiest_visitors(lake, 1)
    clicks = sum(row["visitor_id"] == visitor for row in lake.rows(CLICKS))
    assert clicks > 3
    assert files_with(lake.settings.home, visitor)
    lines = erase(lake, Requests.of([visitor]))
    assert files_with(lake.settings.home, visitor) == []
    assert_same_tables(comparable(lake), comparable(lake_without(sample_lake, tmp_path / "fresh", [visitor], run_all)))
    assert landed_since(lake, "web") == {}, "what it has rewritten is read as before"
    on_record = certificate(lake)
    assert on_record["state"] == "completed"
    assert on_record["gone"]["clicks"] == clicks == on_record["found"]["clicks"]
    assert visitor not in "\n".join(lines)
    with pytest.raises(ClickmillError, match="nothing found"):
        erase(lake, Requests.of([visitor]))


def landed_since(lake: TemporaryLake, source: str) -> dict[Hour, list[str]]:
    return files_landed_since(lake.settings, load_sources(lake.settings)[source])


def runs_of(lake: TemporaryLake) -> set[str]:
    return {row["run_id"] for row in lake.rows(QUALITY_RESULTS)}


def test_log_hours_with_others_between_are_run_together(sample_lake: TemporaryLake, tmp_path: Path) -> None:
    lake = sample_lake.copy(tmp_path / "erased")
    between = b"".join(content_of(file) for file in landed(lake) if file.parent.name == "log_hour=11")
    visitors = [visitor for visitor in busiest_visitors(lake, 400) if visitor.encode() not in between][:20]
    before, validated = lake.rows(INGEST_ACCOUNTING), runs_of(lake)
    erase(lake, Requests.of(visitors))
    assert certificate(lake)["log_hours"] == {"web": ["2026-03-01T10", "2026-03-01T12"]}
    assert len(runs_of(lake) - validated) == 1, "all are validated in one run"
    (untouched,) = [row for row in before if row["log_hour"] == 11]
    assert untouched in lake.rows(INGEST_ACCOUNTING)
    fresh = lake_without(sample_lake, tmp_path / "fresh", visitors, run_all)
    assert_same_tables(comparable(lake), comparable(fresh))


def test_gone_landing_leaves_the_same_counts(sample_lake: TemporaryLake, tmp_path: Path) -> None:
    lake = sample_lake.copy(tmp_path / "erased")
    visitors = busiest_visitors(lake, 40)
    move_landing_away(lake, "2026-03-01T10", "2026-03-01T12")
    erase(lake, Requests.of(visitors))
    assert files_with(lake.settings.home, *visitors) == []
    fresh = lake_without(sample_lake, tmp_path / "fresh", visitors, run_all)
    tables, expected = without_lines(comparable(lake)), without_lines(comparable(fresh))
    assert_same_tables(tables, expected)


ADDRESS, OTHERS = "192.0.2.7", ("192.0.2.77", "198.51.100.9")


def access_lines(hour: int) -> bytes:
    """Three clients, two browsers of each; and two lines that are none, of which one has an address."""
    lines = [
        f"{address} - - [01/Mar/2026:{hour:02d}:{minute:02d}:00 +0000] "
        f'"GET /page/{minute % 3} HTTP/1.1" 200 5 "-" "{agent}"'
        for minute, (address, agent) in enumerate(
            (address, agent) for address in (ADDRESS, *OTHERS) for agent in ("Mozilla/5.0 (one)", "Mozilla/5.0 (two)")
        )
    ]
    return "\n".join([*lines, f"{ADDRESS} is cut off", "no line", ""]).encode()


def test_an_address_goes_with_the_visitors_derived_from_it(lake: TemporaryLake, tmp_path: Path) -> None:
    """Of an hour whose landed lines are there, and of one whose lines are gone."""
    for hour in (10, 11):
        lake.land(f"2026-03-01T{hour}", {"a.log.gz": access_lines(hour)}, source="access")
    VisitorKeys.of(lake.settings).of_day(date(2026, 3, 1))
    fresh = lake.copy(tmp_path / "fresh")
    lake.run_jobs(START, "2026-03-01T12", "ingest", "aggregate", "validate", "publish", source="access")
    visitors = {row["visitor_id"] for row in lake.rows(CLICKS)}
    shutil.rmtree(lake.settings.landing / "access" / "log_date=2026-03-01" / "log_hour=10")
    erase(lake, Requests.of(addresses=[ADDRESS]))
    for file in landed(fresh):
        # In a quarantined line whose landed one is gone stands the network only: it stays.
        goes = f"{ADDRESS} -" if file.parent.name == "log_hour=10" else f"{ADDRESS} "
        lines = gzip.decompress(file.read_bytes()).splitlines(keepends=True)
        file.write_bytes(gzip.compress(b"".join(line for line in lines if not line.startswith(goes.encode()))))
    fresh.run_jobs(START, "2026-03-01T12", "ingest", "aggregate", "validate", "publish", source="access")
    left = {row["visitor_id"] for row in fresh.rows(CLICKS)}
    assert len(visitors) == 6
    assert len(left) == 4
    assert_same_tables(without_lines(comparable(lake)), without_lines(comparable(fresh)))
    for word in (ADDRESS, *(visitors - left)):
        files = [file for file in files_with(lake.settings.home, word) if ADDRESS != word or not others_only(file)]
        assert files == []


def test_others_stay_who_they_are_when_the_key_of_their_day_is_gone(lake: TemporaryLake) -> None:
    lake.land(START, {"a.log.gz": access_lines(10)}, source="access")
    lake.run_jobs(START, "2026-03-01T11", "ingest", "aggregate", "validate", "publish", source="access")
    visitors = [row["visitor_id"] for row in lake.rows(CLICKS)]
    shutil.rmtree(lake.settings.visitor_keys)
    erase(lake, Requests.of([visitors[0]]))
    assert sorted(row["visitor_id"] for row in lake.rows(CLICKS)) == sorted(visitors[1:])
    assert certificate(lake)["state"] == "completed"
    assert lake.accounting()[START]["accepted"] == len(visitors) - 1
    assert landed_since(lake, "access") == {}


def others_only(file: str) -> bool:
    """Whether what grep takes for the address is the beginning of another's."""
    return content_of(Path(file)).count(ADDRESS.encode()) == content_of(Path(file)).count(OTHERS[0].encode())


def test_urls_with_a_beginning_go(sample_lake: TemporaryLake, tmp_path: Path) -> None:
    lake = sample_lake.copy(tmp_path / "erased")
    urls = Counter(row["url"] for row in lake.rows(CLICKS))
    prefix = min((url for url in urls if url.count("/") > 3), key=lambda url: (-urls[url], url))
    of_prefix = sum(count for url, count in urls.items() if url.startswith(prefix))
    assert 0 < of_prefix < urls.total()
    erase(lake, Requests.of(prefixes=[prefix]))
    left = Counter(row["url"] for row in lake.rows(CLICKS))
    assert left == Counter({url: count for url, count in urls.items() if not url.startswith(prefix)})
    assert certificate(lake)["gone"]["clicks"] == of_prefix
    published: Counter[str] = Counter()
    for row in lake.rows(PUBLISHED_CLICKS_BY_URL_HOURLY):
        published[row["url"]] += row["click_count"]
    assert published == left


def test_what_would_find_too_much_or_nothing_changes_nothing(lake: TemporaryLake) -> None:
    lake.land(START, {"a.log.gz": access_lines(10)}, source="access")
    lake.run("ingest", START, source="access")
    before = {file: file.read_bytes() for file in lake.settings.home.rglob("*") if file.is_file()}
    with pytest.raises(UsageError, match="fits all 6 clicks of source access"):
        erase(lake, Requests.of(prefixes=["http://www.example.com/"]))
    with pytest.raises(ClickmillError, match="nothing found"):
        erase(lake, Requests.of(["nobody-at-all"]))
    with pytest.raises(UsageError, match="may stay on record"):
        erase_visitors(lake.spark, lake.settings, Requests.of(["ada-123"]), "Ada", "letter of ada-123")
    assert erase(lake, Requests.of(addresses=[ADDRESS]), dry_run=True) == [
        "would be erased (visitor 0, address 1, url prefix 0):",
        "  clicks: 2 rows",
        "  landing: 3 lines",
        "  quarantined_clicks: 1 rows",  # the third of these lines
        "  in 1 log hours; at least 1 click hours are counted again, and published or held",
        "  pages and reports that name it: 0",
        "could not be undone any more: the erasure itself; no backfill is to be undone",
    ]
    after = {file: file.read_bytes() for file in lake.settings.home.rglob("*") if file.is_file()}
    assert {file: content for file, content in after.items() if before.get(file) != content}.keys() <= {
        *lake.settings.locks.glob("*"),
        lake.settings.erasure_key_file,
    }


def test_what_was_not_shown_is_said_and_other_requests_are_refused(lake: TemporaryLake) -> None:
    """Between the question and the answer another file came, or somebody changed what is asked for."""
    lake.land(START, {"a.log.gz": access_lines(10)}, source="access")
    lake.run("ingest", START, source="access")
    requests = Requests.of(addresses=[ADDRESS])
    shown = plan(lake.spark, lake.settings, requests, "Ada", "asked for by letter")
    with pytest.raises(UsageError, match="nothing is erased: the requests are not those that were shown"):
        erase(lake, Requests.of(addresses=["203.0.113.99"]), shown=shown)
    assert shown.numbers == {"clicks": 2, "landing": 3, "quarantined_clicks": 1}
    lake.land(START, {"a.log.gz": access_lines(10), "b.log.gz": access_lines(10)}, source="access")
    lines = erase(lake, requests, shown=shown)
    assert "  more was found than was shown before: landing 6 instead of 3" in lines
    assert ADDRESS not in "".join((*lines, *shown.lines))


def test_from_a_shell_it_names_nobody(sample_lake: TemporaryLake, spark_remote: str, tmp_path: Path) -> None:
    lake = sample_lake.copy(tmp_path / "erased")
    visitors = busiest_visitors(lake, 3)
    requests = tmp_path / "requests.jsonl"
    requests.write_text("".join(f'{{"visitor": "{visitor}"}}\n' for visitor in visitors), encoding="utf-8")
    environment = os.environ | {
        "CLICKMILL_HOME": str(lake.settings.home),
        "CLICKMILL_SOURCES": str(lake.settings.sources_file),
        "CLICKMILL_PIPELINE": str(lake.settings.pipeline_file),
        "SPARK_REMOTE": spark_remote,
    }

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        arguments = ["--requests", str(requests), "--by", "Ada", "--because", "asked for by letter", *options]
        command = [sys.executable, "-m", "clickmill", "erase", *arguments]
        return subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)

    copied, log = lake.settings.home / "copied.csv.gz", lake.settings.logs / "task.log"
    copied.write_bytes(gzip.compress(f"a,{visitors[0]},b".encode()))
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(f"erase {visitors[1]}", encoding="utf-8")
    before = lake.tables()
    planned, unsure = run("--dry-run"), run()
    assert unsure.returncode == 2
    assert unsure.stderr == (
        "wrong arguments: nothing is erased: expected --yes, as it cannot be undone; --dry-run says what would go\n"
    )
    assert lake.tables() == before
    stopped = run("--yes")
    copied.unlink()
    counted = lake.commits(PUBLISHED_CLICKS_BY_URL_HOURLY)
    done = run("--yes")
    assert (planned.returncode, stopped.returncode, done.returncode) == (0, 1, 0)
    assert "not complete: 1 files have it still, or cannot be read: copied.csv.gz; then erase again" in stopped.stderr
    assert "  not reached: logs/task.log has it still\n" in done.stdout
    # What was counted before stays, also what somebody may have decided on it; the two are those of removed files.
    assert lake.commits(PUBLISHED_CLICKS_BY_URL_HOURLY) <= counted + 2
    log.unlink()
    output = "".join(process.stdout + process.stderr for process in (planned, stopped, done))
    assert not any(visitor in output for visitor in visitors)
    assert files_with(lake.settings.home, *visitors) == []
    assert Counter(lake.acts()) == {
        ("erase_visitor", event): count for event, count in (("begun", 2), ("failed", 1), ("completed", 1))
    }
