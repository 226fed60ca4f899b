"""The JARs, from the lock files."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from include.errors import ClickmillError
from ops.setup.messages import say
from ops.setup.stamps import STAMP, read_stamp, sha256_of, write_stamp

JARS_LOCK = "locks/jars.lock"
BROKER_JARS_LOCK = "locks/broker-jars.lock"
S3_JARS_LOCK = "locks/s3-jars.lock"
#: What the stream's benchmark compares with.
BENCH_JARS_LOCK = "locks/bench-jars.lock"
JAR_FOLDERS = {
    JARS_LOCK: ".jars",
    BROKER_JARS_LOCK: ".jars/broker",
    S3_JARS_LOCK: ".jars/s3",
    BENCH_JARS_LOCK: ".jars/bench",
}


def installed_jars(root: Path, lock: str) -> list[Path]:
    """The JARs in the lock file's folder, in the order that they have on a class path; none if there is none."""
    return sorted((root / JAR_FOLDERS[lock]).glob("*.jar"))


@dataclass(frozen=True)
class Jar:
    """One line of a lock file of JARs."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        """The name it has in its folder."""
        return f"{self.artifact}-{self.version}.jar"

    def __str__(self) -> str:
        """The Maven coordinate."""
        return f"{self.group}:{self.artifact}:{self.version}"


def read_jars_lock(path: Path) -> list[Jar]:
    """Read a lock file of JARs; every bad line is named in one ClickmillError."""
    jars, bad = [], []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        content = line.partition("#")[0].strip()
        if not content:
            continue
        entry = re.fullmatch(r"([\w.-]+):([\w.-]+):([\w.-]+)\s+([0-9a-f]{64})", content)
        if entry:
            jars.append(Jar(*entry.groups()))
        else:
            bad.append(f"line {number} {content!r}")
    if bad:
        raise ClickmillError(f"{path}: {'; '.join(bad)}: expected group:artifact:version and a SHA-256 in hex")
    return jars


def ivy_module(jars: Sequence[Jar]) -> str:
    """Render the ivy.xml that resolves these JARs, and none they depend on, in one call."""
    dependencies = "\n".join(
        f"    <dependency org={quoteattr(jar.group)} name={quoteattr(jar.artifact)}"
        f' rev={quoteattr(jar.version)} conf="default->master" transitive="false"/>'
        for jar in jars
    )
    return (
        '<ivy-module version="2.0">\n'
        '  <info organisation="clickmill" module="jars"/>\n'
        '  <configurations><conf name="default"/></configurations>\n'
        f"  <dependencies>\n{dependencies}\n  </dependencies>\n</ivy-module>\n"
    )


def check_jar(path: Path, jar: Jar) -> None:
    """Raise ClickmillError unless the file is the one the lock names; a wrong file is removed."""
    digest = sha256_of(path)
    if digest != jar.sha256:
        path.unlink()
        raise ClickmillError(
            f"wrong SHA-256 for {path.name} ({jar}): got {digest}, expected {jar.sha256} by the lock file; "
            "the file was removed: check your Maven mirror, then run: make setup"
        )


def _fetch(jars: Sequence[Jar], ivy: Path, java: Path, folder: Path) -> None:
    """Download the JARs into a folder with the Ivy that pyspark ships."""
    module = folder / "ivy.xml"
    module.write_text(ivy_module(jars), encoding="utf-8")
    command = [
        str(java), "-jar", str(ivy), "-warn", "-ivy", str(module), "-types", "jar", "bundle",
        "-cache", str(folder / "cache"), "-retrieve", f"{folder}/[artifact]-[revision].[ext]",
    ]  # fmt: skip
    settings = os.environ.get("CLICKMILL_IVY_SETTINGS")
    if settings:
        command += ["-settings", settings]
    answer = subprocess.run(command, capture_output=True, text=True)
    missing = [str(jar) for jar in jars if not (folder / jar.file_name).exists()]
    if missing:
        print(answer.stdout + answer.stderr, file=sys.stderr)
        raise ClickmillError(
            f"cannot fetch {', '.join(missing)} (Ivy's lines above say why); behind a mirror set "
            "CLICKMILL_IVY_SETTINGS to an ivysettings.xml, behind a proxy set "
            f"JAVA_TOOL_OPTIONS='-Dhttps.proxyHost=… -Dhttps.proxyPort=…', or put the files into {folder.parent}; "
            "then run: make setup"
        )


def install_jars(root: Path, java: Path, ivy: Path | None = None, lock: str = JARS_LOCK) -> bool:
    """Bring the lock file's folder to exactly what it says; return whether anything was done."""
    folder = root / JAR_FOLDERS[lock]
    folder.mkdir(parents=True, exist_ok=True)
    stamp = folder / STAMP
    sums = {lock: sha256_of(root / lock)}
    jars = read_jars_lock(root / lock)
    if read_stamp(stamp) == sums and all((folder / jar.file_name).exists() for jar in jars):
        return False
    stamp.unlink(missing_ok=True)
    missing = []
    for jar in jars:
        present = folder / jar.file_name
        if present.exists():
            check_jar(present, jar)
        else:
            missing.append(jar)
    if missing:
        say(f"fetching {', '.join(jar.file_name for jar in missing)}")
        ivy = ivy or next((root / ".venv").glob("lib/python3*/site-packages/pyspark/jars/ivy-*.jar"))
        with tempfile.TemporaryDirectory(prefix=".new-", dir=folder) as scratch:
            _fetch(missing, ivy, java, Path(scratch))
            for jar in missing:
                check_jar(Path(scratch) / jar.file_name, jar)
            for jar in missing:
                os.replace(Path(scratch) / jar.file_name, folder / jar.file_name)
    # Spark takes every JAR of the folder: one that the lock no longer names must not linger.
    for stale in set(folder.glob("*.jar")) - {folder / jar.file_name for jar in jars}:
        stale.unlink()
    write_stamp(stamp, sums)
    return True
