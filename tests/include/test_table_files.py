"""A process that has read a Delta table ends as it should, whatever its threads are doing."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from include.settings import REPOSITORY

READERS = ("to_pyarrow_table", "to_pyarrow_dataset")
FOLDERS = ("include", "spark_jobs", "plugins", "ops")
READ = """
import sys
from deltalake import DeltaTable
from pathlib import Path
from include.storage import table_files
table = DeltaTable(sys.argv[1])
assert table.to_pyarrow_table(filters=[("n", ">", 0)], filesystem=table_files(Path(sys.argv[1]))).num_rows == 2
"""


@pytest.mark.slow
def test_reading_and_ending_at_once_is_no_abort(tmp_path: Path) -> None:
    # Without table_files some 19 of 30 such processes were aborted.
    write_deltalake(tmp_path, pa.table({"n": [0, 1, 2]}))
    for _ in range(6):
        ended = subprocess.run(
            [sys.executable, "-c", READ, str(tmp_path)], cwd=REPOSITORY, capture_output=True, check=False
        )
        assert (ended.returncode, ended.stderr) == (0, b"")


def test_nothing_reads_a_table_in_another_way() -> None:
    readers = 0
    for file in (file for folder in FOLDERS for file in (REPOSITORY / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in READERS:
                readers += 1
                assert "filesystem" in {keyword.arg for keyword in node.keywords}, f"{file}:{node.lineno}"
    assert readers == 1, "StoredLake reads"
