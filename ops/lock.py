"""Compile locks/*.txt from locks/*.in with hashes: `make lock`.

Versions that a lock file already has are kept where they still fit; `python -m ops.lock --upgrade` takes the
newest.
"""

from __future__ import annotations

import argparse
import os
import subprocess

from include.command import exit_with
from include.errors import ClickmillError
from include.home import REPOSITORY
from ops.setup.packages import BUILD_BY_HASH, BUILD_LOCK
from ops.setup.prerequisites import OLDEST_PYTHON

# The first builds what is read of the others; dev and team are constrained by runtime.txt.
NAMES = ("locks/build", "locks/runtime", "locks/dev", "locks/team", "locks/uv")


def compile_command(name: str, upgrade: bool) -> list[str]:
    """Return uv's command line for one lock file: all platforms, hashes, and no registry's address."""
    return [
        f"{REPOSITORY}/.venv/bin/uv", "pip", "compile", "--quiet", "--universal",
        "--python-version", ".".join(map(str, OLDEST_PYTHON)),
        "--override", "locks/overrides.in", "--generate-hashes", "--no-emit-index-url", "--no-emit-find-links",
        *BUILD_BY_HASH, BUILD_LOCK,
        "--custom-compile-command", "make lock", *(("--upgrade",) if upgrade else ()),
        f"{name}.in", "-o", f"{name}.txt",
    ]  # fmt: skip


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="ops.lock", description=str(__doc__).partition("\n")[0])
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions that fit")
    upgrade = parser.parse_args().upgrade
    # Wheels that only this machine has would give hashes that no other can check.
    environment = {name: value for name, value in os.environ.items() if name != "UV_FIND_LINKS"}
    for name in NAMES:
        code = subprocess.run(compile_command(name, upgrade), cwd=REPOSITORY, env=environment).returncode
        if code != 0:
            raise ClickmillError(f"{name}.in has no solution; uv's lines above say why")
        if "://" in (REPOSITORY / f"{name}.txt").read_text(encoding="utf-8"):
            raise ClickmillError(f"{name}.txt names an address: expected none; look for '://' in it and in {name}.in")
        print(f"lock: {name}.txt")


if __name__ == "__main__":
    exit_with(main, "lock")
