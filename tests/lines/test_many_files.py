"""Many small files are read as one is: by few tables, few queries and few tasks, each with the lines of its files."""

from __future__ import annotations

import gzip
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from backports import zstd
from hypothesis import given, settings
from hypothesis import strategies as st

from include.hours import Hour
from spark_jobs.engine.worker_tasks import run_tasks, share_files
from spark_jobs.lines import arrivals, cut_lines, read_lines
from spark_jobs.lines.arrivals import LineParser, read_files, unique_ids
from spark_jobs.lines.lookups import Lookups
from spark_jobs.lines.read_lines import LINES, LandedFile, ReadFile, read_together
from tests.lines.lines import TRACKING
from tests.lines.parsing import WEB

HOURS = (Hour.parse("2026-03-01T05"), Hour.parse("2026-03-01T06"))
COMPRESS: tuple[Callable[[bytes], bytes], ...] = (bytes, gzip.compress, zstd.compress)
PIECE = 64
#: What files have in them: line ends and none, lines longer than a piece, holes, nothing, and what is no line at all.
TEXTS = st.lists(
    st.sampled_from([b"a", b"bc", b"\n", b"\n", b"\r\n", b"\0" * 20, b"x" * (PIECE + 9), b"\xef\xbb\xbf", b"\xff"]),
    max_size=12,
).map(b"".join)


def _rows(tables: Iterator[pa.Table]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pa.concat_tables([LINES.empty_table(), *tables]).to_pylist()
    # A line's value may have its end or not; a longer one's has its beginning only.
    return [row | {"value": row["value"].rstrip(b"\r\n")} for row in rows]


@settings(deadline=None)
@given(st.lists(st.tuples(TEXTS, st.integers(0, 2), st.booleans()), max_size=8))
def test_files_that_are_read_together_have_the_lines_that_each_has_alone(
    tmp_path_factory: pytest.TempPathFactory, contents: list[tuple[bytes, int, bool]]
) -> None:
    folder = tmp_path_factory.mktemp("landed")
    files = []
    for number, (content, compression, is_torn) in enumerate(contents):
        stored = COMPRESS[compression](content)
        path = folder / f"{number}.log"
        path.write_bytes(stored[: len(stored) // 2] if is_torn and compression else stored)
        files.append(LandedFile(path, HOURS[number % 2], number))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cut_lines, "PIECE_BYTES", PIECE)
        patch.setattr(read_lines, "PIECE_BYTES", PIECE)
        together, alone = [ReadFile(file) for file in files], [ReadFile(file) for file in files]
        rows = _rows(read_together(together, unique_ids))
        assert rows == [row for read in alone for row in _rows(read_together([read], unique_ids))]
    assert together == alone
    assert [sum(row["file"] == read.file.name for row in rows) for read in alone] == [read.lines for read in alone]
    assert len({row["row_id"] for row in rows}) == len(rows)


def _counted(function: Callable[..., Any], made: Counter[str]) -> Callable[..., Any]:
    def count(*given_ones: Any) -> Any:
        made[function.__name__] += 1
        return function(*given_ones)

    return count


def test_thousands_of_small_files_are_cut_and_parsed_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order = random.Random(2)
    files = []
    for number in range(3000):
        path = tmp_path / f"{number:04}.json"
        line = b'{"event_id": "e%d", "ts": "%s:00:00Z", "url": "http://shop.test/%d"}' % (
            number, str(HOURS[0]).encode(), number,
        )  # fmt: skip
        path.write_bytes(order.choice(COMPRESS)(b"broken" if number == 7 else line + b"\n" * order.randrange(2)))
        files.append(LandedFile(path, HOURS[0], number))
    made: Counter[str] = Counter()
    for module, name in ((read_lines, "lines_of"), (arrivals, "parse_lines")):
        monkeypatch.setattr(module, name, _counted(getattr(module, name), made))
    done: list[ReadFile] = []
    rows = pa.concat_tables(read_files(files, LineParser(WEB, TRACKING, Lookups()), unique_ids, done)).to_pylist()
    assert made == {"lines_of": 1, "parse_lines": 1}, "a table for each file takes longer than to parse its line"
    assert [(row["file"], row["line"]) for row in rows] == [(file.name, 1) for file in files]
    assert [row["url"] for row in rows] == [
        None if number == 7 else f"http://shop.test/{number}" for number in range(len(files))
    ]
    assert [row["file"] for row in rows if row["reason"]] == ["0007.json"]
    assert [(read.file, read.lines) for read in done] == [(file, 1) for file in files]


def test_a_hundred_thousand_small_files_are_few_tasks() -> None:
    assert len(share_files(range(100_000), lambda _: 300, 16 << 20)) <= 32
    assert len(share_files(range(4), lambda _: 16 << 20, 16 << 20)) == 4, "large ones are one each"


class _Share:
    """Counts how often one is unpickled."""

    unpickled = 0

    def __setstate__(self, _: object) -> None:
        _Share.unpickled += 1

    def __getstate__(self) -> object:
        return "a share"


class _OneProcess:
    """Runs each task as a worker does that is sent the function as bytes."""

    def range(self, _first: int, count: int, _step: int, _tasks: int) -> _OneProcess:
        self.count = count
        return self

    def mapInArrow(self, work: Callable[..., Iterator[pa.RecordBatch]], _schema: object) -> _OneProcess:
        from pyspark.cloudpickle import dumps

        self.function = dumps(work)
        return self

    def collect(self) -> list[dict[str, Any]]:
        from pyspark.cloudpickle import loads

        numbers = [pa.RecordBatch.from_pydict({"id": [number]}) for number in range(self.count)]
        return [row for number in numbers for batch in loads(self.function)([number]) for row in batch.to_pylist()]


def test_a_task_unpickles_its_own_share_alone() -> None:
    shares = [[_Share() for _ in range(10)] for _ in range(40)]
    _Share.unpickled = 0
    schema = pa.schema([("files", pa.int64())])
    rows = run_tasks(_OneProcess(), shares, lambda share: [{"files": len(share)}], schema)  # type: ignore[arg-type]
    assert rows == [{"files": 10}] * 40
    assert _Share.unpickled == 400, "all shares in each task are files times tasks"
