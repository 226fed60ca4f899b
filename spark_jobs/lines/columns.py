"""Columns of Arrow tables: as one array, as numpy, mapped by a function of Python's, and those of a schema."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

#: So many bytes of a column are looked at at a time.
_AT_ONCE = 1 << 16


def as_array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """A table's column as one array."""
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def as_numpy(column: pa.ChunkedArray | pa.Array) -> np.ndarray[Any, Any]:
    """A column without nulls as a numpy array; copied only where numpy has another layout."""
    return np.asarray(as_array(column).to_numpy(zero_copy_only=False))


def is_null(column: pa.ChunkedArray | pa.Array) -> np.ndarray[Any, Any]:
    """Where the column is null."""
    return as_numpy(pc.is_null(column))


def may_contain(texts: pa.StringArray, character: str) -> bool:
    """Whether any of the texts may have this character in it: a look at all at once takes a tenth of one at each."""
    values = memoryview(texts.buffers()[2] or b"")
    byte = character.encode()
    # In parts that stay in the processor's cache: to copy them costs little, and the whole more than to look.
    return any(byte in values[start : start + _AT_ONCE].tobytes() for start in range(0, len(values), _AT_ONCE))


def map_distinct(texts: pa.ChunkedArray | pa.Array, function: Callable[[str], Any], type_: pa.DataType) -> pa.Array:
    """The function's value of each text, computed once for each distinct one; null for null."""
    encoded = as_array(texts).dictionary_encode()
    return pa.array(map(function, encoded.dictionary.to_pylist()), type_).take(encoded.indices)


def by_text(texts: pa.ChunkedArray | pa.Array) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """Each distinct text, and where it is."""
    encoded = as_array(texts).dictionary_encode()
    numbers = as_numpy(encoded.indices)
    for number, text in enumerate(encoded.dictionary.to_pylist()):
        yield text, numbers == number


def is_among(values: np.ndarray[Any, Any], others: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Whether each value is one of the others, which are in order."""
    if not len(others):
        return np.zeros(len(values), bool)
    return np.asarray(others[np.searchsorted(others, values).clip(max=len(others) - 1)] == values)


def in_pieces(tables: Iterable[pa.Table], piece_bytes: int) -> Iterator[pa.Table]:
    """The rows of the tables in pieces of about so many bytes: many small tables are one."""
    pending: list[pa.Table] = []
    size = 0
    for table in tables:
        pending.append(table)
        size += table.nbytes
        if size >= piece_bytes:
            yield pa.concat_tables(pending)
            pending, size = [], 0
    if pending:
        yield pa.concat_tables(pending)


def table_of(schema: pa.Schema, columns: Mapping[str, Any], rows: int) -> pa.Table:
    """A table of the schema with so many rows; columns that are not given are null."""
    arrays = (columns[f.name] if f.name in columns else pa.nulls(rows, f.type) for f in schema)
    return pa.table(list(arrays), schema=schema)
