"""Set-up: what is missing is said in one line with its remedy, and what is there is left alone."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from include.errors import ClickmillError
from ops.bootstrap import REPOSITORY
from ops.setup import prerequisites
from ops.setup.jars import Jar, check_jar, install_jars, ivy_module, read_jars_lock
from ops.setup.packages import install_packages, make_command, remove_archives
from ops.setup.prerequisites import check_python, find_java, java_major
from ops.setup.stamps import STAMP, read_stamp, write_stamp

SUM = "a" * 64
#: Lock files that set-up reads whatever it installs.
ALWAYS = ("locks/build.txt", "locks/uv.txt")


def fake_java(folder: Path, version: str) -> Path:
    """A JDK folder as far as its version is concerned."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\nexit 1\n")
    java.chmod(0o755)
    (folder / "release").write_text(f'IMPLEMENTOR="Test"\nJAVA_VERSION="{version}"\n')
    return java


# --- Java and Python ------------------------------------------------------------------------------


def test_missing_java_is_one_line_with_the_command_that_fixes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prerequisites, "java_command", lambda: "apt-get install -y openjdk-17-jre-headless")

    with pytest.raises(ClickmillError) as error:
        find_java({"PATH": str(tmp_path)})

    assert error.value.exit_code == 2
    assert str(error.value) == (
        "no suitable Java: found none on PATH, and JAVA_HOME is not set; Spark needs Java 17 or 21; "
        "run: apt-get install -y openjdk-17-jre-headless"
    )


def test_every_unsuitable_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prerequisites, "java_command", lambda: "")
    old = fake_java(tmp_path / "old", "11.0.25")
    new = fake_java(tmp_path / "new", "25")

    with pytest.raises(ClickmillError) as error:
        find_java({"JAVA_HOME": str(tmp_path / "old"), "PATH": str(new.parent)})

    assert f"Java 11 at {old} (from JAVA_HOME); Java 25 at {new} (from PATH)" in str(error.value)
    assert "install one and set JAVA_HOME to it" in str(error.value)
    assert "\n" not in str(error.value)


def test_java_home_without_a_java_is_named(tmp_path: Path) -> None:
    with pytest.raises(ClickmillError, match=f"JAVA_HOME has no {tmp_path}/nothing/bin/java"):
        find_java({"JAVA_HOME": str(tmp_path / "nothing"), "PATH": str(tmp_path)})


@pytest.mark.parametrize("version", ["17.0.15", "21", "21.0.1"])
def test_java_home_is_preferred_to_path(tmp_path: Path, version: str) -> None:
    ours = fake_java(tmp_path / "ours", version)
    other = fake_java(tmp_path / "other", "17.0.1")

    assert find_java({"JAVA_HOME": str(tmp_path / "ours"), "PATH": str(other.parent)}) == ours


def test_suitable_java_on_path_makes_up_for_an_old_java_home(tmp_path: Path) -> None:
    fake_java(tmp_path / "old", "1.8.0_402")
    good = fake_java(tmp_path / "good", "17.0.1")

    assert find_java({"JAVA_HOME": str(tmp_path / "old"), "PATH": str(good.parent)}) == good


def test_old_numbering_of_java_versions_is_understood(tmp_path: Path) -> None:
    assert java_major(fake_java(tmp_path / "eight", "1.8.0_402")) == 8


def test_java_without_a_release_file_is_asked(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"21.0.4\" 2024-07-16' >&2\n")
    java.chmod(0o755)

    assert java_major(java) == 21


def test_old_python_is_one_line_that_names_a_newer_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "ops.setup.prerequisites.shutil.which", lambda name: "/usr/bin/python3.12" if name == "python3.12" else None
    )

    with pytest.raises(ClickmillError) as error:
        check_python((3, 9, 2))

    assert error.value.exit_code == 2
    assert "Python 3.9.2" in str(error.value)
    assert str(error.value).endswith("needs 3.11 or newer; run: make setup PYTHON=/usr/bin/python3.12")


def test_oldest_python_is_accepted() -> None:
    check_python((3, 11, 0))


# --- stamps ---------------------------------------------------------------------------------------


def locked_tree(root: Path) -> Path:
    """A tree with lock files, and a virtual environment that looks complete."""
    (root / "locks").mkdir(parents=True)
    for name in ("locks/runtime.txt", "locks/dev.txt", *ALWAYS):
        (root / name).write_text(f"# {name}\nuv==1.2.3 --hash=sha256:{SUM}\n")
    python = root / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    return root


def stamp_packages(root: Path, *locks: str) -> None:
    sums = {lock: hashlib.sha256((root / lock).read_bytes()).hexdigest() for lock in locks}
    write_stamp(root / ".venv" / STAMP, sums)


class Installed(Exception):
    """Raised in place of an installation."""


def forbid_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object, **_options: object) -> None:
        raise Installed

    monkeypatch.setattr("ops.setup.packages.subprocess.run", refuse)


