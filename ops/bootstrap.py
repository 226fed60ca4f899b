"""Set-up: the virtual environment and the JARs, from the lock files, once.

Run by the system's Python before anything is installed, so it uses the standard library only:
`python3 -m ops.bootstrap [--dev] [--broker]`. What is there already, by the sums of the lock files, is left alone;
a second call does nothing and takes well under a second.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

REPOSITORY = Path(__file__).resolve().parent.parent
OLDEST_PYTHON = (3, 11)
JAVA_VERSIONS = (17, 21)
LOCKS = {"runtime": "requirements.txt", "dev": "requirements-dev.txt"}
UV_LOCK = "requirements-uv.txt"
BUILD_LOCK = "requirements-build.txt"
# For uv: some packages come as source, and what builds them is code that runs here too.
BUILD_BY_HASH = ("--require-build-hashes", "--preview-features", "build-dependency-hashes", "--build-constraints")
JARS_LOCK = "jars.lock"
BROKER_JARS_LOCK = "broker-jars.lock"
JAR_FOLDERS = {JARS_LOCK: ".jars", BROKER_JARS_LOCK: ".jars/broker"}
STAMP = "clickmill-setup.json"


class SetupError(Exception):
    """Set-up cannot go on; the message is one line for the user, `exit_code` what the shell gets."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


# --- what the machine must have -------------------------------------------------------------------


def install_command(apt: str, dnf: str, brew: str) -> str:
    """Return the command that installs a package here, or "" where no known package manager is found."""
    sudo = "" if os.geteuid() == 0 else "sudo "
    for program, command in (
        ("apt-get", f"{sudo}apt-get install -y {apt}"),
        ("dnf", f"{sudo}dnf install -y {dnf}"),
        ("brew", f"brew install {brew}"),
    ):
        if shutil.which(program):
            return command
    return ""


def _mend(command: str, otherwise: str) -> str:
    return f"run: {command}" if command else otherwise


def check_python(version: tuple[int, ...] = sys.version_info[:3]) -> None:
    """Raise SetupError (exit 2) when this Python is older than Clickmill needs."""
    if version[:2] >= OLDEST_PYTHON:
        return
    found = ".".join(map(str, version))
    wanted = ".".join(map(str, OLDEST_PYTHON))
    for minor in range(14, OLDEST_PYTHON[1] - 1, -1):
        newer = shutil.which(f"python3.{minor}")
        if newer:
            raise SetupError(
                f"Python {found} ({sys.executable}) is too old: Clickmill needs {wanted} or newer; "
                f"run: make setup PYTHON={newer}",
                2,
            )
    command = install_command("python3.11 python3.11-venv", "python3.11", "python@3.11")
    raise SetupError(
        f"Python {found} ({sys.executable}) is too old: Clickmill needs {wanted} or newer; "
        + _mend(command, "install it, then run: make setup PYTHON=/path/to/python3"),
        2,
    )


def java_major(java: Path) -> int | None:
    """Return the major version of a java binary, or None when it does not run."""
    # The release file of a JDK spares starting a JVM only to ask for its version.
    release = java.resolve().parent.parent / "release"
    try:
        text = release.read_text(encoding="utf-8", errors="replace")
    except OSError:
        try:
            answer = subprocess.run([str(java), "-version"], capture_output=True, text=True, timeout=30)
        except (OSError, subprocess.TimeoutExpired):
            return None
        if answer.returncode != 0:
            return None
        text = answer.stderr + answer.stdout
    found = re.search(r'(?:JAVA_VERSION=|version )"(?:1\.)?(\d+)', text)
    return int(found.group(1)) if found else None


def java_command() -> str:
    """Return the command that installs a suitable Java here, or ""."""
    apt = "openjdk-17-jre-headless"
    try:
        release = platform.freedesktop_os_release()
        if release.get("ID") == "debian" and int(release.get("VERSION_ID", "12")) >= 13:
            apt = "openjdk-21-jre-headless"  # Debian 13 no longer has 17
    except (OSError, ValueError):
        pass
    return install_command(apt, "java-21-openjdk-headless", "openjdk@21")


def find_java(environment: Mapping[str, str] | None = None) -> Path:
    """Return a java binary of version 17 or 21: JAVA_HOME's, else the one on PATH.

    Raises:
        SetupError: exit 2, naming what was found, what is needed and the command that mends it.
    """
    environment = os.environ if environment is None else environment
    candidates: list[tuple[str, Path]] = []
    if environment.get("JAVA_HOME"):
        candidates.append(("JAVA_HOME", Path(environment["JAVA_HOME"]) / "bin" / "java"))
    on_path = shutil.which("java", path=environment.get("PATH", os.defpath))
    if on_path:
        candidates.append(("PATH", Path(on_path)))
    findings = []
    for origin, java in candidates:
        if not os.access(java, os.X_OK):
            findings.append(f"{origin} has no {java}")
            continue
        major = java_major(java)
        if major in JAVA_VERSIONS:
            return java
        what = f"Java {major}" if major else "a java that does not run"
        findings.append(f"{what} at {java} (from {origin})")
    found = "; ".join(findings) if findings else "none on PATH, and JAVA_HOME is not set"
    wanted = " or ".join(map(str, JAVA_VERSIONS))
    raise SetupError(
        f"no suitable Java: found {found}; Spark needs Java {wanted}; "
        + _mend(java_command(), "install one and set JAVA_HOME to it"),
        2,
    )


