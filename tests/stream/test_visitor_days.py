"""Visitors of an access log over midnight, in one batch and in one stream that knew of no such day when it began."""

from __future__ import annotations

import shutil
from datetime import date
from hashlib import blake2b
from typing import TYPE_CHECKING

import pytest

from include.sources import load_sources
from include.tables import CLICKS, QUARANTINED_CLICKS
from include.visitor_keys import VisitorKeys
from spark_jobs.stream import query as stream_query
from spark_jobs.stream.checkpoint import StreamCheckpoint
from tests.support.temporary_lake import SOURCES, TemporaryLake, make_settings
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ADDRESS = "203.0.113.77"
SAT, SUN, MON = date(2026, 2, 28), date(2026, 3, 1), date(2026, 3, 2)
SUNDAY, MONDAY = "2026-03-01T00", "2026-03-02T00"


def _line(time: str, path: str, rest: str = '"-" "curl/8"') -> bytes:
    return f'{ADDRESS} - - [{time} +0000] "GET /{path} HTTP/1.1" 200 1 {rest}\n'.encode()


#: Two clicks before midnight, one after it, and a line that is none.
OVER_MIDNIGHT = (
    _line("28/Feb/2026:23:59:58", "a")
    + _line("28/Feb/2026:23:59:59", "b")
    + _line("01/Mar/2026:00:00:00", "c")
    + _line("01/Mar/2026:00:00:01", "d", rest="")
)


def _visitors(lake: TemporaryLake) -> dict[str, str]:
    return {row["url"].rpartition("/")[2]: row["visitor_id"] for row in lake.rows(CLICKS)}


def _expected(settings_keys: VisitorKeys, day: date) -> str:
    """By the library that hashes, and the file that has the key."""
    key = (settings_keys.folder / f"{day}").read_bytes().splitlines()[0]
    return blake2b(f"{ADDRESS}\0curl/8\0{day}".encode(), key=key, digest_size=16).hexdigest()


def _streamed(lake: TemporaryLake) -> None:
    lake.settings.sources_file.write_text(f"{SOURCES}[sources.access.files]\ntrigger_seconds = 0.1\n", encoding="utf-8")


def test_a_visitor_over_midnight_is_one_a_day_in_batch_and_stream(tmp_path: Path, spark: SparkSession) -> None:
    batch, streamed = (TemporaryLake(spark, make_settings(tmp_path / name)) for name in ("batch", "streamed"))
    batch.land(SUNDAY, {"a.log": OVER_MIDNIGHT}, source="access")
    batch.run("ingest", SUNDAY, source="access")
    keys = VisitorKeys.of(batch.settings)
    first, second = _expected(keys, SAT), _expected(keys, SUN)
    assert _visitors(batch) == {"a": first, "b": first, "c": second}
    assert len({first, second}) == 2

    # A home with the same keys, whose stream begins before the next day has one.
    streams_keys = VisitorKeys.of(streamed.settings)
    shutil.copytree(keys.folder, streams_keys.folder)
    _streamed(streamed)
    source = load_sources(streamed.settings)["access"]
    streamed.land(SUNDAY, {"a.log": OVER_MIDNIGHT}, source="access")
    with StreamCheckpoint.of(streamed.settings, "access").owned(streamed.settings):
        query = stream_query.start(spark, streamed.settings, source)
        try:
            wait_until(lambda: len(_visitors(streamed)) == 3, "the first file is streamed")
            made = streams_keys.of_day(SUN)
            assert list(streams_keys.known([MON])) == []
            streamed.land(MONDAY, {"b.log": _line("02/Mar/2026:00:10:00", "e")}, source="access")
            wait_until(lambda: len(_visitors(streamed)) == 4, "the second file is streamed")
        finally:
            query.stop()
    assert streams_keys.of_day(SUN) == made
    assert _visitors(streamed) == {**_visitors(batch), "e": _expected(streams_keys, MON)}
    texts = {lake.rows(QUARANTINED_CLICKS)[0]["raw"] for lake in (batch, streamed)}
    assert texts == {OVER_MIDNIGHT.splitlines()[3].decode().replace(ADDRESS, "203.0.113.0")}


def test_with_a_destroyed_key_an_hour_that_is_run_again_has_other_visitors_and_no_other_hour(
    lake: TemporaryLake,
) -> None:
    lake.land(SUNDAY, {"a.log": OVER_MIDNIGHT}, source="access")
    lake.land("2026-03-01T01", {"b.log": _line("01/Mar/2026:01:00:00", "f")}, source="access")
    lake.run("ingest", SUNDAY, "2026-03-01T02", source="access")
    before, keys = _visitors(lake), VisitorKeys.of(lake.settings)
    assert before["c"] == before["f"]
    (keys.folder / f"{SUN}").unlink()
    lake.run("ingest", SUNDAY, source="access")
    after = _visitors(lake)
    assert after["c"] == _expected(keys, SUN) != before["c"]
    assert {**after, "c": before["c"]} == before
