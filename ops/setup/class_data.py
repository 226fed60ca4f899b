"""Java's class data archives: classes read and verified once, at set-up, in place of at each start of a JVM.

A JVM takes an archive only if it is of its own build and the JARs of its class path are those of the archive, by path,
size and time; else it loads classes from JARs as usual. Which classes are worth it is in two lists, which
`make class-lists` writes. Source: Java 17, "The java Command", Application Class Data Sharing.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ops.setup.jars import BROKER_JARS_LOCK, JAR_FOLDERS, JARS_LOCK, installed_jars
from ops.setup.messages import say
from ops.setup.stamps import read_stamp, sha256_of, write_stamp


@dataclass(frozen=True)
class ClassData:
    """The archive of a program: by which list of classes, and of which lock file's JARs; it lies beside them."""

    program: str
    classes: str
    lock: str

    def archive(self, root: Path) -> Path:
        """Where it is, if set-up has made it."""
        return root / JAR_FOLDERS[self.lock] / "classes.jsa"

    def jars(self, root: Path) -> list[Path]:
        """The JARs of the lock file, in the order that they have on the class path."""
        return installed_jars(root, self.lock)

    def java_options(self, root: Path) -> list[str]:
        """What has a JVM use the archive; nothing where there is none."""
        archive = self.archive(root)
        return [f"-XX:SharedArchiveFile={archive}"] if archive.exists() else []


SPARK_CLASSES = ClassData("Spark", "locks/classes/spark.txt.gz", JARS_LOCK)
BROKER_CLASSES = ClassData("Kafka", "locks/classes/broker.txt.gz", BROKER_JARS_LOCK)


def archive_spark_classes(root: Path, java: Path) -> bool:
    """Make Spark's archive unless it is there and still fits; return whether anything was done."""
    # By spark-submit, which starts the server too: the class path has to be the same.
    (spark,) = (root / ".venv").glob("lib/python3*/site-packages/pyspark")
    jars = SPARK_CLASSES.jars(root)
    options = " ".join(f'"{option}"' for option in _dumping(root, SPARK_CLASSES))
    command = [
        str(spark / "bin" / "spark-submit"), "--driver-class-path", class_path(jars),
        "--driver-java-options", f"-XX:+UseParallelGC {options}", "nothing.py",
    ]  # fmt: skip
    return _make(root, java, SPARK_CLASSES, [*jars, *sorted((spark / "jars").glob("*.jar"))], command)


def archive_broker_classes(root: Path, java: Path) -> bool:
    """Make the embedded broker's archive unless it is there and still fits; return whether anything was done."""
    jars = BROKER_CLASSES.jars(root)
    return _make(
        root, java, BROKER_CLASSES, jars, [str(java), *_dumping(root, BROKER_CLASSES), "-cp", class_path(jars)]
    )


def class_path(jars: Sequence[Path]) -> str:
    """As Java takes it."""
    return os.pathsep.join(map(str, jars))


def _dumping(root: Path, data: ClassData) -> list[str]:
    fresh = _unfinished(data.archive(root))
    return ["-Xshare:dump", f"-XX:SharedClassListFile={_class_list(fresh)}", f"-XX:SharedArchiveFile={fresh}"]


def _unfinished(archive: Path) -> Path:
    return archive.with_suffix(".new")


def _class_list(archive: Path) -> Path:
    return archive.with_suffix(".list")


def _make(root: Path, java: Path, data: ClassData, jars: Sequence[Path], command: Sequence[str]) -> bool:
    """One that cannot be made is no error: it is said, and tried again once Java, a JAR or the list is another."""
    archive = data.archive(root)
    stamp = archive.with_suffix(".json")
    java_home = java.resolve().parent.parent
    made_of = {
        "classes": sha256_of(root / data.classes),
        "java": _state(sorted(java_home.glob("lib/server/libjvm.*"))),
        "jars": _state(jars),
    }
    if read_stamp(stamp) == made_of | {"archive": _state([archive])}:
        return False
    say(f"archiving the classes of {data.program}: from now on it starts sooner")
    stamp.unlink(missing_ok=True)
    archive.unlink(missing_ok=True)
    unfinished = _unfinished(archive)
    unfinished.unlink(missing_ok=True)
    # Some name folders for the class path.
    foreign = ("SPARK_", "PYSPARK_", "HADOOP_", "YARN_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    environment["JAVA_HOME"] = str(java_home)
    class_list = _class_list(unfinished)
    class_list.write_bytes(gzip.decompress((root / data.classes).read_bytes()))
    with tempfile.TemporaryDirectory() as scratch:  # where a JVM that crashes leaves its report
        answer = subprocess.run(command, env=environment, cwd=scratch, capture_output=True, text=True)
    class_list.unlink()
    if answer.returncode == 0 and unfinished.exists():
        os.replace(unfinished, archive)  # whole or not at all: of one that is cut off a JVM would crash
    else:
        unfinished.unlink(missing_ok=True)
        lines = (line.strip("# ") for line in (answer.stdout + answer.stderr).splitlines())
        why = next((line for line in lines if line and not line.startswith("[")), "it does not say why")
        say(f"Java made no archive, {data.program} starts as before: {why}")
    write_stamp(stamp, made_of | {"archive": _state([archive])})
    return True


def _state(files: Sequence[Path]) -> str:
    """The sum of what a JVM compares of files, path, size and time; of those that are there."""
    states = [(str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns) for file in files if file.exists()]
    return hashlib.sha256(repr(states).encode()).hexdigest()