# --- stamps ---------------------------------------------------------------------------------------


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        for block in iter(lambda: stream.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def read_stamp(stamp: Path) -> dict[str, str]:
    """Return the sums a finished step left, {} when there are none or they cannot be read."""
    try:
        content = json.loads(stamp.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def write_stamp(stamp: Path, sums: Mapping[str, str]) -> None:
    """Leave the sums of a finished step; whole or not at all."""
    fresh = stamp.with_name(stamp.name + ".new")
    fresh.write_text(json.dumps(dict(sums), indent=1, sort_keys=True) + "\n", encoding="utf-8")
    os.replace(fresh, stamp)


@contextmanager
def _one_at_a_time(root: Path) -> Iterator[None]:
    """Let a second set-up of the same tree wait for the first."""
    folder = root / ".jars"
    folder.mkdir(exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _say(message: str) -> None:
    print(f"set-up: {message}", flush=True)


# --- the virtual environment ----------------------------------------------------------------------


def _run(command: Sequence[str], failed: str, environment: Mapping[str, str] | None = None) -> None:
    """Run a command that prints for itself; raise SetupError(failed) when it ends badly."""
    try:
        code = subprocess.run(list(command), env=environment).returncode
    except OSError as error:
        raise SetupError(f"{failed}: cannot run {command[0]}: {error}") from error
    if code != 0:
        raise SetupError(f"{failed}: {' '.join(command)} ended with exit code {code}; its lines above say why")


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
    _say(f"making {venv}")
    made = subprocess.run([sys.executable, "-m", "venv", "--clear", str(venv)], capture_output=True, text=True)
    if made.returncode != 0:
        shutil.rmtree(venv, ignore_errors=True)
        if "ensurepip" in made.stdout + made.stderr:
            package = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
            command = install_command(package, "python3-pip", "python")
            raise SetupError(
                f"Python's venv module is not whole ({sys.executable} has no ensurepip); "
                + _mend(command, "install a Python with ensurepip"),
                2,
            )
        last = (made.stderr or made.stdout).strip().splitlines()[-1:]
        raise SetupError(f"cannot make the virtual environment {venv}: {' '.join(last)}")
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
        raise SetupError(f"{UV_LOCK} pins no uv: expected a line uv==VERSION; run: git checkout {UV_LOCK}")
    present = ""
    if uv.exists():
        present = subprocess.run([str(uv), "--version"], capture_output=True, text=True).stdout
    if present.split()[1:2] != [pinned.group(1)]:
        _say(f"installing uv {pinned.group(1)}")
        _run(
            [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
             "--require-hashes", "--only-binary=:all:", "--no-deps", "-r", str(root / UV_LOCK)],
            "cannot install uv",
        )  # fmt: skip
    _say(f"installing packages from {', '.join(locks[1:])}")
    _run(
        # Compiled here, once: where PYTHONDONTWRITEBYTECODE is set every task would compile anew.
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
    compiled: each process compiled anew what it imports (docs/performance.md). YARN alone needs them.
    """
    for archive in (root / ".venv").glob("lib/python3*/site-packages/pyspark/python/lib/*.zip"):
        archive.unlink()


# --- the JARs -------------------------------------------------------------------------------------


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
    """Read a lock file of JARs; every bad line is named in one SetupError."""
    jars, bad = [], []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        content = line.partition("#")[0].strip()
        if not content:
            continue
        found = re.fullmatch(r"([\w.-]+):([\w.-]+):([\w.-]+)\s+([0-9a-f]{64})", content)
        if found:
            jars.append(Jar(*found.groups()))
        else:
            bad.append(f"line {number} {content!r}")
    if bad:
        raise SetupError(f"{path}: {'; '.join(bad)}: expected group:artifact:version and a SHA-256 in hex")
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
    """Raise SetupError unless the file is the one the lock names; a wrong file is removed."""
    found = sha256_of(path)
    if found != jar.sha256:
        path.unlink()
        raise SetupError(
            f"wrong SHA-256 for {path.name} ({jar}): got {found}, expected {jar.sha256} by the lock file; "
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
        raise SetupError(
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
        _say(f"fetching {', '.join(jar.file_name for jar in missing)}")
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


def set_up(root: Path = REPOSITORY, groups: Sequence[str] = ("runtime",)) -> bool:
    """Do whatever of the set-up is not done yet; return whether anything was."""
    check_python()
    java = find_java()
    with _one_at_a_time(root):
        packages = install_packages(root, [group for group in groups if group in LOCKS])
        remove_archives(root)
        jars = install_jars(root, java)
        broker = "broker" in groups and install_jars(root, java, lock=BROKER_JARS_LOCK)
    return packages or jars or broker


def main(arguments: Sequence[str] | None = None) -> int:
    """Run set-up from the command line."""
    parser = argparse.ArgumentParser(prog="ops.bootstrap", description=str(__doc__).partition("\n")[0])
    parser.add_argument("--dev", action="store_true", help="also install what the tests need")
    parser.add_argument("--broker", action="store_true", help="also install the embedded Kafka broker; so does --dev")
    options = parser.parse_args(arguments)
    began = time.monotonic()
    try:
        wanted = {"runtime": True, "dev": options.dev, "broker": options.broker or options.dev}
        done = set_up(groups=[group for group, is_wanted in wanted.items() if is_wanted])
    except SetupError as error:
        print(f"set-up: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("set-up: interrupted; run it again, it goes on where it was", file=sys.stderr)
        return 130
    if done:
        _say(f"done in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
