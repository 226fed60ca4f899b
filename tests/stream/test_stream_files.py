"""A landing zone streamed as its files appear, by a real Spark, against the batch."""

from __future__ import annotations

import gzip
import os
import shutil
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from include.errors import ClickmillError
from include.hours import Hour
from include.landing import hour_folder
from include.sources import Source, load_sources
from include.streams.position import has_passed, waits_for
from include.tables import AGGREGATES, CLICKS, INGEST_ACCOUNTING, QUARANTINED_CLICKS, STREAM_BATCHES, STREAM_PROGRESS
from samples.sample_logs import make_sample
from samples.sample_spec import SampleSpec
from tests.landing.landing_zone import land
from tests.stream.broken_checkpoint import TABLES, forget_end_of_batch, forget_last_commit
from tests.stream.files_lake import FilesLake, in_order_of_names
from tests.support.spark_server import UsedSpark
from tests.support.temporary_lake import SOURCES, TemporaryLake, click, copied_home, make_settings
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

SPEC = SampleSpec(start=Hour.parse("2026-03-01T08"), hours=2, clicks_per_hour=800, seed=37)
HOUR = Hour.parse("2026-03-01T08")
NOON = "2026-03-01T08:10:00Z"
#: What only the batch measures: fields of sampled lines, and of which hour a duplicate's first arrival was.
OF_BATCH = {"sampled_lines", "sampled_fields", "duplicates_of"}


@pytest.fixture
def landed(tmp_path: Path, spark: SparkSession) -> FilesLake:
    """A home whose landing zone is streamed, with nothing in it."""
    lake = FilesLake(spark, make_settings(tmp_path / "files"))
    lake.configure()
    return lake


def ids(lake: TemporaryLake) -> list[str]:
    is_made = DeltaTable.is_deltatable(str(lake.settings.lake / CLICKS.name))
    return sorted(row["event_id"] for row in lake.rows(CLICKS)) if is_made else []


def lines_of(*names: str) -> bytes:
    return b"".join(click(name, NOON) for name in names)


def test_the_stream_of_files_gives_the_tables_that_the_batch_gives(tmp_path: Path, spark: SparkSession) -> None:
    batch = TemporaryLake(spark, make_settings(tmp_path / "batch"))
    make_sample(SPEC, batch.settings.landing)
    in_order_of_names(batch.settings.landing)
    streamed = FilesLake(spark, make_settings(tmp_path / "streamed"))
    shutil.copytree(batch.settings.landing, streamed.settings.landing)
    streamed.configure(max_files_per_batch=2)
    end = SPEC.start.plus(SPEC.hours)

    batch.run_all(str(SPEC.start), str(end))
    streamed.read_all()
    streamed.run_all(str(SPEC.start), str(end))

    assert len({row["batch_id"] for row in streamed.rows(STREAM_BATCHES)}) > 1
    assert len(batch.rows(CLICKS)) > 1000
    assert len(batch.rows(QUARANTINED_CLICKS)) > 0
    assert streamed.rows(CLICKS) == batch.rows(CLICKS)
    assert streamed.rows(QUARANTINED_CLICKS) == batch.rows(QUARANTINED_CLICKS), "with their files and line numbers"
    accounts = [
        [{name: value for name, value in row.items() if name not in OF_BATCH} for row in lake.rows(INGEST_ACCOUNTING)]
        for lake in (streamed, batch)
    ]
    assert accounts[0] == accounts[1], "files, bytes and is_closed too"
    for computed, published in AGGREGATES.items():
        for table in (computed, published):
            rows = [
                [{name: value for name, value in row.items() if name != "visitor_sketch"} for row in lake.rows(table)]
                for lake in (streamed, batch)
            ]
            assert rows[0] == rows[1], table.name


def test_a_log_that_has_grown_is_not_landed_again_for_a_stream(landed: FilesLake, tmp_path: Path) -> None:
    """The stream would not read the file again that has its name; its new lines are a log of their own."""

    def land_log(name: str, *of: str) -> None:
        (tmp_path / name).write_bytes(lines_of(*of))
        land(landed.source, tmp_path / name, landed.settings.landing, datetime(2026, 3, 2, tzinfo=UTC))

    land_log("a.log", "a", "b")
    landed.read_all()
    with pytest.raises(ClickmillError, match=r"from 2 to 4 lines.* tail -n \+3"):
        land_log("a.log", "a", "b", "c", "d")
    land_log("a.log", "a", "b")
    land_log("rest.log", "c", "d")
    landed.read_all()
    assert ids(landed) == ["a", "b", "c", "d"]
    assert has_passed(landed.settings, landed.source, HOUR, HOUR.end)


