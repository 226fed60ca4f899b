"""Set-up: the virtual environment and the JARs, from the lock files, once.

Run by the system's Python before anything is installed, so it uses the standard library only:
`python3 -m ops.bootstrap [--dev] [--broker] [--team]`. Where CLICKMILL_DATA is in an object store, Spark's
JARs for it too. What is there already, by the sums of the lock files, is left alone; a second call does nothing and
takes well under a second.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from include.command import exit_with
from include.home import REPOSITORY
from include.storage import S3
from ops.setup.class_data import archive_broker_classes, archive_spark_classes
from ops.setup.jars import BROKER_JARS_LOCK, S3_JARS_LOCK, install_jars
from ops.setup.messages import say
from ops.setup.packages import LOCKS, install_packages, make_command, remove_archives
from ops.setup.prerequisites import check_python, find_java


@contextmanager
def _one_at_a_time(root: Path) -> Iterator[None]:
    """Let a second set-up of the same tree wait for the first."""
    folder = root / ".jars"
    folder.mkdir(exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def set_up(root: Path = REPOSITORY, groups: Sequence[str] = ("runtime",)) -> bool:
    """Do whatever of the set-up is not done yet; return whether anything was."""
    check_python()
    java = find_java()
    with _one_at_a_time(root):
        packages = install_packages(root, [group for group in groups if group in LOCKS])
        remove_archives(root)
        command = make_command(root)
        jars = install_jars(root, java)
        broker = "broker" in groups and install_jars(root, java, lock=BROKER_JARS_LOCK)
        # Takes half a minute, which a first look at `make run` would not get back; a stream and tests do.
        archives = (archive_spark_classes, archive_broker_classes) if "broker" in groups else ()
        with ThreadPoolExecutor(2) as pool:
            archived = [pool.submit(archive, root, java) for archive in archives]
            s3 = S3 in groups and install_jars(root, java, lock=S3_JARS_LOCK)
        classes = any([archive.result() for archive in archived])
    return packages or command or jars or broker or classes or s3


def main() -> None:
    """Run set-up from the command line."""
    parser = argparse.ArgumentParser(prog="ops.bootstrap", description=str(__doc__).partition("\n")[0])
    parser.add_argument("--dev", action="store_true", help="also install what the tests need")
    parser.add_argument(
        "--broker",
        action="store_true",
        help="also install the embedded Kafka broker, and archive Java classes; so does --dev",
    )
    parser.add_argument("--team", action="store_true", help="also install what docker-compose.yml's containers need")
    options = parser.parse_args()
    began = time.monotonic()
    is_in_s3 = os.environ.get("CLICKMILL_DATA", "").startswith(S3)
    wanted = {
        "runtime": True,
        "dev": options.dev,
        "broker": options.broker or options.dev,
        S3: is_in_s3 or options.dev or options.team,
        "team": options.team,
    }
    if set_up(groups=[group for group, is_wanted in wanted.items() if is_wanted]):
        say(f"done in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    exit_with(main, "set-up", interrupted="run it again, it goes on where it was")
