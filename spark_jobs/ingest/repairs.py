"""The quarantined lines that replays recover: which these are, and how a parser of lines repairs them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.parquet import read_table

from include.storage import filesystem_of, key_of
from spark_jobs.ingest.columns import as_numpy
from spark_jobs.ingest.rules import repaired_texts

#: Where a line is in its log hour.
_AT = pa.schema([("file", pa.string()), ("line", pa.int64())])


@dataclass(frozen=True)
class Replay:
    """What asks for quarantined lines of a source to be parsed again; ``rule`` repairs those that need it."""

    id: str
    rule: str | None = None


@dataclass(frozen=True)
class Places:
    """A Parquet file that says where lines of one log hour are, by ``file`` and ``line``: those of one replay.

    Of a file of ``replayed_lines`` those whose ``replay_id`` it is; of ``quarantined_clicks`` those of these
    ``reasons``, of all of them if none is named.
    """

    path: Path
    hour_number: int
    replay: Replay
    are_recorded: bool
    reasons: tuple[str, ...] = ()

    def read(self) -> pa.Table:
        """``file`` and ``line`` of each."""
        named = "replay_id" if self.are_recorded else "reason"
        wanted = [self.replay.id] if self.are_recorded else self.reasons
        where = [(named, "in", list(wanted))] if wanted else None
        rows = read_table(
            key_of(self.path), columns=["file", "line", named], filters=where, filesystem=filesystem_of(self.path)
        )
        return rows.select(_AT.names).cast(_AT)


#: Parses lines of ``LINES``.
Parse = Callable[[pa.Table], pa.Table]


@dataclass(frozen=True)
class Repairs:
    """The lines of some log hours that replays recover; those of the newest replay first."""

    places: tuple[Places, ...] = ()
    _read: dict[int, list[tuple[Replay, pa.Table]]] = field(default_factory=dict, compare=False)

    def applied(self, lines: pa.Table, parsed: pa.Table, source: str, parse: Parse) -> pa.Table:
        """The parsed lines, with ``replay_id`` of those that a replay has recovered: repaired where it has a rule.

        Raises:
            RuleError: if a rule cannot be applied to one of the lines.
        """
        ids: list[str] = []
        mark = np.full(len(parsed), -1)
        hours = as_numpy(lines["hour"])
        for hour in np.unique(hours) if self.places else ():
            for replay, places in self._of_hour(int(hour)):
                is_its = (hours == hour) & (mark < 0) & are_at(lines, places)
                is_click = as_numpy(pc.is_null(parsed["reason"]))
                mark[is_its & is_click] = len(ids)
                broken = np.flatnonzero(is_its & ~is_click)
                if replay.rule is not None and len(broken):
                    parsed, repaired = _repaired(lines, parsed, broken, source, replay, parse)
                    mark[repaired] = len(ids)
                ids.append(replay.id)
        return parsed.append_column("replay_id", pa.array(ids, pa.string()).take(pa.array(mark, mask=mark < 0)))

    def _of_hour(self, hour: int) -> list[tuple[Replay, pa.Table]]:
        if hour not in self._read:
            self._read.clear()  # the lines come hour by hour
            self._read[hour] = list(_by_replay(one for one in self.places if one.hour_number == hour))
        return self._read[hour]


def _by_replay(places: Iterable[Places]) -> Iterator[tuple[Replay, pa.Table]]:
    found: dict[Replay, list[pa.Table]] = {}
    for one in places:
        found.setdefault(one.replay, []).append(one.read())
    return ((replay, pa.concat_tables(tables)) for replay, tables in found.items())


def are_at(lines: pa.Table, places: pa.Table) -> np.ndarray[Any, Any]:
    """Whether each line is at one of the places; both are told by ``file`` and ``line``."""
    looked_at = pa.table([lines["file"], lines["line"], np.arange(len(lines))], ["file", "line", "number"])
    found = looked_at.join(places.select(_AT.names), _AT.names, join_type="left semi")["number"]
    result = np.zeros(len(lines), bool)
    result[as_numpy(found)] = True
    return result


def _repaired(
    lines: pa.Table, parsed: pa.Table, broken: np.ndarray[Any, Any], source: str, replay: Replay, parse: Parse
) -> tuple[pa.Table, np.ndarray[Any, Any]]:
    """The parsed lines, those of the broken ones repaired that are clicks by the rule; and which these are."""
    assert replay.rule is not None
    values = [_without_end(value) for value in lines["value"].take(pa.array(broken)).to_pylist()]
    # Of a line that is too long to be kept whole there is only the beginning.
    is_whole = np.array([len(value) for value in values]) == as_numpy(lines["bytes"])[broken]
    broken = broken[is_whole]
    raw = [value.decode("utf-8", "replace") for value, whole in zip(values, is_whole, strict=True) if whole]
    texts = repaired_texts(replay.rule, _seen_by_rule(raw, source, parsed, broken))
    has_text = as_numpy(pc.is_valid(texts))
    broken, texts = broken[has_text], texts.filter(pa.array(has_text)).cast(pa.binary())
    again = lines.take(pa.array(broken))
    again = again.set_column(again.schema.get_field_index("value"), "value", texts)
    again = again.set_column(again.schema.get_field_index("bytes"), "bytes", pc.binary_length(texts).cast(pa.int64()))
    result = parse(again)
    is_click = as_numpy(pc.is_null(result["reason"]))
    place = np.arange(len(parsed))
    place[broken[is_click]] = len(parsed) + np.flatnonzero(is_click)
    both = pa.concat_tables([parsed, result.select(parsed.column_names)]).take(pa.array(place))
    # What fields lines have is said of them as they have come.
    return both.set_column(both.schema.get_field_index("sampled"), "sampled", parsed["sampled"]), broken[is_click]


def _without_end(value: bytes) -> bytes:
    return value.removesuffix(b"\n").removesuffix(b"\r")


def _seen_by_rule(raw: Sequence[str], source: str, parsed: pa.Table, broken: np.ndarray[Any, Any]) -> pa.Table:
    """What a rule sees of these lines; and, for whoever is told that it fails, where they are."""
    lines = parsed.select(["reason", "log_date", "log_hour", "file", "line"]).take(pa.array(broken))
    return lines.append_column("raw", pa.array(raw, pa.string())).append_column(
        "source", pa.array([source] * len(raw), pa.string())
    )
