"""What a command needs for its work: settings, the services of the home, a Spark session."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import fields, is_dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

from include.errors import EndedByHandError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from include.job_arguments import JobArguments
    from include.settings import Settings


def announce(text: str) -> None:
    """Say at once what begins: what it takes is imported in seconds. Not where a program reads."""
    print(text, file=sys.stderr, flush=True)


def print_lines(lines: Iterable[str]) -> None:
    """What a job says of itself, as soon as it says it."""
    for line in lines:
        print(line, flush=True)


@contextmanager
def ended_by_hand(then: str = "what was started has been ended") -> Iterator[None]:
    """Say after Ctrl-C what has become of the work.

    Raises:
        EndedByHandError: after Ctrl-C.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise EndedByHandError(then) from None


def print_json(value: object) -> None:
    """What a program may read: records as objects, hours, ranges and paths as their texts."""
    import orjson

    options = orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_DATACLASS
    print(orjson.dumps(value, default=_as_value, option=options).decode())


def _as_value(value: Any) -> object:
    from include.hours import Hour, HourRange

    is_record = is_dataclass(value) and not isinstance(value, (Hour, HourRange))
    return {part.name: getattr(value, part.name) for part in fields(value)} if is_record else str(value)


def day_of(text: str) -> date:
    """A day of UTC.

    Raises:
        UsageError: if the text is none.
    """
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"not a day: {text!r}; expected a day, UTC, such as 2026-03-02") from None


def ready_settings() -> Settings:
    """The settings, of a whole configuration, and in the environment where the home's services answer.

    Raises:
        UsageError: if the configuration is wrong, or services run on other data.
    """
    from include.settings import Settings
    from ops.services.running import complete_environment

    complete_environment(os.environ)
    settings = Settings.from_environment()
    _ = settings.pipeline
    return settings


def signed_settings(by: str, because: str) -> Settings:
    """The settings, for what is kept on record with a name and a reason.

    Raises:
        UsageError: if one of them is empty, or as above.
    """
    from include.job_arguments import require_signed

    require_signed(by, because)
    return ready_settings()


def ready_job(
    source: str, start: str | None, end: str | None, hour: str | None = None
) -> tuple[Settings, JobArguments]:
    """The settings, and the log hours of a source that there is.

    Raises:
        UsageError: if one of them is wrong, or the configuration.
    """
    from include.job_arguments import JobArguments

    arguments = JobArguments.of(source, start, end, hour)
    settings = ready_settings()
    from include.sources import choose_sources

    choose_sources(settings, arguments.source)
    return settings, arguments


def session(settings: Settings) -> AbstractContextManager[SparkSession]:
    """A session of the home's Spark server, or of the driver that spark-submit gives."""
    from spark_jobs.engine.session import spark_session

    return spark_session(settings)
