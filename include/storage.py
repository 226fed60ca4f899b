"""Files and folders of the data, on a disk or in an object store: what the two do differently, once.

A place is a path with pathlib's methods: a ``Path``, or of ``s3://bucket/prefix`` an ``ObjectPath``, with which Spark,
delta-rs and Arrow mean the same by its text. An object store has no folders: one is there as long as something is in
it. It puts a whole object or none, renames by copying, and cannot append.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from operator import methodcaller
from pathlib import Path
from tempfile import SpooledTemporaryFile, TemporaryDirectory
from typing import TYPE_CHECKING, BinaryIO, cast
from uuid import uuid4

from include.errors import UsageError

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from pyarrow.fs import FileSystem

#: What the name of a place in an object store begins with: one that speaks S3.
S3 = "s3://"
#: So many bytes of what goes into a store wait in memory, more on this machine's disk.
_MOST_IN_MEMORY = 1 << 24


@dataclass(frozen=True)
class Entry:
    """What is in a folder: a file of so many bytes, changed at that moment (ns since 1970), or another folder."""

    path: Path
    is_file: bool
    size: int
    changed_ns: int


def place(name: str) -> Path:
    """The folder or file of this name: ``s3://bucket/prefix``, else a path of this machine.

    Raises:
        UsageError: if it is of another kind of store, or names no bucket.
    """
    store = store_of(name)
    if not store:
        return Path(name)
    if store != S3:
        raise UsageError(f"{name} cannot be used: expected a folder, or {S3}bucket/prefix")
    parts = [part for part in name.removeprefix(store).split("/") if part]
    if not parts:
        raise UsageError(f"{name} names no bucket: expected {store}bucket/prefix")
    from include.object_store import ObjectPath

    # It has pathlib's methods, as far as this program uses them, and is no Path.
    return cast(Path, ObjectPath(store + "/".join(parts)))


def store_of(name: str) -> str:
    """What the name of a place in an object store begins with, such as ``s3://``; nothing for one of this machine."""
    kind, is_store, _ = name.partition("://")
    return kind + is_store if is_store else ""


def is_on_disk(path: Path) -> bool:
    """Whether it is a place of this machine, or of a disk that several machines share."""
    return isinstance(path, Path)


def entries(folder: Path) -> list[Entry]:
    """What is in a folder, by name; nothing where there is none."""
    listed_entries = []
    if is_on_disk(folder):
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as there:
            for item in there:
                with suppress(FileNotFoundError):  # gone meanwhile
                    stat = item.stat(follow_symlinks=item.is_file())
                    listed_entries.append(Entry(folder / item.name, item.is_file(), stat.st_size, stat.st_mtime_ns))
    else:
        from include.object_store import listed

        folders, objects = listed(str(folder))
        listed_entries += [Entry(folder / key.rpartition("/")[2], False, 0, 0) for key in folders]
        listed_entries += [_entry(folder, item) for item in objects]
    return sorted(listed_entries, key=lambda entry: entry.path)


def entry_of(file: Path) -> Entry | None:
    """The file as ``entries`` has it; None if it is not there."""
    if not is_on_disk(file):
        # Asked for one object, a store says its date in full seconds, in a list more exactly.
        return next((entry for entry in entries(file.parent) if entry.path.name == file.name), None)
    with suppress(FileNotFoundError):
        stat = file.stat()
        return Entry(file, file.is_file(), stat.st_size, stat.st_mtime_ns)
    return None


def find(folder: Path, pattern: str) -> Iterator[Entry]:
    """The files below a folder that fit a pattern of ``Path.glob`` without ``**``, in no order."""
    if is_on_disk(folder):
        for path in folder.glob(pattern):
            with suppress(FileNotFoundError):  # gone meanwhile
                stat = path.stat()
                yield Entry(path, path.is_file(), stat.st_size, stat.st_mtime_ns)
        return
    from include.object_store import below

    for object_meta in below(str(folder)):
        entry = _entry(folder, object_meta)
        names, wanted = str(entry.path).removeprefix(f"{folder}/").split("/"), pattern.split("/")
        if len(names) == len(wanted) and all(map(fnmatchcase, names, wanted)):
            yield entry


def write_whole(
    file: Path, content: bytes | Callable[[BinaryIO], object], *, is_durable: bool = False, mode: int = 0o666
) -> Path:
    """Replace the file at once, and make its folder: a reader sees the old one or the new one, whole.

    ``content`` may be what writes it. A durable file is there, whole, after a power cut too, from the moment that this
    is done. ``mode`` is that of a file on a disk, less what the umask takes, from its first byte on.
    """
    write: Callable[[BinaryIO], object] = methodcaller("write", content) if isinstance(content, bytes) else content
    if not is_on_disk(file):
        from include.object_store import upload

        with SpooledTemporaryFile(_MOST_IN_MEMORY) as waiting:
            write(cast(BinaryIO, waiting))
            waiting.seek(0)
            upload(waiting, str(file))
        return file
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_name(f".{file.name}.{uuid4().hex}")
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as stream:
            write(stream)
            if is_durable:
                flush_to_disk(stream)
        os.replace(fresh, file)
        if is_durable:
            flush_folder(file.parent)
    finally:
        fresh.unlink(missing_ok=True)
    return file


