"""Which arrivals a stream takes for duplicates: against a list of all that it has accepted, and whatever is killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import time
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from include.settings import REPOSITORY
from spark_jobs.stream import known_ids
from spark_jobs.stream.known_ids import IdFile, Ids, KnownIds

LATENESS = 3
#: Long before now: which log hours are in the future is not the point here.
HOUR = 400_000


class Arrival(NamedTuple):
    high: int
    low: int
    hour: int


#: Few values, so that hashes meet: also one of the two alone.
arrival = st.builds(Arrival, st.integers(-2, 3), st.integers(-1, 1), st.integers(HOUR, HOUR + 8))
#: Of each micro-batch its arrivals in pieces, and how often it is tried before it ends.
batches = st.lists(st.tuples(st.lists(st.lists(arrival, max_size=12), max_size=3), st.integers(0, 2)), max_size=12)


def add(known: KnownIds, arrivals: list[Arrival]) -> list[bool]:
    columns = [np.array([row[column] for row in arrivals], np.int64) for column in range(3)]
    return [bool(one) for one in known.add(*columns)]


@settings(deadline=None, max_examples=200)
@given(batches)
@pytest.mark.parametrize("most_ids", [1 << 23, 10])
def test_an_arrival_is_a_duplicate_of_an_accepted_one_near_it(
    most_ids: int, given: list[tuple[list[list[Arrival]], int]]
) -> None:
    """Forgetting has a test of its own: nine log hours are kept here."""
    accepted: list[Arrival] = []
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(known_ids, "_MOST_IDS", most_ids)
        for batch_id, (pieces, broken_tries) in enumerate(given):
            for number in range(broken_tries):
                known = KnownIds(Path(name), batch_id, LATENESS)
                for piece in pieces[: len(pieces) - number]:
                    add(known, piece)
                known.end()
            known = KnownIds(Path(name), batch_id, LATENESS)
            for piece in pieces:
                expected = []
                for one in piece:
                    is_near = (abs(other.hour - one.hour) <= LATENESS for other in accepted if other[:2] == one[:2])
                    expected.append(not any(is_near))
                    accepted += [one] if expected[-1] else []
                assert add(known, piece) == expected
            known.end()


def hours_known(folder: Path) -> set[int]:
    return {int(hour) for file in IdFile.in_folder(folder) for hour in file.load().log_hour}


def test_ids_are_forgotten_when_the_stream_is_far_enough(tmp_path: Path) -> None:
    for batch_id in range(40):
        known = KnownIds(tmp_path, batch_id, LATENESS)
        # One of each hour, and one of an hour that was over long ago, with which it does not go back.
        assert all(add(known, [Arrival(batch_id, 0, HOUR + batch_id), Arrival(-batch_id - 1, 0, HOUR - 1_000)]))
        known.end()
        kept = {HOUR + hour for hour in range(max(0, batch_id - 2 * LATENESS - 2), batch_id + 1)}
        assert kept <= hours_known(tmp_path)
    found = [len(file.load().high) for file in IdFile.in_folder(tmp_path)]
    assert sum(found) < 40, "of 80"
    assert len(found) < 12


def test_an_old_arrival_that_comes_twice_is_known_the_second_time(tmp_path: Path) -> None:
    old = Arrival(7, 7, HOUR - 1_000)
    for batch_id, ones in enumerate([[Arrival(1, 1, HOUR), old], [Arrival(2, 2, HOUR + 1), old]]):
        known = KnownIds(tmp_path, batch_id, LATENESS)
        assert add(known, ones) == [True, batch_id == 0]
        known.end()


def test_a_second_try_decides_as_the_first_though_that_has_forgotten(tmp_path: Path) -> None:
    """Else the tables would have what the first try says, and the account what the second does."""
    old, new = Arrival(1, 1, HOUR), Arrival(2, 2, HOUR + 9)
    for batch_id, ones in enumerate([[old], [new]]):
        known = KnownIds(tmp_path, batch_id, LATENESS)
        assert all(add(known, ones))
        known.end()
    for _ in range(2):
        known = KnownIds(tmp_path, 2, LATENESS)
        assert add(known, [Arrival(3, 3, HOUR + 30), Arrival(1, 1, HOUR + 2), new]) == [True, True, False]
        known.end()


def test_a_second_try_without_clicks_leaves_nothing_of_the_first(tmp_path: Path) -> None:
    """Else lines that the first try had, in no table, would be duplicates when they come again."""
    gone = Arrival(1, 1, HOUR)
    for ones in ([gone], []):
        known = KnownIds(tmp_path, 0, LATENESS)
        add(known, ones)
        known.end()
    assert add(KnownIds(tmp_path, 1, LATENESS), [gone]) == [True]


def test_a_second_try_decides_as_the_first_on_ids_that_came_from_the_future(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead = Arrival(1, 1, HOUR + 9)
    for batch_id, (now, one) in enumerate([(HOUR, ahead), (HOUR + 10, Arrival(2, 2, HOUR + 10))]):
        monkeypatch.setattr(known_ids, "time", lambda now=now: 3600 * now)
        known = KnownIds(tmp_path, batch_id, LATENESS)
        assert add(known, [one]) == [True]
        known.end()
    for _ in range(2):
        known = KnownIds(tmp_path, 2, LATENESS)
        assert add(known, [ahead]) == [True], "forgotten in both"
        known.end()


def test_a_file_without_room_for_its_last_byte_is_an_error_and_is_not_there(tmp_path: Path) -> None:
    """What numpy has for writing to a file says nothing of it."""
    ids = Ids.of(*(np.zeros(1_000, np.int64) for _ in range(4)))
    IdFile.write(tmp_path, 0, 0, HOUR, ids)
    (file,) = IdFile.in_folder(tmp_path)
    size = file.path.stat().st_size
    assert IdFile.ids_in(size) == 1_000
    file.path.unlink()
    program = (
        f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({size - 1}, {size - 1}))\n"
        "import numpy as np; from pathlib import Path; from spark_jobs.stream.known_ids import IdFile, Ids\n"
        "ids = Ids.of(*(np.zeros(1_000, np.int64) for _ in range(4)))\n"
        f"IdFile.write(Path({str(tmp_path)!r}), 0, 0, 1, ids)"
    )
    ran = subprocess.run(
        [sys.executable, "-B", "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert "File too large" in ran.stderr, ran.stderr
    assert not list(tmp_path.iterdir())


def test_a_folder_of_the_future_makes_nothing_be_forgotten(tmp_path: Path) -> None:
    now = int(time() // 3600)
    first, far = Arrival(1, 1, now), Arrival(2, 2, now + 100_000)
    for batch_id, (one, is_new) in enumerate([(first, True), (far, True), (first, False), (far, False)]):
        known = KnownIds(tmp_path, batch_id, LATENESS)
        assert add(known, [one]) == [is_new]
        known.end()


def test_files_that_a_killed_task_has_made_one_and_not_removed_are_not_read_twice(tmp_path: Path) -> None:
    ids = Ids.of(*(np.zeros(1, np.int64) for _ in range(4)))
    for first, last in [(0, 0), (1, 1), (2, 2), (3, 3), (0, 2), (3, 5)]:
        IdFile.write(tmp_path, first, last, HOUR, ids)
    assert [(file.first, file.last) for file in IdFile.in_folder(tmp_path)] == [(0, 2), (3, 5)]


def test_many_small_files_become_few(tmp_path: Path) -> None:
    for batch_id in range(300):
        known = KnownIds(tmp_path, batch_id, LATENESS)
        add(known, [Arrival(batch_id, 0, HOUR)])
        known.end()
    files = IdFile.in_folder(tmp_path)
    assert len(files) <= 20
    assert len(list(tmp_path.iterdir())) == len(files)
    assert sorted(int(one) for file in files for one in file.load().high) == list(range(300))
