"""Reading the index."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import fields
from datetime import datetime
from typing import Any

from include.holds import Event
from include.hours import Hour, HourRange
from include.quality_index.catching_up import catch_up
from include.quality_index.model import Counts, Point, Result, Run, state_of
from include.settings import Settings


@contextmanager
def open_index(settings: Settings) -> Iterator[QualityIndex]:
    """The index as of now, to read; caught up first, and made when there is none."""
    catch_up(settings)
    address = f"{settings.quality_index.as_uri()}?mode=ro"
    # A web server opens it in one of its threads, reads in another and closes it in a third, one after the other.
    with closing(sqlite3.connect(address, uri=True, check_same_thread=False)) as connection:
        # All of a page's queries see one state of the index.
        connection.execute("BEGIN")
        yield QualityIndex(connection)


class QualityIndex:
    """Reads an index. Hours are texts such as ``2026-03-01T05``, which sort as the hours do."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def span(self) -> tuple[Hour, Hour] | None:
        """The first and the last hour that there is anything about; None of an empty lake."""
        first, last = self._row(
            "SELECT min(hour), max(hour) FROM (SELECT min(hour) hour FROM verdict WHERE newest "
            "UNION ALL SELECT max(hour) FROM verdict WHERE newest "
            "UNION ALL SELECT min(hour) FROM event UNION ALL SELECT max(hour) FROM event)"
        )
        return None if first is None else (Hour.parse(first), Hour.parse(last))

    def suites(self) -> list[str]:
        """All suites, by name."""
        return self._distinct("suite")

    def sources(self) -> list[str]:
        """All sources, by name."""
        return self._distinct("source")

    def tables(self) -> list[str]:
        """All tables that were looked at, by name."""
        return self._distinct("checked_table")

    def counts(
        self, hours: HourRange, *, source: str | None = None, table: str | None = None
    ) -> dict[tuple[str, str], Counts]:
        """By suite and hour, the newest verdicts of the partitions that pass the filters, summed."""
        filters, values = _filters(source, table)
        rows = self._connection.execute(
            "SELECT suite, hour, sum(passed), sum(undecided), sum(warnings), sum(failures) FROM verdict "
            f"INDEXED BY verdict_by_hour WHERE newest AND hour >= ? AND hour < ?{filters} GROUP BY hour, suite",
            (str(hours.start), str(hours.end), *values),
        )
        return {(suite, hour): Counts(*counts) for suite, hour, *counts in rows}

    def counts_by_source(self, hours: HourRange, *, table: str | None = None) -> dict[tuple[str, str], Counts]:
        """By source and day, such as ``2026-03-01``, the newest verdicts of its log hours, summed."""
        filters, values = _filters(None, table)
        rows = self._connection.execute(
            "SELECT source, substr(hour, 1, 10), sum(passed), sum(undecided), sum(warnings), sum(failures) "
            "FROM verdict INDEXED BY verdict_by_hour WHERE newest AND hour >= ? AND hour < ? "
            f"AND source IS NOT NULL{filters} GROUP BY 1, 2",
            (str(hours.start), str(hours.end), *values),
        )
        return {(source, day): Counts(*counts) for source, day, *counts in rows}

    def bad_hours(self, *, source: str | None = None, table: str | None = None) -> list[tuple[str, Counts]]:
        """Every hour, newest first, that fails or warns, with the verdicts that do so, summed."""
        filters, values = _filters(source, table)
        rows = self._connection.execute(
            "SELECT hour, sum(passed), sum(undecided), sum(warnings), sum(failures) FROM verdict "
            f"INDEXED BY verdict_bad WHERE newest AND failures + warnings > 0{filters} "
            "GROUP BY hour ORDER BY hour DESC",
            values,
        )
        return [(hour, Counts(*counts)) for hour, *counts in rows]

    def publications(self, hours: HourRange) -> dict[str, str]:
        """What became of each of these click hours, by its newest event, of which there is one: the outcome alone."""
        query = f"SELECT hour, outcome FROM event WHERE hour >= ? AND hour < ? AND {_IS_NEWEST}"
        return dict(self._connection.execute(query, (str(hours.start), str(hours.end))))

    def held(self) -> list[Event]:
        """The newest event of every click hour that is held, newest hour first."""
        return self._newest("outcome = 'held'")[::-1]

    def held_histories(self) -> dict[str, list[Event]]:
        """All that became of each click hour that was ever held, oldest first; by hour, the oldest first."""
        histories: dict[str, list[Event]] = {}
        for event in self._events("hour IN (SELECT hour FROM event WHERE outcome = 'held')"):
            histories.setdefault(str(event.hour), []).append(event)
        return histories

    def decided(self) -> list[Event]:
        """The newest event of every click hour of which a person's decision stands, newest hour first."""
        return self._newest("outcome IN ('published_anyway', 'dropped')")[::-1]

    def events(self, hour: str) -> list[Event]:
        """All that became of a click hour, oldest first."""
        return list(self._events("hour = ?", hour))

    def results(self, hour: str, *, failing_only: bool = False) -> list[Result]:
        """The newest results of every partition of the hour."""
        failing = " AND outcome = 'fail'" if failing_only else ""
        return [
            self._result(row)
            for row in self._connection.execute(
                f"{_RESULTS} WHERE result.hour = ?{failing} ORDER BY suite, partition, check_id", (hour,)
            )
        ]

    def runs(self, hour: str) -> list[Run]:
        """Every validation of the hour's partitions, oldest first."""
        rows = self._connection.execute(
            "SELECT suite, partition, run_id, min(validated_at), sum(passed), sum(undecided), sum(warnings), "
            "sum(failures) FROM verdict WHERE hour = ? GROUP BY 1, 2, 3 ORDER BY 4, 3, 1, 2",
            (hour,),
        )
        return [Run(suite, partition, run, at, Counts(*counts)) for suite, partition, run, at, *counts in rows]

    def newest_result(self, suite: str, check_id: str, series: str) -> Result | None:
        """The result of the last hour of a check's series; None when there is no such check."""
        row = self._connection.execute(
            f"{_RESULTS} WHERE suite = ? AND check_id = ? AND series = ? ORDER BY hour DESC LIMIT 1",
            (suite, check_id, series),
        ).fetchone()
        return self._result(row) if row else None

    def history(self, suite: str, check_id: str, series: str, hours: HourRange) -> list[Point]:
        """The check's newest values at these hours, oldest first."""
        rows = self._connection.execute(
            "SELECT hour, observed_value, lowest, highest, outcome, severity, partition FROM result "
            "WHERE suite = ? AND check_id = ? AND series = ? AND hour >= ? AND hour < ? ORDER BY hour, partition",
            (suite, check_id, series, str(hours.start), str(hours.end)),
        )
        return [
            Point(hour, value, lowest, highest, state_of(outcome, severity), partition)
            for hour, value, lowest, highest, outcome, severity, partition in rows
        ]

    def _newest(self, where: str) -> list[Event]:
        """Of the click hours whose newest event is so, that event, by hour."""
        return list(self._events(f"{where} AND {_IS_NEWEST}"))

    def _events(self, where: str, *values: str) -> Iterator[Event]:
        columns = "hour AS subject, at, act_id, outcome AS event, because, actor, details"
        cursor = self._connection.execute(f"SELECT {columns} FROM event WHERE {where} ORDER BY 1, 2, 3, 4", values)
        names = [name for name, *_ in cursor.description]
        for of_event in cursor:
            row = dict(zip(names, of_event, strict=True))
            yield Event.of(row | {"at": datetime.fromisoformat(row["at"]), "details": json.loads(row["details"])})

    def _result(self, row: Sequence[Any]) -> Result:
        values = list(row)
        values[_EXAMPLES] = tuple(json.loads(row[_EXAMPLES] or "[]"))
        return Result(*values)

    def _row(self, query: str) -> Sequence[Any]:
        row: Sequence[Any] = self._connection.execute(query).fetchone()
        return row

    def _distinct(self, column: str) -> list[str]:
        rows = self._connection.execute(
            f"SELECT DISTINCT {column} FROM verdict WHERE newest AND {column} IS NOT NULL ORDER BY 1"
        )
        return [value for (value,) in rows]


def _filters(source: str | None, table: str | None) -> tuple[str, list[str]]:
    """A condition on verdicts, to go on a WHERE, and its values."""
    asked = {column: value for column, value in (("source", source), ("checked_table", table)) if value is not None}
    return "".join(f" AND {column} = ?" for column in asked), list(asked.values())


_IS_NEWEST = """NOT EXISTS (SELECT 1 FROM event later WHERE later.hour = event.hour
    AND (later.at, later.act_id, later.outcome) > (event.at, event.act_id, event.outcome))"""
_RESULTS = """
SELECT suite, partition, check_id, run_id, validated_at, source, series, hour, checked_table, severity, outcome,
       observed, observed_value, lowest, highest, expected.text, advised.text, examples, link
FROM result
JOIN sentence expected ON expected.id = expectation
LEFT JOIN sentence advised ON advised.id = advice
"""
_EXAMPLES = [field.name for field in fields(Result)].index("examples")
