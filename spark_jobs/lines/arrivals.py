"""Lines on their way into Spark: read, parsed and looked up in Spark's Python workers, a table of Arrow at a time.

An arrival is a parsed line. Beside the arrivals each task says what it has read, a row a file (or topic partition) and
log hour: so every line is accounted for by who has read it, whatever becomes of it later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from include.hours import Hour
from include.settings import Settings
from include.sources import Source
from spark_jobs.lines.columns import as_array, as_numpy, in_pieces, table_of
from spark_jobs.lines.cut_lines import PIECE_BYTES
from spark_jobs.lines.headers import with_headers
from spark_jobs.lines.lookups import Lookups
from spark_jobs.lines.parse_lines import PARSED, parse_lines
from spark_jobs.lines.read_lines import LINES, LandedFile, ReadFile, RowIds, plain_records, read_together
from spark_jobs.lines.repairs import Repairs
from spark_jobs.lines.times import HOUR_MICROS

#: What was read of one file and log hour: set in the rows that say so, null for arrivals. ``damage`` says why a file
#: breaks off; null for a whole one.
READ = pa.struct(
    [
        ("lines", pa.int64()),
        ("bytes", pa.int64()),
        ("first_line", pa.int64()),
        ("last_line", pa.int64()),
        ("damage", pa.string()),
    ]
)

#: Columns of the rows that tasks give to Spark: those of parsed lines, what is looked up in place of the client, and
#: the replay that has recovered a line, with a digest of it.
ARRIVALS = pa.schema(
    [
        *(field for field in PARSED if field.name != "client_address"),
        pa.field("is_out_of_order", pa.bool_()),
        pa.field("is_bot", pa.bool_()),
        pa.field("replay_id", pa.string()),
        pa.field("line_digest", pa.int64()),
        pa.field("read", READ),
    ]
)

#: A line's id: its number in its file in the lower bits, the file's number above them.
LINE_BITS = 33
_BEFORE_ALL = np.iinfo(np.int64).min


@dataclass(frozen=True)
class LineParser:
    """How a source's lines become arrivals; sent to Spark's workers as it is."""

    source: Source
    tracking_parameters: tuple[str, ...]
    lookups: Lookups
    repairs: Repairs = field(default_factory=Repairs)

    @classmethod
    def of(cls, source: Source, settings: Settings) -> LineParser:
        """The parser of a source under these settings.

        Raises:
            UsageError: if a file that it needs cannot be read.
        """
        return cls(source, settings.pipeline.tracking_parameters, Lookups.of(source, settings))

    def arrivals(self, lines: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """The arrivals of tables of ``LINES``, of each file in its order, in tables of ``ARRIVALS``."""
        latest: dict[tuple[str, int], int] = {}
        # Pieces worth the while of a query.
        pieces = in_pieces((table.select(LINES.names) for table in lines), PIECE_BYTES)
        for piece in with_headers(pieces, self.source):
            parsed = self.repairs.applied(piece, self._parsed(piece), self.source, self._parsed)
            order = {"is_out_of_order": out_of_order(piece, parsed, latest)}
            yield table_of(ARRIVALS, dict(zip(parsed.column_names, parsed.columns, strict=True)) | order, len(piece))

    def _parsed(self, lines: pa.Table) -> pa.Table:
        return self.lookups.look_up(parse_lines(lines, self.source, self.tracking_parameters))


def read_files(
    files: Iterable[LandedFile], parser: LineParser, row_ids: RowIds, done: list[ReadFile]
) -> Iterator[pa.Table]:
    """The arrivals of landed files; ``done`` has, in the end, what was read of each.

    Raises:
        OSError: if one cannot be read; of a damaged one what comes before the damage is read.
    """

    def reads() -> Iterator[ReadFile]:
        for file in files:
            done.append(ReadFile(file))
            yield done[-1]

    return parser.arrivals(read_together(reads(), row_ids))


def rows_of_files(done: Iterable[ReadFile]) -> pa.Table:
    """What was read of each file, as rows beside its arrivals; for an empty file too."""
    return _read_rows(
        {
            "hour": read.file.hour.number,
            "file": read.file.name,
            "lines": read.lines,
            "bytes": read.bytes,
            "first_line": 1 if read.lines else None,
            "last_line": read.lines or None,
            "damage": read.damage,
        }
        for read in done
    )


def read_records(lines: Iterable[pa.Table], parser: LineParser) -> Iterator[pa.Table]:
    """The arrivals of a topic's records, given as tables of ``LINES``; and last what was read of each partition."""
    read: list[pa.Table] = []

    def counted() -> Iterator[pa.Table]:
        for table in map(plain_records, lines):
            read.append(table.select(["hour", "file", "bytes", "line"]))
            yield table

    yield from parser.arrivals(counted())
    if read:
        places = pa.concat_tables(read).group_by(["hour", "file"])
        totals = places.aggregate([("line", "count"), ("bytes", "sum"), ("line", "min"), ("line", "max")])
        names = {"line_count": "lines", "bytes_sum": "bytes", "line_min": "first_line", "line_max": "last_line"}
        yield _read_rows(totals.rename_columns(names).to_pylist())


def unique_ids(file: LandedFile, line: np.ndarray) -> np.ndarray:
    """Ids that no other line of the files that are read together has."""
    return (file.number << LINE_BITS) | line


def hour_of_arrival(file: LandedFile, line: np.ndarray) -> np.ndarray:
    """The beginning of the log hour in microseconds since 1970, as a topic's records have their time of arrival."""
    return np.full(len(line), file.hour.number * HOUR_MICROS)


def out_of_order(lines: pa.Table, parsed: pa.Table, latest: dict[tuple[str, int], int]) -> pa.Array:
    """Whether a click is older than a well-formed line before it in its file; ``latest`` goes on over the tables."""
    if not len(lines):
        return pa.array([], pa.bool_())
    is_click = as_numpy(pc.is_null(parsed["reason"]))
    moment = as_numpy(parsed["clicked_at"].cast(pa.int64()).fill_null(_BEFORE_ALL))
    file = as_array(lines["file"]).dictionary_encode()
    number, hour = as_numpy(file.indices), as_numpy(lines["hour"])
    is_first = np.append(True, (np.diff(number) != 0) | (np.diff(hour) != 0))
    starts = np.flatnonzero(is_first)
    result = np.zeros(len(lines), bool)
    for start, end in zip(starts, np.append(starts[1:], len(lines)), strict=True):
        place = (file.dictionary[int(number[start])].as_py(), int(hour[start]))
        before = np.append(latest.get(place, _BEFORE_ALL), moment[start:end])
        np.maximum.accumulate(before, out=before)
        result[start:end] = moment[start:end] < before[:-1]
        latest[place] = int(before[-1])
    return pc.if_else(pa.array(is_click), pa.array(result), None)


def _read_rows(rows: Iterable[dict[str, object]]) -> pa.Table:
    listed = list(rows)
    hours = [Hour.of_number(row["hour"]) for row in listed]  # type: ignore[arg-type]
    places = {
        "log_date": pa.array([hour.day for hour in hours], pa.date32()),
        "log_hour": pa.array([hour.hour for hour in hours], pa.int32()),
        "file": pa.array([row["file"] for row in listed], pa.string()),
        "read": pa.array([{name: row.get(name) for name in READ.names} for row in listed], READ),
    }
    return table_of(ARRIVALS, places, len(listed))
