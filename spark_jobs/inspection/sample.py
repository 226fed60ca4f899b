"""A sample of a log file's lines: its beginning, and where that is cheap its end, whatever its size."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from include.hours import Hour
from include.utf_16 import encoding_of
from spark_jobs.lines.columns import table_of
from spark_jobs.lines.decompress import compression_of, decompressed
from spark_jobs.lines.read_lines import LINES, LandedFile, ReadFile, lines_of, read_lines

#: So many lines of the beginning, and a fifth as many of the end.
MOST_LINES = 5_000
_MOST_BYTES = 4 << 20
_END_BYTES = 1 << 18
_BEGINNING_BYTES = 1 << 12
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bzip2", ".xz": "xz"}


@dataclass(frozen=True)
class Sample:
    """Lines of a file, as ``LINES`` has them; ``hour`` is to be set by whoever knows their times.

    ``is_whole`` if there are no others. ``end`` is how many of the last ones are of the file's end. ``content`` says
    how it is compressed and encoded.
    """

    file: Path
    size: int
    content: str
    lines: pa.Table
    is_whole: bool
    end: int = 0


def sample_of(file: Path) -> Sample:
    """A sample of a file; of a damaged one what comes before the damage.

    Raises:
        OSError, DamagedFileError: if it cannot be read.
    """
    read = ReadFile(LandedFile(file, Hour.of_number(0)))
    tables, bytes_read, is_whole = [], 0, True
    for table in read_lines(read):
        tables.append(table)
        bytes_read += table["value"].nbytes
        if read.lines >= MOST_LINES or bytes_read >= _MOST_BYTES:
            is_whole = False
            break
    lines = pa.concat_tables(tables) if tables else LINES.empty_table().drop_columns(["row_id"])
    if len(lines) > MOST_LINES:
        lines, is_whole = lines.slice(0, MOST_LINES), False
    content = _content_of(file)
    end = _end_of(file, len(lines)) if not is_whole and content == "plain" else None
    if end is not None:
        lines = pa.concat_tables([lines, end])
    lines = table_of(
        LINES, {name: lines[name] for name in lines.column_names} | {"row_id": np.arange(len(lines))}, len(lines)
    )
    return Sample(file, file.stat().st_size, content, lines, is_whole, len(end) if end is not None else 0)


def _content_of(file: Path) -> str:
    """``plain``, or what is not: ``gzip, UTF-16``."""
    with file.open("rb") as opened:
        compression = compression_of(opened.read(_BEGINNING_BYTES))
        opened.seek(0)
        encoding = encoding_of(next(decompressed(opened, file.name), b"")[:_BEGINNING_BYTES])
    return ", ".join(filter(None, (_COMPRESSIONS.get(compression or ""), "UTF-16" if encoding else ""))) or "plain"


def _end_of(file: Path, before: int) -> pa.Table | None:
    """The whole lines at the end of a plain file; their numbers are not theirs, but go on."""
    with file.open("rb") as opened:
        opened.seek(max(file.stat().st_size - _END_BYTES, 0))
        content = opened.read()
    content = content[content.find(b"\n") + 1 :]
    if not content:
        return None
    values, lengths = lines_of(content)
    first = max(len(values) - MOST_LINES // 5, 0)
    values, lengths = values.slice(first), lengths[first:]
    numbers = np.arange(before + 1, before + 1 + len(values), dtype=np.int64)
    name = LandedFile(file, Hour.of_number(0)).name
    columns = {"value": values, "bytes": lengths, "hour": np.zeros(len(values), np.int32), "line": numbers}
    columns["file"] = pa.array([name] * len(values))
    schema = LINES.remove(LINES.get_field_index("row_id"))
    return pa.table({field.name: pa.array(columns[field.name], field.type) for field in schema}, schema=schema)
