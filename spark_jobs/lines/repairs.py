"""The quarantined lines that replays recover: which these are, and how a parser of lines repairs them.

What a replay has recovered is known by its place and a digest of its text: where another line is in its place, it is
none of the replay's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.parquet import read_table

from include.sources import Source
from include.storage import filesystem_of, key_of
from spark_jobs.lines.columns import as_numpy, table_of
from spark_jobs.lines.masked_addresses import line_mask
from spark_jobs.lines.rules import RuleError, repaired_texts, texts_where_possible

#: Where a line is in its log hour.
_AT = pa.schema([("file", pa.string()), ("line", pa.int64())])
#: And what it is; null: whatever it is.
_KNOWN = _AT.append(pa.field("digest", pa.int64()))


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
        """``file``, ``line`` and ``digest`` of each."""
        named = "replay_id" if self.are_recorded else "reason"
        wanted = [self.replay.id] if self.are_recorded else self.reasons
        where = [(named, "in", list(wanted))] if wanted else None
        known = _KNOWN.names if self.are_recorded else _AT.names
        rows = read_table(
            key_of(self.path), columns=[*known, named], filters=where, filesystem=filesystem_of(self.path)
        )
        return table_of(_KNOWN, {name: rows[name].cast(_KNOWN.field(name).type) for name in known}, len(rows))


#: Parses lines of ``LINES``.
Parse = Callable[[pa.Table], pa.Table]


@dataclass(frozen=True)
class Repairs:
    """The lines of some log hours that replays recover; those of the newest replay first.

    ``warnings`` has, after lines were parsed, which replays on record have rules that fail; the one that is being asked
    for may not fail.
    """

    places: tuple[Places, ...] = ()
    warnings: list[str] = field(default_factory=list, compare=False)
    _read: dict[int, list[tuple[Replay, pa.Table]]] = field(default_factory=dict, compare=False)

    def applied(self, lines: pa.Table, parsed: pa.Table, source: Source, parse: Parse) -> pa.Table:
        """The parsed lines, repaired where a replay's rule does so.

        With ``replay_id`` and ``line_digest`` of those that a replay has recovered.

        Raises:
            RuleError: if the rule of the replay that is asked for cannot be applied to one of the lines.
        """
        ids: list[str] = []
        mark = np.full(len(parsed), -1)
        digests = np.zeros(len(parsed), np.int64)
        hours = as_numpy(lines["hour"])
        for hour in np.unique(hours) if self.places else ():
            for replay, places in self._of_hour(int(hour)):
                at = np.flatnonzero((hours == hour) & (mark < 0) & are_at(lines, places))
                digests[at] = line_digests(lines["value"].take(pa.array(at)), source)
                is_its = np.zeros(len(parsed), bool)
                is_its[at] = _are_known(lines.take(pa.array(at)), digests[at], places)
                is_click = as_numpy(pc.is_null(parsed["reason"]))
                mark[is_its & is_click] = len(ids)
                broken = np.flatnonzero(is_its & ~is_click)
                if replay.rule is not None and len(broken):
                    texts_of = partial(self._texts, replay)
                    parsed, repaired = _repaired(lines, parsed, broken, source.name, texts_of, parse)
                    mark[repaired] = len(ids)
                ids.append(replay.id)
        is_none = mark < 0
        columns = {
            "replay_id": pa.array(ids, pa.string()).take(pa.array(mark, mask=is_none)),
            "line_digest": pa.array(digests, mask=is_none),
        }
        for name, column in columns.items():
            parsed = parsed.append_column(name, column)
        return parsed

    def _of_hour(self, hour: int) -> list[tuple[Replay, pa.Table]]:
        if hour not in self._read:
            self._read.clear()  # the lines come hour by hour
            self._read[hour] = list(_by_replay(part for part in self.places if part.hour_number == hour))
        return self._read[hour]

    def _texts(self, replay: Replay, lines: pa.Table) -> pa.StringArray:
        """What a replay's rule gives; of one on record null where it fails."""
        assert replay.rule is not None
        try:
            return repaired_texts(replay.rule, lines)
        except RuleError as error:
            if any(part.replay == replay and not part.are_recorded for part in self.places):
                raise
            self.warnings.append(f"replay {replay.id}: {error}; such lines stay quarantined")
            return texts_where_possible(replay.rule, lines)


def _by_replay(places: Iterable[Places]) -> Iterator[tuple[Replay, pa.Table]]:
    tables_of_replay: dict[Replay, list[pa.Table]] = {}
    for part in places:
        tables_of_replay.setdefault(part.replay, []).append(part.read())
    return ((replay, pa.concat_tables(tables)) for replay, tables in tables_of_replay.items())


def line_digests(values: pa.ChunkedArray, source: Source) -> np.ndarray[Any, Any]:
    """A digest of each line, which does not tell the addresses in it, and is the same of the line as it is kept."""
    mask = line_mask(source)
    texts = (mask(_without_end(value).decode("utf-8", "replace")) for value in values.to_pylist())
    digests = [blake2b(text.encode(), digest_size=8).digest() for text in texts]
    return np.array([int.from_bytes(digest, "big", signed=True) for digest in digests], np.int64)


def _are_known(lines: pa.Table, digests: np.ndarray[Any, Any], places: pa.Table) -> np.ndarray[Any, Any]:
    """Whether each line is what was at its place."""
    of_lines = pa.table([lines["file"], lines["line"], pa.array(digests)], _KNOWN)
    whatever = places.filter(pc.is_null(places["digest"]))
    known = are_at(of_lines, places, _KNOWN.names)
    known |= are_at(of_lines, whatever)
    return known


def are_at(lines: pa.Table, places: pa.Table, by: Sequence[str] = _AT.names) -> np.ndarray[Any, Any]:
    """Whether each line is at one of the places; both are told by ``file`` and ``line``."""
    looked_at = lines.select(list(by)).append_column("number", pa.array(np.arange(len(lines))))
    numbers = looked_at.join(places.select(list(by)), list(by), join_type="left semi")["number"]
    result = np.zeros(len(lines), bool)
    result[as_numpy(numbers)] = True
    return result


def _repaired(
    lines: pa.Table,
    parsed: pa.Table,
    broken: np.ndarray[Any, Any],
    source: str,
    texts_of: Callable[[pa.Table], pa.StringArray],
    parse: Parse,
) -> tuple[pa.Table, np.ndarray[Any, Any]]:
    """The parsed lines, those of the broken ones repaired that are clicks by the rule; and which these are."""
    values = [_without_end(value) for value in lines["value"].take(pa.array(broken)).to_pylist()]
    # Of a line that is too long to be kept whole there is only the beginning.
    is_whole = np.array([len(value) for value in values]) == as_numpy(lines["bytes"])[broken]
    broken = broken[is_whole]
    raw = [value.decode("utf-8", "replace") for value, whole in zip(values, is_whole, strict=True) if whole]
    texts = texts_of(_seen_by_rule(raw, source, parsed, broken))
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
