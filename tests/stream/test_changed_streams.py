"""A stream whose configuration has changed since its checkpoint was made: it goes on, or says why not, at once."""

from __future__ import annotations

import re
import shutil
from typing import Any

import pytest

from include.errors import UsageError
from include.hours import Hour
from include.streams.signs_of_life import sign_of_life
from include.tables import CLICKS, CLICKS_BY_URL_LIVE
from spark_jobs.stream.compatibility import MADE_FOR, REFUSED
from spark_jobs.stream.supervision import supervise
from tests.stream.kafka_broker import Record
from tests.stream.streamed_lake import StreamedLake
from tests.support.temporary_lake import click

HOUR = Hour.parse("2026-03-01T08")
EVENT_ID = 'event_id = "event_id"\n'


def produce(lake: StreamedLake, *event_ids: str) -> None:
    at = int(HOUR.start.timestamp() * 1000)
    lake.broker.produce(lake.topic, [Record(0, at, click(name, f"{HOUR}:00:00Z")) for name in event_ids])


def event_ids(lake: StreamedLake) -> list[str]:
    return sorted(row["event_id"] for row in lake.rows(CLICKS))


def configure(lake: StreamedLake, old: str, new: str, **kafka: Any) -> None:
    """The source with one line of its settings changed."""
    lake.configure(**kafka)
    text = lake.settings.sources_file.read_text(encoding="utf-8")
    assert old in text
    lake.settings.sources_file.write_text(text.replace(old, new, 1), encoding="utf-8")


def set_pipeline(lake: StreamedLake, text: str) -> None:
    file = lake.settings.pipeline_file
    file.write_text(file.read_text(encoding="utf-8") + text, encoding="utf-8")
    lake.settings.__dict__.pop("pipeline", None)


@pytest.mark.slow
def test_a_checkpoint_survives_what_the_guide_says_it_does(streamed: StreamedLake) -> None:
    produce(streamed, "a", "b")
    streamed.read_all(live=True)
    set_pipeline(streamed, "[live]\nwatermark_minutes = 60\nstate_partitions = 5\n")
    configure(
        streamed,
        'visitor = "visitor_id"\n',
        'client_address = "visitor_id"\n',
        max_rows_per_batch=1,
        trigger_seconds=0.5,
        state_partitions=5,
        fail_on_data_loss=False,
        starting_offsets="latest",
    )
    text = streamed.settings.sources_file.read_text(encoding="utf-8")
    streamed.settings.sources_file.write_text(
        text.replace("scheduled = true", "scheduled = true\nlateness_hours = 2\nmax_line_bytes = 1000", 1)
    )
    produce(streamed, "a", "c", "d")
    streamed.read_all(live=True)
    assert event_ids(streamed) == ["a", "b", "c", "d"]
    hourly = [row for row in streamed.rows(CLICKS_BY_URL_LIVE) if row["window_seconds"] == 3600]
    assert [row["click_count"] for row in hourly] == [4]

    # Without ids everything is a click; with them again, what was known before is.
    configure(streamed, EVENT_ID, "", state_partitions=3)
    produce(streamed, "a", "e")
    streamed.read_all()
    streamed.configure()
    produce(streamed, "a", "b", "c", "d", "e", "e")
    streamed.read_all()
    assert [row["event_id"] for row in streamed.rows(CLICKS)].count(None) == 2
    known = [row["event_id"] for row in streamed.rows(CLICKS) if row["event_id"]]
    assert sorted(known) == ["a", "b", "c", "d", "e"]