def test_the_command_runs_this_tree_from_anywhere(tmp_path: Path) -> None:
    root = locked_tree(tmp_path / "it's a tree")
    (root / ".venv" / "bin" / "python").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    assert make_command(root)
    assert not make_command(root)
    program = root / ".venv" / "bin" / "clickmill"
    ran = subprocess.run([program, "undo", "a b", "--because", "-x é"], cwd="/", capture_output=True, text=True)
    assert ran.stdout.splitlines() == [str(root / "clickmill"), "undo", "a b", "--because", "-x é"]
    assert [file.name for file in program.parent.iterdir() if file.name.startswith(".")] == []
    program.chmod(0o644)
    assert make_command(root)


def test_nothing_is_installed_when_the_stamp_has_the_sums_of_the_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid_installation(monkeypatch)
    root = locked_tree(tmp_path)
    stamp_packages(root, "locks/runtime.txt", *ALWAYS)

    assert not install_packages(root, ("runtime",))


@pytest.mark.parametrize("lock", ["locks/runtime.txt", *ALWAYS])
def test_changed_lock_is_installed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lock: str) -> None:
    forbid_installation(monkeypatch)
    root = locked_tree(tmp_path)
    stamp_packages(root, "locks/runtime.txt", *ALWAYS)
    (root / lock).write_text("uv==9.9.9\n")

    with pytest.raises(Installed):
        install_packages(root, ("runtime",))


def test_removed_environment_is_installed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forbid_installation(monkeypatch)
    root = locked_tree(tmp_path)
    stamp_packages(root, "locks/runtime.txt", *ALWAYS)
    (root / ".venv" / "bin" / "python").unlink()

    with pytest.raises(Installed):
        install_packages(root, ("runtime",))


def test_tools_of_the_tests_are_added_when_asked_for_and_kept_when_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid_installation(monkeypatch)
    root = locked_tree(tmp_path)
    stamp_packages(root, "locks/runtime.txt", *ALWAYS)
    with pytest.raises(Installed):
        install_packages(root, ("runtime", "dev"))

    stamp_packages(root, "locks/runtime.txt", "locks/dev.txt", *ALWAYS)
    assert not install_packages(root, ("runtime",))
    (root / "locks/dev.txt").write_text("changed\n")
    with pytest.raises(Installed):
        install_packages(root, ("runtime",))


def test_archives_that_spark_would_import_from_are_removed(tmp_path: Path) -> None:
    packages = tmp_path / ".venv" / "lib" / "python3.11" / "site-packages"
    library = packages / "pyspark" / "python" / "lib"
    library.mkdir(parents=True)
    kept = (packages / "other.zip", library / "PY4J_LICENSE.txt")
    for file in (library / "pyspark.zip", library / "py4j-0.10.9.9-src.zip", *kept):
        file.touch()

    remove_archives(tmp_path)
    remove_archives(tmp_path)
    assert sorted(file for file in packages.rglob("*.*") if file.is_file()) == sorted(kept)


@pytest.mark.parametrize("content", ["", "[]", "{", "nonsense"])
def test_unreadable_stamp_counts_as_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "stamp").write_text(content)

    assert read_stamp(tmp_path / "stamp") == {}
    assert read_stamp(tmp_path / "absent") == {}


# --- JARs -----------------------------------------------------------------------------------------


def jar_of(content: bytes, artifact: str = "delta-storage") -> Jar:
    return Jar("io.delta", artifact, "4.4.0", hashlib.sha256(content).hexdigest())


def write_jars_lock(root: Path, *jars: Jar) -> None:
    (root / "locks").mkdir(exist_ok=True)
    (root / "locks/jars.lock").write_text("".join(f"{jar} {jar.sha256}  # why\n" for jar in jars))


def test_jar_with_the_wrong_sum_is_removed_and_named(tmp_path: Path) -> None:
    jar = jar_of(b"right")
    path = tmp_path / jar.file_name
    path.write_bytes(b"wrong")

    with pytest.raises(ClickmillError) as error:
        check_jar(path, jar)

    assert not path.exists()
    assert "wrong SHA-256 for delta-storage-4.4.0.jar (io.delta:delta-storage:4.4.0)" in str(error.value)
    assert hashlib.sha256(b"wrong").hexdigest() in str(error.value)
    assert jar.sha256 in str(error.value)


def test_jar_with_the_right_sum_stays(tmp_path: Path) -> None:
    jar = jar_of(b"right")
    path = tmp_path / jar.file_name
    path.write_bytes(b"right")

    check_jar(path, jar)

    assert path.read_bytes() == b"right"


