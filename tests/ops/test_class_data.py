"""Archives of Java's classes: made once, made again when they no longer fit, and used by the servers."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from include.storage import place
from ops.bootstrap import REPOSITORY
from ops.home import Home
from ops.services.environment import program_environment
from ops.setup.class_data import BROKER_CLASSES, SPARK_CLASSES, ClassData, archive_broker_classes, class_path
from ops.setup.prerequisites import find_java
from tests.support.spark_server import SparkServer, started


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with the broker's JARs, and a few of its classes listed. Java 17 could not take a path with a space."""
    folder = tmp_path / "tree" / ".jars" / "broker"
    folder.mkdir(parents=True)
    for jar in BROKER_CLASSES.jars(REPOSITORY):
        shutil.copy2(jar, folder)
    (tmp_path / "tree" / BROKER_CLASSES.classes).parent.mkdir(parents=True)
    few = [line for line in listed(BROKER_CLASSES) if line.startswith(("java/lang/", "kafka/"))]
    list_classes(tmp_path / "tree", few)
    return tmp_path / "tree"


def listed(data: ClassData, tree: Path = REPOSITORY) -> list[str]:
    """The lines of the list of classes."""
    return gzip.decompress((tree / data.classes).read_bytes()).decode().splitlines()


def list_classes(tree: Path, lines: list[str]) -> None:
    (tree / BROKER_CLASSES.classes).write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))


def _java(tree: Path, *options: str) -> str:
    """What Java prints that loads one of the broker's classes, by the options that the broker has."""
    command = [find_java(), *BROKER_CLASSES.java_options(tree), *options, "-cp", class_path(BROKER_CLASSES.jars(tree))]
    return subprocess.run(
        [*command, "kafka.Kafka", "--version"], capture_output=True, text=True, check=True, cwd=tree
    ).stdout


@pytest.fixture
def other_java(tmp_path: Path) -> Path:
    """Of another build; it makes an archive as long as its list, unless a file beside it says that it cannot."""
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        """#!/bin/sh
        [ ! -e "$0-fails" ] || { echo '[0.1s][warning][cds] Skipping'; echo '# Out of memory'; exit 1; }
        cp "${2#*=}" "${3#*=}"
        """
    )
    java.chmod(0o755)
    (tmp_path / "jdk" / "lib" / "server").mkdir(parents=True)
    (tmp_path / "jdk" / "lib" / "server" / "libjvm.so").write_text("another build")
    return java


def test_archive_is_made_once_and_taken_and_java_goes_on_without_one_that_does_not_fit(tree: Path) -> None:
    assert archive_broker_classes(tree, find_java())
    before = BROKER_CLASSES.archive(tree).stat()
    assert not archive_broker_classes(tree, find_java())

    assert BROKER_CLASSES.archive(tree).stat() == before
    loaded = _java(tree, "-Xshare:on", "-Xlog:class+load").splitlines()
    assert [line for line in loaded if " kafka.Kafka source: shared objects file" in line]
    assert {file.suffix for file in (tree / ".jars" / "broker").iterdir()} == {".jar", ".jsa", ".json"}

    # As when a JAR was put there by hand since set-up.
    os.utime(BROKER_CLASSES.jars(tree)[0], (1, 1))
    assert "kafka.Kafka source: file:" in _java(tree, "-Xlog:class+load")


def test_archive_that_no_longer_fits_is_made_again(tree: Path, other_java: Path) -> None:
    archive_broker_classes(tree, other_java)
    archive = BROKER_CLASSES.archive(tree)

    for part, change in (
        ("a jar", lambda: os.utime(BROKER_CLASSES.jars(tree)[0], (1, 1))),
        ("the list", lambda: list_classes(tree, [*listed(BROKER_CLASSES, tree), "java/util/Optional"])),
        # Of an archive that is cut off Java crashes.
        ("the archive", lambda: os.truncate(archive, 1000)),
        ("the stamp", lambda: archive.with_suffix(".json").unlink()),
        ("Java", lambda: (other_java.parents[1] / "lib" / "server" / "libjvm.so").write_text("a newer build")),
    ):
        change()
        assert archive_broker_classes(tree, other_java), part
        assert archive.read_text().splitlines() == listed(BROKER_CLASSES, tree), part
        assert not archive_broker_classes(tree, other_java), part


def test_java_that_makes_no_archive_is_said_and_is_no_error(
    tree: Path, other_java: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive_broker_classes(tree, other_java)
    (other_java.parent / "java-fails").touch()
    BROKER_CLASSES.archive(tree).with_suffix(".json").unlink()

    assert archive_broker_classes(tree, other_java)
    assert "Kafka starts as before: Out of memory" in capsys.readouterr().out
    assert BROKER_CLASSES.java_options(tree) == []
    assert not archive_broker_classes(tree, other_java), "said once"


@pytest.mark.parametrize("data", [SPARK_CLASSES, BROKER_CLASSES])
def test_lists_fit_another_version_of_java(data: ClassData) -> None:
    """Java 21 crashes over lambdas of its own that only Java 17 has."""
    lambdas = [line for line in listed(data) if line.startswith("@lambda-proxy ")]

    assert len(lambdas) > 50
    assert not [line for line in lambdas if line.split()[1].startswith(("java/", "javax/", "jdk/", "sun/", "com/sun/"))]


@pytest.mark.servers
def test_sparks_server_takes_nearly_all_its_classes_from_the_archive(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fewer: a JAR or the class path is another than at set-up, or it is time for `make class-lists`."""
    if not SPARK_CLASSES.java_options(REPOSITORY):
        pytest.fail("no archive: run: make setup")
    log = tmp_path / "loaded"
    monkeypatch.setenv("CLICKMILL_SPARK_JAVA_OPTIONS", f"-Xshare:on -Xlog:class+load:file={log}")
    with started(SparkServer.of(home)):
        lines = [line for line in log.read_text().splitlines() if " source: " in line]
    # Neither: what the JVM generates.
    archived = [line for line in lines if "source: shared objects file" in line]
    read = [line for line in lines if ".jar" in line or "source: jrt:" in line]

    assert len(archived) > 10_000
    assert len(read) < 0.05 * len(archived), read[:20]


def test_data_in_an_object_store_goes_without_for_its_jars_are_others(home: Home) -> None:
    of_disk = program_environment(home, find_java(), {})
    of_store = program_environment(Home(home.path, data_folder=place("s3://bucket")), find_java(), {})

    assert of_disk["CLICKMILL_SPARK_CLASS_DATA"]
    assert not of_store["CLICKMILL_SPARK_CLASS_DATA"]
    assert of_store["CLICKMILL_SPARK_CLASS_PATH"].startswith(of_disk["CLICKMILL_SPARK_CLASS_PATH"])
