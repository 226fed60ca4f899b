"""All data in a real S3 server, locks in a real PostgreSQL: the jobs give the tables that they give on a disk."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg2
import pytest

from include import only_spark
from include.errors import ClickmillError, QualityError, StreamRunsAlreadyError, UsageError
from include.hours import Hour, HourRange
from include.landing import hour_folder
from include.locks import locks_of
from include.only_spark import the_only_spark
from include.quality_index import open_index
from include.settings import REPOSITORY, Settings
from include.sources import load_sources
from include.storage import find, place, remove_folder
from include.tables import CLICKS, INGEST_ACCOUNTING, PUBLISHED
from include.unpublished import unpublished_hours
from ops.home import Home, load_secrets
from plugins.data_quality.app import inside
from plugins.data_quality.quarantine import read_quarantine
from samples.sample_logs import make_sample
from samples.sample_spec import SampleSpec
from spark_jobs.erasure.requests import Requests
from spark_jobs.replay import job as replay_job
from spark_jobs.retention import job as retention_job
from spark_jobs.stream import job as stream_job
from tests.erasure.erased_lake import but_of_replays, erase, files_with
from tests.support.killed_runs import Killed, killed_after
from tests.support.postgres_server import postgres_server
from tests.support.spark_server import SparkServer, open_session, started
from tests.support.temporary_lake import TemporaryLake, assert_same_tables, click, make_settings
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.s3_server import S3Server

SPEC = SampleSpec(start=Hour.parse("2026-03-01T22"), hours=3, clicks_per_hour=300, seed=7)
FIRST, SECOND, THIRD = SPEC.log_hours

pytestmark = [pytest.mark.slow, pytest.mark.servers]


@pytest.fixture(scope="module")
def home(s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A home whose data is in S3; a time zone in it has a slash, which the names of files have escaped."""
    with postgres_server() as postgres:
        data = place(s3.make_bucket("data")) / "clickmill"
        home = Home(tmp_path_factory.mktemp("home"), data, postgres.make_database("locks"))
        home.make()
        load_secrets(home)
        yield home


@pytest.fixture(scope="module")
def server(home: Home) -> Iterator[SparkServer]:
    with started(SparkServer.of(home)) as server:
        yield server


@pytest.fixture(scope="module")
def session(server: SparkServer) -> Iterator[SparkSession]:
    with open_session(server.remote) as session:
        yield session


