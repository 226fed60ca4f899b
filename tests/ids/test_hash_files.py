"""Files of hashes, with one column or three: against plain Python's sorting."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from spark_jobs.ids.hash_files import SortedHashes
from spark_jobs.ids.partitions import HashRange


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("is_durable", [False, True])
def test_parts_in_any_order_are_one_in_the_order_of_hashes(columns: int, is_durable: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(columns)
    # Hashes come again, and of each the row of the first part comes first.
    rows = [[(int(rng.integers(0, 90)) << 57, *range(n, n + columns - 1)) for n in range(size)] for size in (70, 0, 30)]
    parts = [SortedHashes(tuple(np.array(part, np.uint64).reshape(-1, columns).T)) for part in rows]
    expected = sorted((row for part in rows for row in part), key=lambda row: row[0])

    file = SortedHashes.joined(parts).write(tmp_path, is_durable=is_durable)
    read = SortedHashes.read(file)
    assert list(zip(*(column.tolist() for column in read.columns), strict=True)) == expected
    assert [path.name for path in tmp_path.iterdir()] == [file.name]

    for partition in range(3):
        part = HashRange.of_partition(partition, 3)
        least, greatest = part.bounds
        within = [row[0] for row in expected if least <= row[0] <= greatest]
        assert read.within(part).hashes.tolist() == within
