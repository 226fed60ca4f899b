"""Locks between jobs, as files and in a real PostgreSQL: one holder, gone with its process or its connection."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, cast

import pytest

from include.errors import ClickmillError, LockHeldError, LockLostError, StreamRunsAlreadyError, UsageError
from include.locks import Holder, locks_of
from include.settings import REPOSITORY, Settings
from include.storage import place
from include.tables import QUALITY_RESULTS
from ops.home import Home, find_home
from spark_jobs.lake.lake import Lake
from spark_jobs.stream.checkpoint import StreamCheckpoint
from tests.support.postgres_server import PostgresServer, postgres_server
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Another job: holds the lock until its input ends.
HOLDS = """
import sys
from include.locks import locks_of
from ops.home import find_home
with locks_of(find_home()).held("lake"):
    print("held", flush=True)
    sys.stdin.read()
"""
#: Adds one to a number in a file, so often, each time under the lock.
COUNTS = """
import sys
from pathlib import Path
from include.locks import locks_of
from ops.home import find_home
locks, number = locks_of(find_home()), Path(sys.argv[1])
for _ in range(50):
    with locks.held("lake"):
        number.write_text(str(int(number.read_text()) + 1))
"""


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        server.make_database("locks")
        yield server


@pytest.fixture(params=["files", pytest.param("database", marks=[pytest.mark.slow, pytest.mark.servers])])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    if request.param == "files":
        return Home(tmp_path / "home")
    server: PostgresServer = request.getfixturevalue("postgres")
    return Home(tmp_path / "home", tmp_path / "data", server.address("locks"))


def variables(home: Home) -> dict[str, str]:
    data = {"CLICKMILL_DATA": str(home.data_folder)} if home.data_folder else {}
    return {"CLICKMILL_HOME": str(home.path), "CLICKMILL_LOCKS": home.locks_database or ""} | data


@contextmanager
def another_job(home: Home) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS],
        env=os.environ | variables(home), cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as job:  # fmt: skip
        try:
            assert job.stdout is not None
            assert job.stdout.readline() == b"held\n"
            yield job
        finally:
            job.kill()


def test_a_lock_has_one_holder_which_is_named_until_it_is_killed(home: Home) -> None:
    locks = locks_of(home)
    assert locks.holders() == []
    with another_job(home) as job:
        for patience in (0, 0.1):
            with pytest.raises(LockHeldError, match=rf"the lock lake is held by \S+ \(process {job.pid} of "):
                locks.held("lake", patience).__enter__()
        with locks.held("another", 0):
            assert [holder.name for holder in locks.holders()] == ["another", "lake"]
        assert [(holder.name, holder.pid) for holder in locks.holders()] == [("lake", job.pid)]
        job.send_signal(signal.SIGKILL)
        with locks.held("lake") as lock:
            lock.require()
    assert locks.holders() == []


def test_a_paused_holder_keeps_its_lock(home: Home) -> None:
    locks = locks_of(home)
    with another_job(home) as job:
        job.send_signal(signal.SIGSTOP)
        with pytest.raises(LockHeldError):
            locks.held("lake", 0.5).__enter__()
        job.send_signal(signal.SIGCONT)
        job.communicate(b"")
        with locks.held("lake"):
            pass


def test_who_waits_says_for_whom_and_is_listed_and_whoever_came_first_is_first(home: Home, tmp_path: Path) -> None:
    locks, error_file = locks_of(home), tmp_path / "errors"
    with error_file.open("wb") as errors, ExitStack() as stack:
        with locks.held("lake"):
            waiting = []
            for number in range(1, 4):
                task = {"AIRFLOW_CTX_DAG_ID": "dag", "AIRFLOW_CTX_TASK_ID": f"{number}"}
                job = subprocess.Popen(
                    [sys.executable, "-c", HOLDS],
                    env=os.environ | variables(home) | task,
                    cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                )  # fmt: skip
                stack.callback(job.communicate)
                stack.callback(job.kill)
                waiting.append(job)
                wait_until(lambda number=number: len(locks.waiters()) == number, f"job {number} waits", 30)
            waiters = [(waiter.name, waiter.pid, waiter.runs) for waiter in locks.waiters()]
            assert waiters == [("lake", job.pid, f"dag.{n}") for n, job in enumerate(waiting, 1)]
            wait_until(lambda: error_file.read_text().count("waits for the lock lake") == 3, "all say it", 10)
            assert f"held by {Holder.here('lake').runs} (process {os.getpid()} of " in error_file.read_text()
            waiting[0].send_signal(signal.SIGKILL)
            waiting[0].wait()
            wait_until(lambda: len(locks.waiters()) == 2, "the killed one waits no more", 30)
        for job in waiting[1:]:
            assert job.stdout is not None
            assert job.stdout.readline() == b"held\n"
            assert [holder.pid for holder in locks.holders()] == [job.pid]
            with pytest.raises(LockHeldError):
                locks.held("lake", 0.1).__enter__()
            job.communicate(b"")
        assert (locks.waiters(), locks.holders()) == ([], [])


@pytest.mark.slow
def test_jobs_that_race_for_a_lock_take_turns(home: Home, tmp_path: Path) -> None:
    number = tmp_path / "number"
    number.write_text("0")
    jobs = [
        subprocess.Popen([sys.executable, "-c", COUNTS, number], env=os.environ | variables(home), cwd=REPOSITORY)
        for _ in range(4)
    ]
    assert [job.wait(120) for job in jobs] == [0, 0, 0, 0]
    assert number.read_text() == "200"


def test_lakes_in_one_database_have_locks_of_their_own(postgres: PostgresServer, tmp_path: Path) -> None:
    first, other = (Home(tmp_path, tmp_path / name, postgres.address("locks")) for name in ("one", "other"))
    with locks_of(first).held("lake", 0), locks_of(other).held("lake", 0):
        assert len(locks_of(first).holders()) == len(locks_of(other).holders()) == 1


@pytest.mark.slow
def test_a_stream_belongs_to_one_process_of_all_machines(
    postgres: PostgresServer, settings: Settings, tmp_path: Path
) -> None:
    """Also where a machine does not see the file that another has locked."""
    settings = replace(settings, locks_database=postgres.address("locks"))
    here = StreamCheckpoint.of(settings, "web")
    elsewhere = replace(here, lock=tmp_path / "unseen.lock")
    with (
        here.owned(settings),
        pytest.raises(StreamRunsAlreadyError, match="the stream of web runs already: the lock stream-web is held by"),
        elsewhere.owned(settings),
    ):
        pass
    with elsewhere.owned(settings):
        pass


@pytest.mark.slow
def test_a_job_that_lost_its_lock_writes_nothing_more(postgres: PostgresServer, settings: Settings) -> None:
    lake = Lake(cast("SparkSession", None), replace(settings, locks_database=postgres.address("locks")))
    writes: list[Callable[[], object]] = [
        lambda: lake.append_rows(QUALITY_RESULTS, []),
        lambda: lake.compact(QUALITY_RESULTS),
    ]
    ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'lake|%'"
    with lake.locked():
        assert lake.compact(QUALITY_RESULTS) is False, "the lock is held, and there is no such table"
        assert postgres.query("locks", ended) == [(True,)]
        for write in writes:
            with pytest.raises(LockLostError, match=r"the lock lake is lost with its connection .* run this one again"):
                write()
    assert not settings.lake.exists()
    with lake.locked():
        lake.compact(QUALITY_RESULTS)


def test_a_lock_that_is_given_back_while_others_ask_about_it_is_not_lost(
    postgres: PostgresServer, settings: Settings
) -> None:
    """Each of the jobs done at the same time has a lock of its own beside the common one."""
    lake = Lake(cast("SparkSession", None), replace(settings, locks_database=postgres.address("locks")))
    errors: list[Exception] = []

    def take(name: str) -> None:
        try:
            for _ in range(20):
                with lake.locked(name):
                    lake.compact(QUALITY_RESULTS)
        except ClickmillError as error:
            errors.append(error)

    with lake.locked():
        threads = [Thread(target=take, args=(name,)) for name in ("write-a", "write-b", "write-c")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert errors == []


def test_a_database_that_is_away_is_named_and_nothing_is_done(tmp_path: Path) -> None:
    away = locks_of(Home(tmp_path, locks_database="postgresql://nobody:secret@127.0.0.1:1/locks"))
    with pytest.raises(ClickmillError, match=r"\(CLICKMILL_LOCKS\) cannot be reached: .* nothing was done") as refused:
        away.held("lake").__enter__()
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "address", ["postgresql//u:s3cret@db/locks", "postgresql://u:p@s3cret@127.0.0.1/locks", "s3cret"]
)
def test_an_address_that_is_none_is_refused_without_its_password(tmp_path: Path, address: str) -> None:
    with pytest.raises(UsageError, match="CLICKMILL_LOCKS is no address of a PostgreSQL database") as refused:
        locks_of(Home(tmp_path, locks_database=address))
    assert "s3cret" not in "".join(traceback.format_exception(refused.value))


def test_jobs_that_look_for_locks_elsewhere_are_refused(postgres: PostgresServer, tmp_path: Path) -> None:
    files = Home(tmp_path / "one", tmp_path / "data")
    database = replace(files, path=tmp_path / "other", locks_database=postgres.address("locks"))
    for first, then, kept in ((files, database, "files"), (database, files, "the PostgreSQL database locks")):
        with locks_of(first).held("lake"):
            pass
        with pytest.raises(UsageError, match=f"the locks of .*data are kept in {kept}, .* remove .*kept-in") as refused:
            locks_of(then)
        Path(str(refused.value).rpartition("remove ")[2]).unlink()


def test_limits_of_the_database_end_no_wait_and_no_holder(postgres: PostgresServer, tmp_path: Path) -> None:
    limits = ("statement_timeout", "lock_timeout", "idle_session_timeout")
    address = postgres.make_database("limited")
    for name in limits:
        postgres.query("limited", f"ALTER DATABASE limited SET {name} = '200ms'")
    home = Home(tmp_path / "home", tmp_path / "data", address)
    with another_job(home) as job:
        with pytest.raises(LockHeldError):
            locks_of(home).held("lake", 1).__enter__()
        assert [holder.pid for holder in locks_of(home).holders()] == [job.pid]


def test_a_job_that_waits_for_a_lock_can_be_told_to_end(home: Home) -> None:
    """By a signal that Python handles, as Airflow's tasks do: waiting inside of libpq, it would not come to that."""
    told = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))"
    with locks_of(home).held("lake"):
        job = subprocess.Popen(
            [sys.executable, "-c", told + HOLDS],
            env=os.environ | variables(home), cwd=REPOSITORY, stdin=subprocess.PIPE,
        )  # fmt: skip
        try:
            with pytest.raises(subprocess.TimeoutExpired):
                job.wait(2)
            job.send_signal(signal.SIGTERM)
            assert job.wait(30) == 7
        finally:
            job.kill()
            job.communicate()