@pytest.fixture(scope="module")
def settings(home: Home, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    made = make_settings(tmp_path_factory.mktemp("on-disk") / "home")
    with made.pipeline_file.open("a", encoding="utf-8") as pipeline:
        pipeline.write('time_zones = ["UTC", "Europe/Berlin"]\n')
    return made


@pytest.fixture(scope="module")
def in_s3(session: SparkSession, home: Home, settings: Settings) -> TemporaryLake:
    of_home = {"home": home.path, "data_folder": home.data, "locks_database": home.locks_database}
    return TemporaryLake(session, replace(settings, **of_home))


@pytest.fixture(scope="module")
def on_disk(session: SparkSession, settings: Settings) -> TemporaryLake:
    return TemporaryLake(session, settings)


@pytest.fixture(scope="module")
def both(in_s3: TemporaryLake, on_disk: TemporaryLake) -> tuple[TemporaryLake, TemporaryLake]:
    """A range of two hours, and one hour after it, through all jobs."""
    for lake in (in_s3, on_disk):
        make_sample(SPEC, lake.settings.landing)
        lake.run_all(str(FIRST), str(THIRD))
        lake.run_all(str(THIRD))
    return in_s3, on_disk


def names_below(folder: Path, levels: int) -> set[str]:
    return {str(entry.path).removeprefix(f"{folder}/") for entry in find(folder, "/".join("*" * levels))}


def test_the_tables_are_those_of_a_disk(both: tuple[TemporaryLake, TemporaryLake]) -> None:
    in_s3, on_disk = both
    assert_same_tables(in_s3.tables(), on_disk.tables())
    assert len(in_s3.rows(CLICKS)) > 500


def test_reports_and_exports_are_those_of_a_disk(both: tuple[TemporaryLake, TemporaryLake]) -> None:
    reports, expected = (lake.settings.reports for lake in both)
    assert b"<html" in (reports / "report.html").read_bytes()
    for levels in (4, 5):
        exports = names_below(reports / "exports", levels)
        assert exports == names_below(expected / "exports", levels)
        for name in (name for name in exports if name.endswith(".csv") and "daily" not in name):
            assert (reports / "exports" / name).read_bytes() == (expected / "exports" / name).read_bytes(), name
    assert any("time_zone=Europe%2FBerlin" in name for name in names_below(reports / "exports", 4))


def test_pages_on_quality_read_it(both: tuple[TemporaryLake, TemporaryLake]) -> None:
    in_s3, _ = both
    quarantines = [read_quarantine(lake.settings, FIRST) for lake in both]
    assert quarantines[0] == quarantines[1] != []
    outcomes = []
    for lake in both:
        with open_index(lake.settings) as index:
            outcomes.append({(result.suite, result.check_id, result.outcome) for result in index.results(str(FIRST))})
        source = load_sources(lake.settings)["web"]
        assert unpublished_hours(lake.settings, source, timedelta(days=2), THIRD.end) == []
    assert outcomes[0] == outcomes[1] != set()
    docs = in_s3.settings.reports / "data_docs"
    page = sorted(str(entry.path).removeprefix(f"{docs}/") for entry in find(docs, "*/click_hours.html"))[0]
    assert inside(docs, page) == docs / page
    for other in ("", "..", f"../data_docs/{page}", "absent.html", page.rpartition("/")[0]):
        assert inside(docs, other) is None


def test_an_hour_landed_again_is_counted_again_and_one_that_is_gone_is_refused(
    both: tuple[TemporaryLake, TemporaryLake],
) -> None:
    for lake in both:
        folder = hour_folder(lake.settings.landing, "web", SECOND)
        remove_folder(folder)
        with pytest.raises(ClickmillError, match=r"the landing partition of web .* is gone"):
            lake.run("ingest", str(SECOND))
        (folder / "again.json").parent.mkdir(parents=True, exist_ok=True)
        (folder / "again.json").write_bytes(b"nonsense\n")
        (folder / "_SUCCESS").write_bytes(b"")
        lake.run_jobs(str(SECOND), str(THIRD), "ingest", "aggregate")
        with pytest.raises(QualityError):
            lake.run("validate", str(SECOND))
        lake.run("publish", str(SECOND))
    tables, expected = (lake.tables() for lake in both)
    assert_same_tables(tables, expected)
    for table in PUBLISHED:
        assert {(row["click_date"], row["click_hour"]) for row in both[0].rows(table)}


def test_a_log_is_landed_from_a_shell_and_its_visitors_have_keys_in_the_store(
    home: Home, in_s3: TemporaryLake, tmp_path: Path
) -> None:
    lines = [
        f'10.0.0.1 - - [01/Mar/2026:0{hour}:10:00 +0000] "GET /{hour} HTTP/1.1" 200 1 "-" "curl"\n' for hour in (5, 7)
    ]
    log = tmp_path / "access.log"
    assert home.locks_database is not None
    variables = {
        "CLICKMILL_HOME": str(home.path), "CLICKMILL_DATA": str(home.data), "CLICKMILL_LOCKS": home.locks_database,
        "CLICKMILL_SOURCES": str(in_s3.settings.sources_file),
    }  # fmt: skip
    for content, landed in ((lines[:1], 1), (lines, 2), (lines, 2)):
        log.write_text("".join(content))
        subprocess.run(
            [sys.executable, "-m", "clickmill", "land", "--source", "access", str(log)],
            check=True, cwd=REPOSITORY, env=os.environ | variables,
        )  # fmt: skip
        folders = {str(entry.path.parent) for entry in find(home.landing / "access", "log_date=*/log_hour=*/_SUCCESS")}
        files = list(find(home.landing / "access", "log_date=*/log_hour=*/*.gz"))
        assert (len(folders), len(files)) == (landed, landed)
        assert not list(find(home.landing / "access" / ".logs" / "ready", "*"))
    in_s3.run("ingest", "2026-03-01T05", "2026-03-01T08", source="access", allow_missing=True)
    key = (home.visitor_keys / "2026-03-01").read_bytes().splitlines()[0]
    visitor = blake2b(b"10.0.0.1\0curl\0002026-03-01", key=key, digest_size=16).hexdigest()
    assert [row["visitor_id"] for row in in_s3.rows(CLICKS) if row["source"] == "access"] == [visitor] * 2


VISITOR, OTHER = "visitor-one", "visitor-two"


RULE = "if(starts_with(raw, 'day='), substr(raw, 5), NULL)"


def clicks_of(hour: Hour, *visitors: str, day: bytes = b"day=") -> dict[str, bytes]:
    """Of each visitor a click of the old app and two of the new app, whose URL is elsewhere; and what is no click.

    One click is to be repaired: it has ``day`` before it.
    """
    files = {"a.json.gz": b"", "b.json": b""}
    for visitor in visitors:
        minute = (VISITOR, OTHER).index(visitor)
        url, fields = f"http://shop.test/of/{visitor}", {"visitor_id": visitor}
        old = click(f"o-{visitor}-{hour}", f"{hour}:{minute:02}:00Z", url, link=url, **fields)
        new = click(f"n-{visitor}-{hour}", f"{hour}:{minute:02}:30Z", url, **fields)
        repaired = day + click(f"r-{visitor}-{hour}", f"{hour}:{minute:02}:45Z", url, **fields)
        no_click = f"no JSON of {visitor}\n".encode()
        # The number that a repaired line has in the end is none that one had before.
        files["a.json.gz"] += no_click + old + repaired if visitor == VISITOR else repaired + no_click + old
        files["b.json"] += new
    return {name: gzip.compress(content) if name.endswith(".gz") else content for name, content in files.items()}


def land(lake: TemporaryLake, hour: Hour, files: dict[str, bytes]) -> None:
    folder = hour_folder(lake.settings.landing, "web", hour)
    for name, content in {**files, "_SUCCESS": b""}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def say(file: Path, text: str, instead_of: str = "") -> None:
    known = file.read_text(encoding="utf-8")
    file.write_text(known.replace(instead_of, text) if instead_of else known + text, encoding="utf-8")


def run_jobs(lake: TemporaryLake) -> None:
    lake.run_jobs(str(FIRST), str(THIRD), "ingest", "aggregate", "validate", "publish")


def test_replayed_erased_and_grown_old_it_is_as_on_a_disk(s3: S3Server, in_s3: TemporaryLake, tmp_path: Path) -> None:
    """Replay and erasure are killed once each; what the bucket has is read where its server keeps it."""
    data = in_s3.settings.data.parent / "erased"
    of_store = {"data_folder": data, "locks_database": in_s3.settings.locks_database}
    lake = TemporaryLake(in_s3.spark, replace(make_settings(tmp_path / "store"), **of_store))
    bucket = s3.folder / "data" / "erased"
    say(lake.settings.sources_file, 'url = "link"', 'url = "url"')
    for hour in (FIRST, SECOND):
        land(lake, hour, clicks_of(hour, VISITOR, OTHER))
    run_jobs(lake)
    say(lake.settings.sources_file, 'url = "url"', 'url = "link"')
    # A rule of the bucket has removed what landed in one hour.
    remove_folder(hour_folder(lake.settings.landing, "web", SECOND))

    request = replay_job.Request("web", HourRange(FIRST, THIRD), rule=RULE)
    signed = {"by": "Ada", "because": "the mapping is fixed"}
    with pytest.raises(Killed), killed_after(3):
        replay_job.replay(lake.spark, lake.settings, request, **signed)
    replay_job.replay(lake.spark, lake.settings, request, **signed)
    recovered = [row["event_id"] for row in lake.rows(CLICKS) if row["replay_id"] is not None]
    assert sorted(recovered) == sorted(
        f"{app}-{visitor}-{hour}" for app in "nr" for visitor in (VISITOR, OTHER) for hour in (FIRST, SECOND)
    )
    folders = {str(Path(file).relative_to(bucket)).split("/")[0] for file in files_with(bucket, VISITOR)}
    assert folders == {"landing", "lake", "reports"}

    with pytest.raises(Killed), killed_after(5):
        erase(lake, Requests.of([VISITOR]))
    report = erase(lake, Requests.of([VISITOR]))
    assert report[0].endswith("is complete:")
    assert any("uploads that were broken off" in line for line in report)
    assert files_with(s3.folder, VISITOR) == []
    assert files_with(lake.settings.home, VISITOR) == []

    fresh = TemporaryLake(in_s3.spark, make_settings(tmp_path / "fresh"))
    for hour in (FIRST, SECOND):
        land(fresh, hour, clicks_of(hour, OTHER, day=b""))
    run_jobs(fresh)
    assert_same_tables(but_of_replays(lake), but_of_replays(fresh))

    counts = [lake.rows(table) for table in PUBLISHED]
    for aged_lake in (lake, fresh):
        say(aged_lake.settings.pipeline_file, "[retention]\nclicks_days = 9\nquarantined_days = 5\n")
        aged_lake.settings.__dict__.pop("pipeline", None)
        retention_job.maintain(
            aged_lake.settings, dry_run=False, now=FIRST.start + timedelta(days=20), kept=timedelta(0)
        )
        assert [row["clicks_removed_at"] is not None for row in aged_lake.rows(INGEST_ACCOUNTING)] == [True, True]
    assert list((bucket / "lake" / CLICKS.name).glob("source=*/**/*.parquet")) == []
    assert [lake.rows(table) for table in PUBLISHED] == counts
    say(lake.settings.pipeline_file, "landing_days = 9\n")
    lake.settings.__dict__.pop("pipeline", None)
    with pytest.raises(UsageError, match="let a lifecycle rule of the bucket remove its objects"):
        retention_job.maintain(lake.settings, dry_run=False)


def test_a_stream_of_another_machine_is_refused_though_its_checkpoint_is_not_seen(
    home: Home, in_s3: TemporaryLake, tmp_path: Path
) -> None:
    elsewhere = replace(in_s3.settings, home=tmp_path)
    sources = [load_sources(elsewhere)["web"]]
    with locks_of(home).held("stream-web"), pytest.raises(StreamRunsAlreadyError, match="of web runs already"):
        stream_job.stream(in_s3.spark, elsewhere, sources, available_now=True)


def test_a_second_server_of_the_lake_is_refused(
    home: Home, server: SparkServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(only_spark, "PATIENCE_SECONDS", 0.2)
    other = Home(tmp_path, home.data, home.locks_database)
    with pytest.raises(ClickmillError, match=r"has a Spark driver already: .*connect_server"):
        the_only_spark(other).__enter__()


def test_a_server_that_lost_its_lock_ends_and_says_so(home: Home, server: SparkServer) -> None:
    """And is started again, as supervisord does: sessions of it are to be closed."""
    assert home.locks_database is not None
    with closing(psycopg2.connect(home.locks_database)) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'spark-server|%'"
        )
    wait_until(lambda: not server.runs, "the server ends", 60)
    assert "the lock spark-server is lost with its connection" in server.log.read_text(encoding="utf-8")
    server.start()
