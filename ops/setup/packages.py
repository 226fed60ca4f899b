"""The virtual environment, from the lock files."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from include.errors import ClickmillError, UsageError
from include.storage import write_whole
from ops.setup.messages import how_to, say
from ops.setup.prerequisites import install_command
from ops.setup.stamps import STAMP, read_stamp, sha256_of, write_stamp

LOCKS = {"runtime": "locks/runtime.txt", "dev": "locks/dev.txt", "team": "locks/team.txt"}
UV_LOCK = "locks/uv.txt"
BUILD_LOCK = "locks/build.txt"
# For uv: some packages come as source, and what builds them is code that runs here too.
BUILD_BY_HASH = ("--require-build-hashes", "--preview-features", "build-dependency-hashes", "--build-constraints")


def _run(command: Sequence[str], failed: str, environment: Mapping[str, str] | None = None) -> None:
    """Run a command that prints for itself; raise ClickmillError(failed) when it ends badly."""
    try:
        code = subprocess.run(list(command), env=environment).returncode
    except OSError as error:
        raise ClickmillError(f"{failed}: cannot run {command[0]}: {error}") from error
    if code != 0:
        raise ClickmillError(f"{failed}: {' '.join(command)} ended with exit code {code}; its lines above say why")


def make_venv(venv: Path) -> Path:
    """Make the virtual environment unless one that runs is there; return its python."""
    python = venv / "bin" / "python"
    if python.exists():
        works = subprocess.run(
            [str(python), "-c", "import sys; raise SystemExit(sys.version_info[:2] < (3, 11))"],
            capture_output=True,
        )
        if works.returncode == 0:
            return python
    say(f"making {venv}")
    made = subprocess.run([sys.executable, "-m", "venv", "--clear", str(venv)], capture_output=True, text=True)
    if made.returncode != 0:
        shutil.rmtree(venv, ignore_errors=True)
        if "ensurepip" in made.stdout + made.stderr:
            package = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
            command = install_command(package, "python3-pip", "python")
            raise UsageError(
                f"Python's venv module is not whole ({sys.executable} has no ensurepip); "
                + how_to(command, "install a Python with ensurepip"),
            )
        last = (made.stderr or made.stdout).strip().splitlines()[-1:]
        raise ClickmillError(f"cannot make the virtual environment {venv}: {' '.join(last)}")
    return python


def _installer_environment(python: Path) -> dict[str, str]:
    """The environment for uv, which knows nothing of pip's settings: hand it pip's mirror and certificate.

    They stay in the environment; no lock file ever names a registry.
    """
    environment = dict(os.environ)
    listed = subprocess.run([str(python), "-m", "pip", "config", "list"], capture_output=True, text=True)
    for line in listed.stdout.splitlines():
        key, _, value = line.partition("=")
        name = {"index-url": "UV_DEFAULT_INDEX", "cert": "SSL_CERT_FILE"}.get(key.rpartition(".")[2])
        if name:
            environment.setdefault(name, value.strip("'\""))
    return environment


def install_packages(root: Path, groups: Sequence[str]) -> bool:
    """Bring .venv to exactly what the lock files say; return whether anything was done.

    A group once installed stays: `make run` after `make test` does not take the test tools away.
    """
    venv = root / ".venv"
    stamp = venv / STAMP
    stamped = read_stamp(stamp)
    wanted = [group for group in LOCKS if group in groups or LOCKS[group] in stamped]
    locks = [UV_LOCK, *(LOCKS[group] for group in wanted)]
    sums = {lock: sha256_of(root / lock) for lock in (BUILD_LOCK, *locks)}
    if stamped == sums and os.access(venv / "bin" / "python", os.X_OK):
        return False
    python = make_venv(venv)
    stamp.unlink(missing_ok=True)
    uv = venv / "bin" / "uv"
    pinned = re.search(r"^uv==(\S+)", (root / UV_LOCK).read_text(encoding="utf-8"), re.MULTILINE)
    if pinned is None:
        raise ClickmillError(f"{UV_LOCK} pins no uv: expected a line uv==VERSION; run: git checkout {UV_LOCK}")
    present = ""
    if uv.exists():
        present = subprocess.run([str(uv), "--version"], capture_output=True, text=True).stdout
    if present.split()[1:2] != [pinned.group(1)]:
        say(f"installing uv {pinned.group(1)}")
        _run(
            [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
             "--require-hashes", "--only-binary=:all:", "--no-deps", "-r", str(root / UV_LOCK)],
            "cannot install uv",
        )  # fmt: skip
    say(f"installing packages from {', '.join(locks[1:])}")
    _run(
        # Compiled here, once: where PYTHONDONTWRITEBYTECODE is set every task would compile again.
        [str(uv), "pip", "sync", "--quiet", "--require-hashes", "--compile-bytecode",
         *BUILD_BY_HASH, str(root / BUILD_LOCK), "--python", str(python), *(str(root / lock) for lock in locks)],
        "cannot install the packages",
        _installer_environment(python),
    )  # fmt: skip
    write_stamp(stamp, sums)
    return True


def remove_archives(root: Path) -> None:
    """Have Spark's Python processes read pyspark from its folder, which is compiled.

    Spark puts the archives that pyspark brings of itself and of py4j before that folder, and nothing in them is
    compiled: each process compiled again what it imports (docs/performance.md). YARN alone needs them.
    """
    for archive in (root / ".venv").glob("lib/python3*/site-packages/pyspark/python/lib/*.zip"):
        archive.unlink()


def make_command(root: Path) -> bool:
    """Make .venv/bin/clickmill, which runs this tree from any folder; return whether anything was done."""
    program = root / ".venv" / "bin" / "clickmill"
    # By the shell: a path in a first line may be neither long nor have a blank.
    text = (
        f'#!/bin/sh\nexec {shlex.quote(str(root / ".venv/bin/python"))} {shlex.quote(str(root / "clickmill"))} "$@"\n'
    )
    if program.exists() and program.read_text(encoding="utf-8") == text and os.access(program, os.X_OK):
        return False
    write_whole(program, text.encode(), mode=0o777)
    return True