def test_jars_put_there_by_hand_are_checked_and_need_no_download(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid_installation(monkeypatch)
    jar = jar_of(b"right")
    write_jars_lock(tmp_path, jar)
    (tmp_path / ".jars").mkdir()
    (tmp_path / ".jars" / jar.file_name).write_bytes(b"right")
    (tmp_path / ".jars" / "delta-storage-3.0.0.jar").write_bytes(b"of an older lock")

    assert install_jars(tmp_path, Path("java"))
    assert [path.name for path in (tmp_path / ".jars").glob("*.jar")] == [jar.file_name]
    assert not install_jars(tmp_path, Path("java")), "a second call has nothing to do"


def test_jar_that_went_missing_is_fetched_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jars = [jar_of(b"one", "one"), jar_of(b"two", "two")]
    write_jars_lock(tmp_path, *jars)
    fetched: list[str] = []

    def fetch(missing: list[Jar], ivy: Path, java: Path, folder: Path) -> None:
        for jar in missing:
            fetched.append(jar.artifact)
            (folder / jar.file_name).write_bytes(jar.artifact.encode())

    monkeypatch.setattr("ops.setup.jars._fetch", fetch)
    install_jars(tmp_path, Path("java"), Path("ivy.jar"))
    (tmp_path / ".jars" / "two-4.4.0.jar").unlink()
    install_jars(tmp_path, Path("java"), Path("ivy.jar"))

    assert fetched == ["one", "two", "two"]


def test_fetched_jar_with_the_wrong_sum_never_reaches_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jar = jar_of(b"right")
    write_jars_lock(tmp_path, jar)
    monkeypatch.setattr(
        "ops.setup.jars._fetch",
        lambda jars, ivy, java, folder: (folder / jar.file_name).write_bytes(b"from a bad mirror"),
    )

    with pytest.raises(ClickmillError, match="wrong SHA-256"):
        install_jars(tmp_path, Path("java"), Path("ivy.jar"))

    assert not list((tmp_path / ".jars").rglob("*.jar"))
    assert not (tmp_path / ".jars" / STAMP).exists()


def test_every_bad_line_of_the_jars_lock_is_named(tmp_path: Path) -> None:
    lock = tmp_path / "jars.lock"
    lock.write_text(f"# fine\n\na:b:1 {SUM}\na:b {SUM}\na:b:1 {SUM[:-1]}\n")

    with pytest.raises(ClickmillError) as error:
        read_jars_lock(lock)

    assert "line 4" in str(error.value)
    assert "line 5" in str(error.value)
    assert "line 3" not in str(error.value)


def test_ivy_is_asked_for_the_listed_jars_and_not_for_what_they_depend_on() -> None:
    module = ElementTree.fromstring(ivy_module([jar_of(b"1", "one"), jar_of(b"2", 'q"<&')]))

    dependencies = module.findall("./dependencies/dependency")
    assert [dependency.get("name") for dependency in dependencies] == ["one", 'q"<&']
    assert {dependency.get("transitive") for dependency in dependencies} == {"false"}


# --- the lock files of this repository ------------------------------------------------------------


@pytest.mark.parametrize("name", ["locks/runtime.txt", "locks/dev.txt", *ALWAYS])
def test_lock_file_pins_every_package_by_hash_and_names_no_address(name: str) -> None:
    text = (REPOSITORY / name).read_text()

    # A package and its options are one line, continued with backslashes.
    packages = [line for line in text.replace("\\\n", " ").splitlines() if line and line.lstrip()[0] != "#"]
    assert packages
    for package in packages:
        assert re.match(r"[a-z0-9-]+==\S+ ", package), package
        assert "--hash=sha256:" in package, package
    assert "://" not in text
    assert not re.search(r"^\s*(-i|-f|--index-url|--extra-index-url|--find-links)\b", text, re.MULTILINE)


def test_locks_agree_on_the_versions_they_share() -> None:
    def pins(name: str) -> set[tuple[str, str]]:
        text = (REPOSITORY / name).read_text()
        return set(re.findall(r"^([a-z0-9-]+)==([^\s;]+)", text, re.MULTILINE))

    runtime, dev = pins("locks/runtime.txt"), pins("locks/dev.txt")
    names = {name for name, _ in runtime}
    assert {pin for pin in dev if pin[0] in names} <= runtime


def test_pyspark_its_client_and_delta_stay_together() -> None:
    text = (REPOSITORY / "locks/runtime.txt").read_text()
    version = dict(re.findall(r"^([a-z0-9-]+)==([^\s;]+)", text, re.MULTILINE))
    delta = {jar.version for jar in read_jars_lock(REPOSITORY / "locks/jars.lock") if jar.group == "io.delta"}

    assert version["pyspark"] == version["pyspark-client"]
    assert delta == {version["delta-spark"]}


def test_stamp_is_readable_json(tmp_path: Path) -> None:
    write_stamp(tmp_path / "stamp", {"locks/jars.lock": SUM})

    assert json.loads((tmp_path / "stamp").read_text()) == {"locks/jars.lock": SUM}
