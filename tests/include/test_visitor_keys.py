"""The keys for visitors: made once whoever needs them, and destroyed in time."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from datetime import UTC, date, datetime, timedelta
from uuid import uuid4

import pytest

from include.errors import ClickmillError
from include.locks import locks_of
from include.settings import Settings
from include.storage import place
from include.visitor_keys import VisitorKeys
from spark_jobs.retention.job import maintain
from tests.support.s3_server import S3Server

DAY, NEXT = date(2026, 3, 1), date(2026, 3, 2)
NOW = datetime.now(UTC)


@pytest.fixture
def keys(settings: Settings) -> VisitorKeys:
    return VisitorKeys.of(settings)


def destroy_old_keys(settings: Settings, now: datetime, *, dry_run: bool = False) -> list[str]:
    """By a maintenance, of a lake without tables."""
    *of_keys, _ = maintain(settings, dry_run=dry_run, now=now)
    return of_keys


def _age(keys: VisitorKeys, name: str, days: float) -> None:
    """Have the key been made so many days ago."""
    text, _ = (keys.folder / name).read_bytes().splitlines()
    made_at = NOW - timedelta(days=days)
    (keys.folder / name).write_bytes(text + f"\n{made_at.isoformat()}\n".encode())


def _ask(start: float, asked: list[tuple[VisitorKeys, date]]) -> list[bytes]:
    """What a process finds that asks from this moment on, as others do."""
    while time.time() < start:
        pass
    return [keys.of_day(day) for keys, day in asked]


def _race(asked: list[tuple[VisitorKeys, date]]) -> list[list[bytes]]:
    """What each of four processes finds that ask for the same keys in the same order."""
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        pool.starmap(_ask, [(time.time() + 0.5, [])] * 4, chunksize=1)  # all have begun
        return pool.starmap(_ask, [(time.time() + 0.5, asked)] * 4, chunksize=1)


def test_processes_that_race_for_the_key_of_a_day_find_the_same_one(keys: VisitorKeys) -> None:
    answers = _race([(keys, DAY + timedelta(days=number)) for number in range(300)])
    assert all(answer == answers[0] for answer in answers)
    assert len(set(answers[0])) == 300
    assert {len(key) for key in answers[0]} == {64}, "as long as BLAKE2b takes them"
    assert {file.stat().st_mode & 0o777 for file in keys.folder.iterdir()} == {0o600}
    assert keys.folder.stat().st_mode & 0o777 == keys.folder.parent.stat().st_mode & 0o777 == 0o700
    assert len(list(keys.folder.iterdir())) == 300, "nothing is left beside them"


def test_processes_that_race_for_keys_in_an_object_store_find_the_same_ones(s3: S3Server) -> None:
    folder = place(s3.make_bucket(f"keys-{uuid4()}")) / "secrets"
    keys = VisitorKeys(folder / "visitor_keys")
    answers = _race([(keys, DAY + timedelta(days=number)) for number in range(30)])
    assert all(answer == answers[0] for answer in answers)
    assert len(set(answers[0])) == 30
    keys.remove([f"{DAY}"], NOW)
    assert keys.known([DAY, NEXT]) == {NEXT: answers[0][1]}


def test_a_key_is_never_shown(keys: VisitorKeys) -> None:
    key = keys.of_day(DAY).decode()
    assert key not in f"{keys!r} {keys.stored()!r} {keys.stored()}"


def test_keys_are_destroyed_so_many_days_after_they_were_made(settings: Settings, keys: VisitorKeys) -> None:
    """However long ago their day is: logs of two years ago have the same visitors while they are worked on."""
    old, young = keys.of_day(DAY), keys.of_day(NEXT)
    long_ago = keys.of_day(date(2024, 1, 1))
    _age(keys, f"{DAY}", 32)
    _age(keys, f"{NEXT}", 30)
    left, unfinished = keys.folder / ".2026-03-01.killed", keys.folder / ".2026-03-02.being-made"
    for file, age in ((left, 2), (unfinished, 0)):
        file.write_bytes(old)
        os.utime(file, (NOW.timestamp() - age * 86400,) * 2)
    removals = [f"keys for visitors of {DAY}"]
    assert destroy_old_keys(settings, NOW, dry_run=True) == removals
    assert keys.known([DAY]) == {DAY: old}
    assert left.exists()
    assert destroy_old_keys(settings, NOW) == removals
    assert destroy_old_keys(settings, NOW) == []
    assert keys.known([DAY, NEXT, date(2024, 1, 1)]) == {NEXT: young, date(2024, 1, 1): long_ago}
    assert unfinished.exists()
    assert not left.exists(), "a second name of a key outlives it"
    assert not [file for file in settings.data.rglob("*") if file.is_file() and f"{DAY}" in file.name]
    # Asked for again it is another.
    assert keys.of_day(DAY) not in {old, young, long_ago}


def test_of_many_keys_ranges_of_days_are_said(settings: Settings, keys: VisitorKeys) -> None:
    for day in (DAY, NEXT, date(2026, 3, 3), date(2026, 2, 27), date(2024, 2, 29), date(2024, 3, 1)):
        keys.of_day(day)
    later = NOW + timedelta(days=32)
    expected = ["keys for visitors of 2024-02-29 to 2024-03-01, 2026-02-27, 2026-03-01 to 2026-03-03"]
    assert destroy_old_keys(settings, later, dry_run=True) == expected


def test_how_many_days_is_a_setting(settings: Settings, keys: VisitorKeys) -> None:
    keys.of_day(DAY)
    _age(keys, f"{DAY}", 6)
    with settings.pipeline_file.open("a", encoding="utf-8") as pipeline:
        pipeline.write("[retention]\nvisitor_key_days = 5\n")
    assert destroy_old_keys(settings, NOW) == [f"keys for visitors of {DAY}"]


def test_no_key_is_destroyed_while_a_job_has_the_lake(settings: Settings, keys: VisitorKeys) -> None:
    keys.of_day(DAY)
    _age(keys, f"{DAY}", 400)
    destroying = threading.Thread(target=destroy_old_keys, args=(settings, NOW))
    with locks_of(settings).held("lake"):
        destroying.start()
        destroying.join(0.5)
        assert keys.known([DAY])
    destroying.join(60)
    assert not keys.known([DAY])


def test_no_key_is_made_for_whoever_asks_which_are_known(keys: VisitorKeys) -> None:
    assert keys.known([DAY, NEXT]) == {}
    assert keys.stored() == {}
    key = keys.of_day(NEXT)
    assert keys.known([DAY, NEXT]) == {NEXT: key}
    assert keys.stored().keys() == {f"{NEXT}"}


@pytest.mark.parametrize("content", [b"", b"half-of-it", b"\n2026-03-01T00:00:00+00:00\n", b"key\nyesterday\n"])
def test_a_file_that_is_no_key_is_an_error_that_names_it(keys: VisitorKeys, content: bytes) -> None:
    keys.of_day(DAY)
    (keys.folder / f"{DAY}").write_bytes(content)
    with pytest.raises(ClickmillError, match=f"visitor_keys/{DAY} is not whole: expected a key and when"):
        keys.of_day(DAY)
