"""What the machine must have: a Python and a Java, else the command that installs one."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from include.errors import UsageError
from ops.setup.messages import how_to

OLDEST_PYTHON = (3, 11)
JAVA_VERSIONS = (17, 21)


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


def check_python(version: tuple[int, ...] = sys.version_info[:3]) -> None:
    """Raise UsageError when this Python is older than Clickmill needs."""
    if version[:2] >= OLDEST_PYTHON:
        return
    running = ".".join(map(str, version))
    wanted = ".".join(map(str, OLDEST_PYTHON))
    for minor in range(14, OLDEST_PYTHON[1] - 1, -1):
        newer = shutil.which(f"python3.{minor}")
        if newer:
            raise UsageError(
                f"Python {running} ({sys.executable}) is too old: Clickmill needs {wanted} or newer; "
                f"run: make setup PYTHON={newer}",
            )
    command = install_command("python3.11 python3.11-venv", "python3.11", "python@3.11")
    raise UsageError(
        f"Python {running} ({sys.executable}) is too old: Clickmill needs {wanted} or newer; "
        + how_to(command, "install it, then run: make setup PYTHON=/path/to/python3"),
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
    match = re.search(r'(?:JAVA_VERSION=|version )"(?:1\.)?(\d+)', text)
    return int(match.group(1)) if match else None


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
        UsageError: naming what was found, what is needed and the command that fixes it.
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
        version = f"Java {major}" if major else "a java that does not run"
        findings.append(f"{version} at {java} (from {origin})")
    unsuitable = "; ".join(findings) if findings else "none on PATH, and JAVA_HOME is not set"
    wanted = " or ".join(map(str, JAVA_VERSIONS))
    raise UsageError(
        f"no suitable Java: found {unsuitable}; Spark needs Java {wanted}; "
        + how_to(java_command(), "install one and set JAVA_HOME to it"),
    )