def test_a_log_whose_cut_line_is_whole_now_is_not_landed_in_place_of_what_a_stream_has_read(tmp_path: Path) -> None:
    settings = make_settings(tmp_path / "cut")
    FilesLake(None, settings).configure()  # type: ignore[arg-type]
    source, log, now = load_sources(settings)["web"], tmp_path / "a.log", datetime(2026, 3, 2, tzinfo=UTC)
    whole = lines_of("a", "b", "c")
    log.write_bytes(whole[:-20])
    land(source, log, settings.landing, now)
    files = {file: file.read_bytes() for file in settings.landing.rglob("*.gz")}
    for content, message in (
        (whole, r"has line 3 whole.* tail -n \+3$"),
        (whole + b"d\n", r"whole.* from 3 to 4 .*\+3$"),
    ):
        log.write_bytes(content)
        with pytest.raises(ClickmillError, match=message):
            land(source, log, settings.landing, now)
    assert {file: file.read_bytes() for file in settings.landing.rglob("*.gz")} == files
    log.write_bytes(whole[:-20])
    land(source, log, settings.landing, now)
    log.write_bytes(b"".join(whole.splitlines(keepends=True)[2:]))
    land(source, log, settings.landing, now)
    assert len(list(settings.landing.rglob("*.gz"))) == 2, "the whole line is a log of its own"


def test_no_date_of_a_file_hides_another_one(landed: FilesLake) -> None:
    """Whichever comes first: of next month or of 2099, of 1970, of today."""
    days = {"next_month": 40, "next_century": 27_000, "long_ago": -20_000, "today": 0, "last_year": -400}
    for place, (name, shift) in enumerate(days.items()):
        folder = landed.land(str(HOUR.plus(place)), {f"{name}.json": click(name, f"{HOUR.plus(place)}:10:00Z")})
        moment = max(0.0, time.time() + shift * 86400)
        os.utime(folder / f"{name}.json", (moment, moment))
        if place in (1, 3):
            landed.read_all()  # the next ones are for a stream that knows these
    landed.read_all()
    assert ids(landed) == sorted(days)
    assert all(has_passed(landed.settings, landed.source, HOUR.plus(place), HOUR.end) for place in range(len(days)))


def test_files_are_read_as_they_appear_and_an_hour_is_finalised_when_it_is_closed_and_read(landed: FilesLake) -> None:
    from spark_jobs.stream import query as stream_query

    settings, source = landed.settings, landed.source
    folder = hour_folder(settings.landing, "web", HOUR)
    query = stream_query.start(landed.spark, settings, source)

    def wait_for(*names: str) -> None:
        wait_until(lambda: ids(landed) == sorted(names) or not query.isActive, f"{names} are clicks", 120)
        assert query.isActive, query.exception()

    try:
        assert not has_passed(settings, source, HOUR, HOUR.end + timedelta(days=1)), "nobody has closed it"
        landed.land(str(HOUR), {"one.json": lines_of("a", "b")}, is_closed=False)
        wait_for("a", "b")
        hidden = folder / ".two.json.gz"
        hidden.write_bytes(gzip.compress(lines_of("c") + b"no click\n"))
        (folder / "_three.json").write_bytes(lines_of("never"))
        (folder / "_four=five.json").write_bytes(lines_of("nor this"))
        time.sleep(2.5)
        assert ids(landed) == ["a", "b"], "hidden names are no data"
        assert not has_passed(settings, source, HOUR, HOUR.end + timedelta(days=1))
        hidden.rename(folder / "two.json.gz")
        (folder / "_SUCCESS").touch()
        assert not has_passed(settings, source, HOUR, HOUR.end), "a file is not read yet"
        wait_for("a", "b", "c")
    finally:
        query.stop()
    landed.read_all()
    assert landed.read_places() == [("one.json", 1, 2), ("two.json.gz", 1, 2)]
    (folder / "empty.json").touch()
    assert has_passed(settings, source, HOUR, HOUR.end), "of an empty file there is nothing to read"
    (folder / "new.json").write_bytes(lines_of("d"))
    assert not has_passed(settings, source, HOUR, HOUR.end)
    late = HOUR.end + timedelta(minutes=source.grace_minutes)
    assert "new.json" in str(waits_for(settings, source, HOUR, late)), "what is there is read first, however late"
    (folder / "new.json").unlink()
    (folder / "_SUCCESS").unlink()
    assert waits_for(settings, source, HOUR, late - timedelta(seconds=1))
    assert waits_for(settings, source, HOUR, late) is None, "nobody knows of more"
    rows = [row for row in landed.rows(STREAM_PROGRESS) if row["rows"]]
    assert all(row["lag"] is None and row["partition"] is None for row in rows)


