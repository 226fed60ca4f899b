"""Which arrivals a stream takes for duplicates: against a list of all that it has accepted, and whatever is killed."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import time
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import Row

from include.errors import ClickmillError
from include.settings import REPOSITORY
from spark_jobs.ids import known_ids
from spark_jobs.ids.id_manifest import IdManifest
from spark_jobs.ids.known_ids import ID_BYTES, HashRange, IdFile, Ids, KnownIds
from spark_jobs.stream.id_folder import StreamIds

LATENESS = 3
#: Long before now: which log hours are in the future is not the point here.
HOUR = 400_000
OLDEST_KEPT = 2 * LATENESS + 2


class Arrival(NamedTuple):
    high: int
    low: int
    hour: int


#: Few values, so that hashes meet, also one of the two alone; and at both ends of each of some partitions.
arrival = st.builds(
    Arrival,
    st.sampled_from([0, 1, (1 << 62) - 1, 1 << 62, (1 << 63) - 1, -(1 << 63), -1]),
    st.integers(-1, 1),
    st.integers(HOUR, HOUR + 8),
)
partitions = st.integers(1, 5)
#: Of each micro-batch its arrivals in pieces, and in how many partitions it is tried until it ends.
batches = st.lists(
    st.tuples(st.lists(st.lists(arrival, max_size=12), max_size=3), st.lists(partitions, min_size=1, max_size=3)),
    max_size=12,
)


@dataclass
class Stream:
    """The ids of a stream in a folder, as its query keeps them."""

    folder: Path
    lateness_hours: int = LATENESS

    def __post_init__(self) -> None:
        IdManifest(event_id="event_id", lateness_hours=self.lateness_hours).write(self.folder, -1)

    def attempt(self, batch_id: int, pieces: list[list[Arrival]], partitions: int = 1) -> list[list[bool]]:
        """Which arrivals of a micro-batch are no duplicates; it ends with it."""
        ids = StreamIds(self.folder, partitions, self.lateness_hours)
        before = ids.before(batch_id)
        accepted = [[False] * len(piece) for piece in pieces]
        left = []
        for partition in range(partitions):
            first = before.first_arrivals(partition)
            for number, piece in enumerate(pieces):
                mine = [
                    place
                    for place, arrival in enumerate(piece)
                    if (arrival.high >> 32) % (1 << 32) * partitions >> 32 == partition
                ]
                for place, is_first in zip(mine, add(first.known, [piece[place] for place in mine]), strict=True):
                    accepted[number][place] = is_first
            left.append(Row(**first.end()))
        ids.keep(batch_id, before, left)
        return accepted

    def known(self, batch_id: int) -> list[Ids]:
        """All that are known after a micro-batch, by file."""
        return [file.load(self.folder) for file in IdManifest.read(self.folder, batch_id).files]


def add(known: KnownIds, arrivals: list[Arrival]) -> list[bool]:
    columns = [np.array([row[column] for row in arrivals], np.int64) for column in range(3)]
    return [bool(is_first) for is_first in known.add(*columns)]


@settings(deadline=None, max_examples=100)
@given(batches)
@pytest.mark.parametrize("most_ids", [1 << 22, 10])
def test_an_arrival_is_a_duplicate_of_an_accepted_one_near_it(
    most_ids: int, micro_batches: list[tuple[list[list[Arrival]], list[int]]]
) -> None:
    """Whatever a try before has had and left, and in whatever number of partitions.

    Forgetting has a test of its own: nine log hours are kept here.
    """
    accepted: list[Arrival] = []
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(known_ids, "_MOST_IDS", most_ids)
        stream = Stream(Path(name))
        for batch_id, (pieces, tries) in enumerate(micro_batches):
            for number, partitions in enumerate(tries[1:]):
                stream.attempt(batch_id, pieces[: len(pieces) - number], partitions)
            expected = []
            for piece in pieces:
                expected.append([])
                for arrival in piece:
                    is_near = (
                        abs(other.hour - arrival.hour) <= LATENESS for other in accepted if other[:2] == arrival[:2]
                    )
                    expected[-1].append(not any(is_near))
                    accepted += [arrival] if expected[-1][-1] else []
            assert stream.attempt(batch_id, pieces, tries[0]) == expected
            assert IdManifest.read(stream.folder, batch_id).ids == len(accepted)
            assert sorted(hour for ids in stream.known(batch_id) for hour in ids.log_hour) == sorted(
                arrival.hour for arrival in accepted
            )


def test_ids_are_forgotten_when_the_stream_is_far_enough(tmp_path: Path) -> None:
    stream = Stream(tmp_path)
    for batch_id in range(40):
        # One of each hour, and one of an hour that was over long ago, with which it does not go back.
        ones = [Arrival(batch_id, 0, HOUR + batch_id), Arrival(-batch_id - 1, 0, HOUR - 1_000)]
        assert stream.attempt(batch_id, [ones]) == [[True, True]]
        kept = {HOUR + hour for hour in range(max(0, batch_id - OLDEST_KEPT), batch_id + 1)}
        known = stream.known(batch_id)
        assert kept <= {int(hour) for ids in known for hour in ids.log_hour}
    assert sum(len(ids) for ids in known) < 40, "of 80"
    assert len(known) < 12


def test_a_file_too_large_to_be_merged_is_left_out_when_its_hours_are_over(tmp_path: Path) -> None:
    stream = Stream(tmp_path)
    stream.attempt(0, [[Arrival(number, 0, HOUR) for number in range(100)]])
    for batch_id in range(1, OLDEST_KEPT + 3):
        stream.attempt(batch_id, [[Arrival(1_000 + batch_id, 0, HOUR + batch_id)]])
        known = {int(hour) for ids in stream.known(batch_id) for hour in ids.log_hour}
        assert (HOUR in known) == (batch_id <= OLDEST_KEPT + 1)


def test_an_old_arrival_that_comes_twice_is_known_the_second_time(tmp_path: Path) -> None:
    stream = Stream(tmp_path)
    old = Arrival(7, 7, HOUR - 1_000)
    for batch_id, ones in enumerate([[Arrival(1, 1, HOUR), old], [Arrival(2, 2, HOUR + 1), old]]):
        assert stream.attempt(batch_id, [ones]) == [[True, batch_id == 0]]


def test_a_second_try_decides_as_the_first_though_that_has_forgotten(tmp_path: Path) -> None:
    """Else the tables would have what the first try says, and the account what the second does."""
    stream = Stream(tmp_path)
    old, new = Arrival(1, 1, HOUR), Arrival(2, 2, HOUR + 9)
    for batch_id, arrival in enumerate([old, new]):
        assert stream.attempt(batch_id, [[arrival]]) == [[True]]
    for _ in range(2):
        ones = [Arrival(3, 3, HOUR + 30), Arrival(1, 1, HOUR + 2), new]
        assert stream.attempt(2, [ones]) == [[True, True, False]]


def test_a_second_try_decides_as_the_first_though_lateness_hours_have_changed(tmp_path: Path) -> None:
    stream = Stream(tmp_path)
    first, later = Arrival(1, 1, HOUR), Arrival(1, 1, HOUR + LATENESS)
    stream.attempt(0, [[first]])
    for lateness_hours in (LATENESS, 1):
        stream.lateness_hours = lateness_hours
        assert stream.attempt(1, [[later]]) == [[False]]
    assert stream.attempt(2, [[later]]) == [[True]], "by the new ones"


def test_lines_of_a_broken_try_that_come_again_are_no_duplicates(tmp_path: Path) -> None:
    """The next try may have read others, and they are in no table."""
    stream = Stream(tmp_path)
    gone = Arrival(1, 1, HOUR)
    for ones in ([gone], []):
        stream.attempt(0, [ones])
    assert stream.attempt(1, [[gone]]) == [[True]]


def test_a_second_try_decides_as_the_first_on_ids_that_came_from_the_future(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Stream(tmp_path)
    ahead = Arrival(1, 1, HOUR + 9)
    for batch_id, (now, arrival) in enumerate([(HOUR, ahead), (HOUR + 10, Arrival(2, 2, HOUR + 10))]):
        monkeypatch.setattr(known_ids, "time", lambda now=now: 3600 * now)
        assert stream.attempt(batch_id, [[arrival]]) == [[True]]
    for _ in range(2):
        assert stream.attempt(2, [[ahead]]) == [[True]], "forgotten in both"


def test_a_clock_that_was_ahead_once_lets_ids_be_forgotten_and_the_present_be_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Stream(tmp_path)
    ahead = 400
    for batch_id, (now, hour) in enumerate([(0, 0), (ahead, ahead), *((hour, hour) for hour in range(1, 40))]):
        monkeypatch.setattr(known_ids, "time", lambda now=now: 3600 * (HOUR + now))
        ones = [Arrival(100 * hour + number, 0, HOUR + hour) for number in range(10)]
        copies = [Arrival(100 * hour + number, 0, HOUR + hour) for number in range(5)]
        assert stream.attempt(batch_id, [ones]) == [[True] * 10]
        for _ in range(2):
            assert stream.attempt(batch_id + 1, [copies]) == [[False] * 5]
        (stream.folder / f"{batch_id + 1}.json").unlink()
    known = [hour for ids in stream.known(batch_id) for hour in ids.log_hour]
    assert set(range(39 - OLDEST_KEPT, 40)) <= {hour - HOUR for hour in known}
    assert len(known) < 10 * 3 * OLDEST_KEPT, "of 410"


def test_a_file_without_room_for_its_last_byte_is_an_error_and_is_not_there(tmp_path: Path) -> None:
    """What numpy has for writing to a file says nothing of it."""
    written = IdFile.write(tmp_path, Ids.of(*(np.zeros(1_000, np.int64) for _ in range(4))), HashRange(0, 0))
    file = tmp_path / written.name
    size = file.stat().st_size
    assert size >= 1_000 * ID_BYTES
    file.unlink()
    program = (
        f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({size - 1}, {size - 1}))\n"
        "import numpy as np; from pathlib import Path; from spark_jobs.ids.known_ids import HashRange, IdFile, Ids\n"
        "ids = Ids.of(*(np.zeros(1_000, np.int64) for _ in range(4)))\n"
        f"IdFile.write(Path({str(tmp_path)!r}), ids, HashRange(0, 0))"
    )
    ran = subprocess.run(
        [sys.executable, "-B", "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert "File too large" in ran.stderr, ran.stderr
    assert not list(tmp_path.iterdir())


def test_a_folder_of_the_future_makes_nothing_be_forgotten(tmp_path: Path) -> None:
    stream = Stream(tmp_path)
    now = int(time() // 3600)
    first, far = Arrival(1, 1, now), Arrival(2, 2, now + 100_000)
    for batch_id, (arrival, is_new) in enumerate([(first, True), (far, True), (first, False), (far, False)]):
        assert stream.attempt(batch_id, [[arrival]]) == [[is_new]]


def test_many_small_files_become_few_and_the_others_are_removed(tmp_path: Path) -> None:
    stream = Stream(tmp_path)
    for batch_id in range(300):
        stream.attempt(batch_id, [[Arrival(batch_id, 0, HOUR)]])
    known = stream.known(299)
    assert len(known) <= 20
    assert sorted(int(number) for ids in known for number in ids.hashes) == list(range(300))
    # Manifests and files of the last micro-batches are there still.
    assert len(list(tmp_path.glob("*.json"))) == 10
    assert len(list(tmp_path.glob("*.npy"))) <= len(known) + 20


def test_a_micro_batch_before_which_nothing_is_known_is_refused(tmp_path: Path) -> None:
    stream = Stream(tmp_path)
    stream.attempt(0, [])
    with pytest.raises(ClickmillError, match=r"1\.json, the event ids that were known before micro-batch 2"):
        stream.attempt(2, [])