def flush_to_disk(stream: BinaryIO) -> None:
    """Have the disk keep what was written to this file, which a power cut would take away else."""
    stream.flush()
    os.fsync(stream.fileno())


def flush_file(file: Path) -> None:
    """Have the disk keep what is in this file."""
    with file.open("rb") as stream:
        os.fsync(stream.fileno())


def flush_folder(folder: Path) -> None:
    """Have the disk keep the names of the files in this folder."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def write_once(file: Path, content: bytes) -> bool:
    """Make the file, readable by its owner alone, with this content; whether it was not there, whoever else tries."""
    if not is_on_disk(file):
        from include.object_store import put_once

        return put_once(str(file), content)
    fresh = file.with_name(f".{file.name}.{uuid4().hex}")
    try:
        _make_private(fresh, content)
        try:
            os.link(fresh, file)
        except PermissionError:  # a disk without hard links; a reader may see it while it is written
            _make_private(file, content)
    except FileExistsError:
        return False
    finally:
        fresh.unlink(missing_ok=True)
    return True


def make_secret(file: Path, content: bytes) -> None:
    """Make the file unless it is there, whoever else tries, in a folder of its owner alone."""
    if is_on_disk(file):
        file.parent.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.parent.mkdir(mode=0o700, exist_ok=True)
    write_once(file, content)


def kept_secret(file: Path) -> bytes:
    """The secret in this file, made at random when it is first asked for."""
    if not file.exists():
        make_secret(file, secrets.token_hex(32).encode())
    return file.read_bytes().strip()


def _make_private(file: Path, content: bytes) -> None:
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
        stream.write(content)


def names(folder: Path) -> list[str]:
    """The names of what is in a folder, in no order; cheaper than ``entries`` on a disk."""
    if not is_on_disk(folder):
        return [entry.path.name for entry in entries(folder)]
    with suppress(FileNotFoundError, NotADirectoryError):
        return os.listdir(folder)
    return []


def touch(mark: Path) -> None:
    """Make an empty file; if it is there, it is as new."""
    if is_on_disk(mark):
        mark.touch()
    else:
        mark.write_bytes(b"")


def move(file: Path, to: Path) -> None:
    """Put a file in another place of the same kind, in place of what is there; or one of this machine in a store."""
    if is_on_disk(to):
        to.parent.mkdir(parents=True, exist_ok=True)
        os.replace(file, to)
    elif is_on_disk(file):
        from include.object_store import upload

        upload(file, str(to))
        file.unlink()
    else:
        from include.object_store import rename

        rename(str(file), str(to))


@contextmanager
def filled_here(folder: Path) -> Iterator[Path]:
    """An empty folder of this machine, to be filled step by step: the folder itself, or one to ``move`` files from."""
    if is_on_disk(folder):
        remove_folder(folder)
        folder.mkdir(parents=True)
        try:
            yield folder
        finally:
            remove_folder(folder)
    else:
        with TemporaryDirectory(prefix="clickmill-", ignore_cleanup_errors=True) as temporary:
            yield Path(temporary)


def remove_folder(folder: Path) -> None:
    """Remove what is in a folder, and the folder, as far as that can be done; nothing where there is none."""
    if is_on_disk(folder):
        shutil.rmtree(folder, ignore_errors=True)
    else:
        from include.object_store import remove_below

        with suppress(OSError):
            remove_below(str(folder))


def table_files(table: Path) -> FileSystem:
    """The ``filesystem`` by which deltalake reads a table of this folder as Arrow.

    Without it Arrow's threads read through Python, and one that still does when the interpreter ends aborts the
    process: "terminate called without an active exception", exit code 134, after all work was done well.
    """
    from pyarrow.fs import SubTreeFileSystem

    return SubTreeFileSystem(key_of(table), filesystem_of(table))


def filesystem_of(path: Path) -> FileSystem:
    """Arrow's own file system of a place; ``key_of`` names the place in it."""
    from pyarrow.fs import LocalFileSystem

    return LocalFileSystem() if is_on_disk(path) else _of_s3()


def key_of(path: Path) -> str:
    """The name of a place in its ``filesystem_of``."""
    return str(path) if is_on_disk(path) else str(path).removeprefix(store_of(str(path)))


@cache
def _of_s3() -> FileSystem:
    from pyarrow.fs import FileSystem

    # Address and keys are those of the environment, as for deltalake. Unless it is told the region, Arrow asks AWS for
    # that of the bucket.
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    return FileSystem.from_uri(f"{S3}any?region={region}")[0]


def _entry(folder: Path, object_meta: ObjectMeta) -> Entry:
    bucket = key_of(folder).partition("/")[0]
    path = place(f"{store_of(str(folder))}{bucket}/{object_meta['path']}")
    return Entry(path, True, object_meta["size"], int(object_meta["last_modified"].timestamp() * 1e9))