def test_the_servers_token_is_not_in_its_log(landed: FilesLake, used_spark: UsedSpark) -> None:
    if used_spark.logs is None:
        pytest.skip("of a Spark server that was given the log is not known")
    landed.land(str(HOUR), {"one.json": lines_of("a")})
    landed.read_all()
    log = (used_spark.logs / "spark-connect.out").read_text(encoding="utf-8")
    assert "ForeachBatch worker is starting with url" in log, "Spark prints where it connects to"
    assert used_spark.remote.partition("token=")[2] not in log


def test_names_with_odd_characters_and_files_that_break_off_are_read(landed: FilesLake) -> None:
    content = gzip.compress(b"".join(click(f"g{number}{os.urandom(40).hex()}", NOON) for number in range(3000)))
    files = {"a b%20c.json": lines_of("a", "b"), "torn.json.gz": b"", "nothing.gz": b""}
    folder = landed.land(str(HOUR), files)
    (folder / "torn.json.gz").write_bytes(content[: len(content) // 2])
    (folder / "nothing.gz").write_bytes(content[:5])
    landed.read_all()
    assert has_passed(landed.settings, landed.source, HOUR, HOUR.end)
    landed.run("ingest", str(HOUR))
    account = landed.accounting()[str(HOUR)]
    assert account["damaged_files"] == ["nothing.gz", "torn.json.gz"]
    assert account["files"] == 3
    assert 1000 < account["lines"] < 3000
    assert account["lines"] == account["accepted"] + account["quarantined"]
    assert {"a", "b"} < set(ids(landed))


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> FilesLake:
    """A home whose three batches of a file each are read, never changed: a test works on a copy."""
    lake = FilesLake(spark, make_settings(tmp_path_factory.mktemp("read") / "home"))
    lake.configure(max_files_per_batch=1)
    lake.land(
        str(HOUR),
        {f"{number}.json": lines_of(f"{number}a", f"{number}b", f"{number}a") + b"no click\n" for number in range(3)},
    )
    in_order_of_names(lake.settings.landing)
    lake.read_all()
    assert ids(lake) == ["0a", "0b", "1a", "1b", "2a", "2b"]
    assert {row["batch_id"] for row in lake.rows(STREAM_BATCHES)} == {0, 1, 2}
    return lake


def copied(read: FilesLake, folder: Path) -> FilesLake:
    return FilesLake(read.spark, copied_home(read.settings, folder))


@pytest.mark.parametrize("written", [0, 2], ids=["before all", "quarantined too"])
def test_a_batch_that_was_killed_after_some_of_its_commits_is_in_each_table_once(
    tmp_path: Path, read: FilesLake, written: int
) -> None:
    lake = copied(read, tmp_path / "home")
    # The checkpoint names the files where they were first.
    shutil.rmtree(lake.settings.landing)
    (lake.checkpoint / "landing_zone").write_text(f"{lake.settings.landing}\n")
    forget_end_of_batch(lake.checkpoint, 2)
    for table in TABLES[written:]:
        forget_last_commit(lake.settings.lake / table.name)
        assert len(lake.rows(table)) < len(read.rows(table))

    lake.read_all()

    for table in TABLES:
        assert lake.rows(table) == read.rows(table), table.name


def test_a_home_that_was_moved_is_refused_until_its_checkpoint_is_gone(tmp_path: Path, read: FilesLake) -> None:
    lake = copied(read, tmp_path / "home")
    with pytest.raises(ClickmillError, match=r"checkpoint of web is that of .*read.*, not of .*home.* or remove"):
        lake.read_all()
    shutil.rmtree(lake.checkpoint)
    lake.read_all()
    assert lake.rows(STREAM_BATCHES) == read.rows(STREAM_BATCHES)


def test_without_its_checkpoint_no_file_is_read_again(
    tmp_path: Path, read: FilesLake, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = copied(read, tmp_path / "home")
    shutil.rmtree(lake.checkpoint)
    folder = hour_folder(lake.settings.landing, "web", HOUR)
    (folder / "new.json").write_bytes(lines_of("n", "0a"))
    lake.land("2026-03-01T09", {"0.json": click("m", "2026-03-01T09:00:00Z")})
    lake.read_all()
    assert "has no checkpoint: it goes on after the batches in the lake" in capsys.readouterr().out
    # A copy of an earlier click is none: the ids are taken from the clicks.
    assert ids(lake) == sorted([*ids(read), "n", "m"])
    lake.read_all()
    assert len(lake.rows(CLICKS)) == 8
    assert sum(row["lines"] for row in lake.rows(STREAM_BATCHES)) == 12 + 3


def test_old_micro_batches_become_one_row_and_nothing_is_forgotten(
    landed: FilesLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spark_jobs.hours import stream_batches
    from spark_jobs.lake.lake import Lake

    monkeypatch.setattr(stream_batches, "MOST_FILES", 0)
    landed.configure(max_files_per_batch=1)
    broken = gzip.compress(lines_of("d"))[:-4]
    files = {"1.json": lines_of("a", "b") + b"no click\n", "2.json": lines_of("b", "c") + b"\n", "3.json.gz": broken}
    folder = landed.land(str(HOUR), {name: b"" for name in files})
    for name, content in files.items():
        (folder / name).write_bytes(content)
    landed.land("2026-03-01T09", {name: click(name, "2026-03-01T09:00:00Z") for name in ("4.json", "5.json")})
    in_order_of_names(landed.settings.landing)
    landed.read_all()
    landed.run("ingest", str(HOUR), "2026-03-01T10")
    kept_elsewhere = landed.settings.home / "elsewhere"
    folder.rename(kept_elsewhere)

    def counted() -> list[dict[str, Any]]:
        of_landing = {"files", "bytes", "is_closed", "unread_files"}
        rows = landed.rows(INGEST_ACCOUNTING)
        return [{name: value for name, value in row.items() if name not in of_landing} for row in rows]

    before, rows = counted(), landed.rows(STREAM_BATCHES)
    assert sorted(row["file"] for row in rows) == ["1.json", "2.json", "3.json.gz", "4.json", "5.json"]
    lake, now = Lake(landed.spark, landed.settings), datetime.now(UTC)
    stream_batches.write_as_few(lake, "web", now + timedelta(days=6))
    assert landed.rows(STREAM_BATCHES) == rows, "they are kept for a week"
    for _ in range(2):
        stream_batches.write_as_few(lake, "web", now + timedelta(days=8))
        lines_by_file = {row["file"]: row["lines"] for row in landed.rows(STREAM_BATCHES)}
        assert lines_by_file == {None: 6, "3.json.gz": 1, "4.json": 1, "5.json": 1}
        landed.run("ingest", str(HOUR), "2026-03-01T10")
        assert counted() == before
    kept_elsewhere.rename(folder)
    shutil.rmtree(landed.checkpoint)
    landed.read_all()
    assert ids(landed) == ["4.json", "5.json", "a", "b", "c", "d"]


def test_hours_that_the_batch_has_ingested_are_not_streamed_again(tmp_path: Path, spark: SparkSession) -> None:
    lake = FilesLake(spark, make_settings(tmp_path / "home"))
    lake.land(str(HOUR), {"one.json": lines_of("a", "b")})
    lake.run("ingest", str(HOUR))
    lake.land("2026-03-01T09", {"one.json": click("c", "2026-03-01T09:00:00Z")})
    lake.configure()
    lake.read_all()
    assert ids(lake) == ["a", "b", "c"]
    lake.run("ingest", str(HOUR), "2026-03-01T10")
    accounting = lake.accounting()
    assert (accounting[str(HOUR)]["lines"], accounting["2026-03-01T09"]["lines"]) == (2, 1)


def test_a_folder_of_an_hour_that_is_to_come_does_not_make_lines_of_now_too_late(landed: FilesLake) -> None:
    landed.configure(max_files_per_batch=1)
    landed.land("2100-01-01T08", {"one.json": click("to come", "2100-01-01T08:00:00Z")})
    for hour in ("08", "09"):
        landed.land(f"2026-03-01T{hour}", {"one.json": click(f"of {hour}", f"2026-03-01T{hour}:00:00Z")})
    for place, day in enumerate(("2100-01-01/log_hour=08", "2026-03-01/log_hour=08", "2026-03-01/log_hour=09")):
        moment = time.time() - 100 + place
        os.utime(landed.settings.landing / "web" / f"log_date={day}" / "one.json", (moment, moment))
    landed.read_all()
    assert ids(landed) == ["of 08", "of 09", "to come"]


def more_sources(lake: FilesLake) -> dict[str, Source]:
    """Sources web and shop of files, and one whose broker does not run."""
    web = SOURCES.split("[sources.access]")[0]
    shop, queue = (web.replace("sources.web", f"sources.{name}") for name in ("shop", "queue"))
    streams = '[sources.web.files]\n[sources.shop.files]\n[sources.queue.kafka]\ntopic = "t"\n'
    lake.settings.sources_file.write_text(web + shop + queue + streams)
    return load_sources(lake.settings)


def test_several_sources_are_streamed_into_the_same_tables(landed: FilesLake) -> None:
    from spark_jobs.stream import job as stream_job

    sources = more_sources(landed)
    landed.land(str(HOUR), {"one.json": lines_of("a", "b")})
    landed.land(str(HOUR), {"one.json": lines_of("a", "c")}, source="shop")
    stream_job.stream(landed.spark, landed.settings, [sources["web"], sources["shop"]], available_now=True, live=False)
    pairs = sorted((row["source"], row["event_id"]) for row in landed.rows(CLICKS))
    assert pairs == [("shop", "a"), ("shop", "c"), ("web", "a"), ("web", "b")]
    assert {row["source"] for row in landed.rows(STREAM_PROGRESS)} == {"shop", "web"}


def test_a_source_that_fails_does_not_end_another_nor_lose_its_place(
    landed: FilesLake, capsys: pytest.CaptureFixture[str]
) -> None:
    from spark_jobs.stream import job as stream_job

    sources = more_sources(landed)
    landed.land(str(HOUR), {"one.json": lines_of("a")})
    landed.read_all()
    offsets = landed.checkpoint / "offsets" / "0"
    before = offsets.read_text(encoding="utf-8")
    offsets.write_text("no offsets", encoding="utf-8")
    (offsets.parent / ".0.crc").unlink()
    landed.land("2026-03-01T09", {"one.json": click("c", "2026-03-01T09:00:00Z")})
    landed.land(str(HOUR), {"one.json": lines_of("b")}, source="shop")
    with pytest.raises(ClickmillError) as told:
        stream_job.stream(
            landed.spark,
            landed.settings,
            [sources["queue"], sources["web"], sources["shop"]],
            available_now=True,
            live=False,
        )
    queue_failed, web_failed = str(told.value).split("; the stream of web ")
    assert "the stream of queue did not start: topic t names no bootstrap_servers" in queue_failed
    assert web_failed.startswith("(clicks) failed: "), web_failed
    assert ("shop", "b") in {(row["source"], row["event_id"]) for row in landed.rows(CLICKS)}
    assert capsys.readouterr().err.count("the other streams go on") == 2

    offsets.write_text(before, encoding="utf-8")
    landed.read_all()
    assert sorted(row["event_id"] for row in landed.rows(CLICKS) if row["source"] == "web") == ["a", "c"]


def test_files_that_are_read_are_left_out_by_one_look_each(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    from spark_jobs.stream.lines import without_files

    day = HOUR.day
    columns = "log_date DATE, log_hour INT, file STRING"
    files = [(day, hour, name) for hour in (5, 6, 7) for name in ("a", "b")]
    read = [(day, 5, "a"), (day, 6, None), (day, 7, "c")]
    left = without_files(spark.createDataFrame(files, columns), spark.createDataFrame(read, columns))
    assert sorted((row["log_hour"], row["file"]) for row in left.collect()) == [(5, "b"), (7, "a"), (7, "b")]
    left.explain()
    joins = [line for line in capsys.readouterr().out.splitlines() if "Join" in line]
    assert len(joins) == 2
    assert not any(" OR " in line for line in joins), "each file of an hour would be compared with each that is read"


def test_a_stream_of_long_lines_hands_few_at_a_time_to_python(
    landed: FilesLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in its micro-batches, each of which configures its session as every job does."""
    from spark_jobs.stream import query
    from spark_jobs.stream.micro_batch import StreamIngest

    numbers = tmp_path / "numbers"

    class Telling(StreamIngest):
        def __call__(self, rows: DataFrame, batch_id: int) -> None:
            super().__call__(rows, batch_id)
            with numbers.open("a") as file:
                print(rows.sparkSession.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch"), file=file)

    monkeypatch.setattr(query, "StreamIngest", Telling)
    landed.configure(max_files_per_batch=1)
    text = landed.settings.sources_file.read_text(encoding="utf-8")
    long = text.replace("scheduled = true", f"scheduled = true\nmax_line_bytes = {4 << 20}")
    landed.settings.sources_file.write_text(long, encoding="utf-8")
    landed.land(str(HOUR), {"a.json": lines_of("a"), "b.json": lines_of("b")})
    landed.read_all()
    assert ids(landed) == ["a", "b"]
    assert set(numbers.read_text().split()) == {"32"}