@pytest.mark.slow
def test_what_it_does_not_survive_is_refused_with_what_changed_and_the_ways_out(streamed: StreamedLake) -> None:
    produce(streamed, "a")
    streamed.read_all()
    topic, folder = streamed.topic, streamed.settings.streams / "web"
    ways_out = f"; change it back, or begin a new checkpoint: stop the stream and remove {folder} ("

    def refused() -> str:
        with pytest.raises(UsageError) as by_stream:
            streamed.read_all()
        with pytest.raises(UsageError) as by_supervision:
            supervise(streamed.settings, "web")
        assert str(by_stream.value) == str(by_supervision.value)
        assert "\n" not in str(by_stream.value)
        return str(by_stream.value)

    before = sign_of_life(streamed.settings, "web")
    cannot = "the stream of web (clicks) cannot go on with its checkpoint: "
    streamed.topic = f"{topic}-2"
    streamed.configure()
    assert refused().startswith(f"{cannot}topic was {topic} and is {topic}-2{ways_out}")
    streamed.topic = topic
    assert sign_of_life(streamed.settings, "web") == before, "no process was started"

    streamed.configure()
    produce(streamed, "a", "b")
    streamed.read_all()
    assert event_ids(streamed) == ["a", "b"], "changed back, it goes on, and knows its duplicates"


@pytest.mark.slow
def test_what_spark_refuses_is_reported_and_not_tried_again(streamed: StreamedLake) -> None:
    """As a checkpoint of an earlier version, which does not say what it was made for."""
    produce(streamed, "a")
    streamed.read_all(live=True)
    folder = streamed.settings.streams / "web-live-url"
    (folder / MADE_FOR).unlink()
    state = (folder / "state").rename(folder.with_name("elsewhere"))
    produce(streamed, "b")
    with pytest.raises(UsageError) as first:
        streamed.read_all(live=True)
    told = str(first.value)
    assert told.startswith(
        "the stream of web (url) cannot go on with its checkpoint: Spark refuses the checkpoint, its state is of "
        "another query (STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY: "
    )
    assert f"remove {folder / REFUSED}, or begin a new checkpoint: stop the stream and remove {folder} (" in told
    assert "\n" not in told
    before = sign_of_life(streamed.settings, "web")
    with pytest.raises(UsageError) as again:
        supervise(streamed.settings, "web")
    assert str(again.value) == told
    assert sign_of_life(streamed.settings, "web") == before, "no process was started"

    shutil.rmtree(folder / "state", ignore_errors=True)
    state.rename(folder / "state")
    (folder / REFUSED).unlink()
    streamed.read_all(live=True)
    assert event_ids(streamed) == ["a", "b"]
    hourly = [row for row in streamed.rows(CLICKS_BY_URL_LIVE) if row["window_seconds"] == 3600]
    assert [row["click_count"] for row in hourly] == [2]


@pytest.mark.slow
def test_ids_that_are_gone_cost_nothing_and_of_tables_the_way_out_is_said_and_leads_on(
    streamed: StreamedLake,
) -> None:
    """Somebody has removed what a checkpoint relies on, to save space or to begin again."""
    produce(streamed, "a")
    streamed.read_all()
    streams = streamed.settings.streams

    def refused_query(told: str) -> str:
        """The query that is refused; its checkpoint is removed, as the message says."""
        with pytest.raises(UsageError) as refusal:
            streamed.read_all(live=True)
        message = str(refusal.value)
        refused = re.match(r"the stream of web \((\w+)\) cannot go on with its checkpoint: Spark refuses", message)
        assert refused is not None, message
        query = refused[1]
        folder = streams / ("web" if query == "clicks" else f"web-live-{query}")
        assert f" ({told}: " in message
        assert f"begin a new checkpoint: stop the stream and remove {folder} (" in message
        assert "\n" not in message
        shutil.rmtree(folder)
        return query

    shutil.rmtree(streams / "web" / "ids")
    produce(streamed, "a", "b")
    streamed.read_all(live=True)
    assert event_ids(streamed) == ["a", "b"], "ids are taken from clicks"

    shutil.rmtree(streamed.settings.lake / CLICKS.name)
    produce(streamed, "c", "d", "e")
    # Both counts fail, and the first to do so is named.
    told = "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"
    assert {refused_query(told), refused_query(told)} == {"url", "country_code"}
    streamed.read_all(live=True)
    assert event_ids(streamed) == ["c", "d", "e"]
    hourly = [row for row in streamed.rows(CLICKS_BY_URL_LIVE) if row["window_seconds"] == 3600]
    assert [row["click_count"] for row in hourly] == [3]
