"""The quarantined lines that replays recover: which these are, and how a parser of lines repairs them.

What a replay has recovered is known by its place and a digest of its text: where another line is in its place, it is
none of the replay's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.parquet import ParquetFile

from include.sources import Source
from include.storage import filesystem_of, key_of
from spark_jobs.lines.columns import as_numpy, by_text, is_null
from spark_jobs.lines.masked_addresses import line_mask
from spark_jobs.lines.rules import RuleError, repaired_texts, texts_where_possible

_Array = np.ndarray[Any, Any]
#: Rows that are read of a file at a time.
_BATCH_ROWS = 1 << 16


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

    def read(self) -> Iterator[pa.Table]:
        """``file``, ``line`` and ``digest`` of each; null where it may be any line."""
        wanted = [self.replay.id] if self.are_recorded else list(self.reasons)
        named = "replay_id" if self.are_recorded else "reason"
        names = ["file", "line", named, *(["digest"] if self.are_recorded else [])]
        with ParquetFile(key_of(self.path), filesystem=filesystem_of(self.path)) as file:
            for batch in file.iter_batches(_BATCH_ROWS, columns=names):
                rows = pa.Table.from_batches([batch])
                if wanted:
                    rows = rows.filter(pc.is_in(rows[named], pa.array(wanted)))
                digest = rows["digest"] if self.are_recorded else pa.nulls(len(rows), pa.int64())
                yield pa.table({"file": rows["file"], "line": rows["line"], "digest": digest})


class RecoveredLines:
    """The lines of a log hour that one replay recovers: 17 bytes of each are in memory."""

    def __init__(self, parts: Iterable[Places]) -> None:
        pieces = defaultdict[str, list[tuple[_Array, ...]]](list)
        for part in parts:
            for rows in part.read():
                columns = (rows["line"], rows["digest"].fill_null(0))
                values = (*map(as_numpy, columns), is_null(rows["digest"]))
                for file, its in by_text(rows["file"]):
                    pieces[file].append(tuple(column[its] for column in values))
        self._of_file = {file: _in_order(pieces.pop(file)) for file in [*pieces]}

    def has(self, lines: pa.Table, digests: _Array | None = None) -> _Array:
        """Whether each line is at the place of one of them; with ``digests``, and is what was there."""
        result = np.zeros(len(lines), bool)
        line = as_numpy(lines["line"])
        for file, its in by_text(lines["file"]):
            if file in self._of_file:
                known, known_digests, is_any = self._of_file[file]
                at = np.flatnonzero(its)
                first, end = (np.searchsorted(known, line[at], side) for side in ("left", "right"))
                # Mostly one: two if another line was in its place.
                for nth in range((end - first).max(initial=0)):
                    among = np.flatnonzero(first + nth < end)
                    place = (first + nth)[among]
                    is_it = (
                        is_any[place] | (known_digests[place] == digests[at[among]]) if digests is not None else True
                    )
                    result[at[among]] |= is_it
        return result


def _in_order(pieces: Sequence[tuple[_Array, ...]]) -> tuple[_Array, ...]:
    """The columns of the pieces, the first one ascending."""
    columns = [np.concatenate(column) for column in zip(*pieces, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    return tuple(column[order] for column in columns)


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
    _read: dict[int, list[tuple[Replay, RecoveredLines]]] = field(default_factory=dict, compare=False)

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
            for replay, known in self._of_hour(int(hour)):
                at = np.flatnonzero((hours == hour) & (mark < 0) & known.has(lines))
                digests[at] = line_digests(lines["value"].take(pa.array(at)), source)
                is_its = np.zeros(len(parsed), bool)
                is_its[at] = known.has(lines.take(pa.array(at)), digests[at])
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

    def _of_hour(self, hour: int) -> list[tuple[Replay, RecoveredLines]]:
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


def _by_replay(places: Iterable[Places]) -> Iterator[tuple[Replay, RecoveredLines]]:
    parts: dict[Replay, list[Places]] = {}
    for part in places:
        parts.setdefault(part.replay, []).append(part)
    return ((replay, RecoveredLines(its)) for replay, its in parts.items())


def line_digests(values: pa.ChunkedArray, source: Source) -> _Array:
    """A digest of each line, which does not tell the addresses in it, and is the same of the line as it is kept."""
    mask = line_mask(source)
    texts = (mask(_without_end(value).decode("utf-8", "replace")) for value in values.to_pylist())
    digests = [blake2b(text.encode(), digest_size=8).digest() for text in texts]
    return np.array([int.from_bytes(digest, "big", signed=True) for digest in digests], np.int64)


def _repaired(
    lines: pa.Table,
    parsed: pa.Table,
    broken: _Array,
    source: str,
    texts_of: Callable[[pa.Table], pa.StringArray],
    parse: Parse,
) -> tuple[pa.Table, _Array]:
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


def _seen_by_rule(raw: Sequence[str], source: str, parsed: pa.Table, broken: _Array) -> pa.Table:
    """What a rule sees of these lines; and, for whoever is told that it fails, where they are."""
    lines = parsed.select(["reason", "log_date", "log_hour", "file", "line"]).take(pa.array(broken))
    return lines.append_column("raw", pa.array(raw, pa.string())).append_column(
        "source", pa.array([source] * len(raw), pa.string())
    )