def test_a_lock_lost_while_another_is_waited_for_is_noticed(postgres: PostgresServer, settings: Settings) -> None:
    postgres_settings = replace(settings, locks_database=postgres.address("locks"))
    lake = Lake(cast("SparkSession", None), postgres_settings)
    ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'lake|%'"
    other = locks_of(postgres_settings).held(f"write-{QUALITY_RESULTS.name}")
    other.__enter__()

    def end_and_let_go() -> None:
        time.sleep(0.5)
        postgres.query("locks", ended)
        other.__exit__(None, None, None)

    with lake.locked():
        thread = Thread(target=end_and_let_go)
        thread.start()
        with pytest.raises(LockLostError), lake.locked(f"write-{QUALITY_RESULTS.name}"):
            raise AssertionError("nothing is to be written now")
        thread.join()


def test_an_object_store_has_no_locks_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="an object store has no locks: set CLICKMILL_LOCKS"):
        locks_of(Home(tmp_path, place("s3://bucket/data")))
    environment = {
        "CLICKMILL_HOME": str(tmp_path),
        "CLICKMILL_DATA": "s3://bucket/data/",
        "CLICKMILL_LOCKS": "dbname=x",
    }
    remote_home = find_home(None, environment)
    assert (str(remote_home.lake), remote_home.locks_database) == ("s3://bucket/data/lake", "dbname=x")
    assert remote_home.streams == tmp_path / "streams"
    assert "dbname=x" not in repr(remote_home)


@pytest.mark.parametrize("program", ["/opt/clickmill/clickmill", "/opt/clickmill/clickmill/__main__.py"])
def test_of_the_command_line_the_command_is_named(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [program, "ingest", "--hour", "2026-03-01T05"])
    assert Holder.here("lake").runs == "ingest"
    monkeypatch.setattr(sys, "argv", ["/opt/clickmill/samples/__main__.py", "--from"])
    assert Holder.here("lake").runs == "samples"
