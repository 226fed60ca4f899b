"""What a checkpoint was made for, against what its stream is now."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from include.errors import UsageError
from include.settings import Settings
from include.source_fields import LineFields
from include.sources import KafkaTopic, Source
from spark_jobs.stream.compatibility import REFUSED, Dependence, dependences, require_fit
from tests.support.temporary_lake import make_settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return make_settings(tmp_path / "home")


def source(event_id: str | None = "id", topic: str = "t", **options: Any) -> Source:
    fields = LineFields(time="ts", url="url", event_id=event_id)
    return Source(name="web", format="json", fields=fields, kafka=KafkaTopic(topic=topic), **options)


def begun(settings: Settings, of: Source) -> dict[str, Dependence]:
    """Checkpoints that were made for the source."""
    made = dependences(settings, of)
    for dependence in made.values():
        dependence.keep_if_absent()
        (dependence.folder / "offsets").mkdir()
        (dependence.folder / "offsets" / "0").touch()
    return made


def test_what_has_not_begun_may_be_begun_for_anything(settings: Settings) -> None:
    for dependence in dependences(settings, source()).values():
        dependence.keep()
    require_fit(settings, source(None, "another"))


def test_a_checkpoint_of_an_earlier_version_goes_on_and_is_for_that_from_then_on(settings: Settings) -> None:
    for dependence in begun(settings, source()).values():
        (dependence.folder / "made_for.json").unlink()
    require_fit(settings, source(topic="u"))
    dependences(settings, source(topic="u"))["clicks"].keep_if_absent()
    with pytest.raises(UsageError, match="topic was u and is t"):
        require_fit(settings, source())


def test_what_has_changed_is_said(settings: Settings) -> None:
    folder = begun(settings, source())["clicks"].folder
    with pytest.raises(UsageError) as told:
        require_fit(settings, source(topic="u"))
    assert str(told.value) == (
        "the stream of web (clicks) cannot go on with its checkpoint: topic was t and is u; change it back, or begin a "
        f"new checkpoint: stop the stream and remove {folder} (the stream goes on after its last batch in the lake, "
        "and takes the event ids that it knows from clicks; another topic is begun as starting_offsets says)"
    )


def test_what_does_not_matter_may_change(settings: Settings) -> None:
    begun(settings, source())
    require_fit(settings, source("another_id", lateness_hours=5, max_line_bytes=1000, scheduled=True))
    require_fit(settings, source(None, lateness_hours=99))


def test_what_spark_refused_is_refused_until_it_is_another_or_forgotten(settings: Settings) -> None:
    made = begun(settings, source())
    message = made["url"].keep_refusal("no such state")
    assert message.startswith(
        "the stream of web (url) cannot go on with its checkpoint: no such state; if Clickmill has"
    )
    assert message.endswith("(its counts are made again from clicks)")
    with pytest.raises(UsageError) as told:
        require_fit(settings, source())
    assert str(told.value) == message
    require_fit(settings, source(), live=False)
    (made["url"].folder / REFUSED).unlink()
    require_fit(settings, source())
