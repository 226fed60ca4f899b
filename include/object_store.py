"""Places in an object store; imported by ``include.storage`` where there are some.

Address, region and keys are those of the environment (AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID ...), as for
deltalake, which uses the same library.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.fsspec import register
from obstore.store import S3Store
from upath.implementations.cloud import S3Path
from upath.registry import register_implementation

register("s3")


def listed(name: str) -> tuple[list[str], list[obstore.ObjectMeta]]:
    """What is directly below a place: the keys of what looks like folders, and the objects."""
    bucket, key = _split(name)
    with _as_os_error():
        listing = obstore.list_with_delimiter(_store(bucket), key)
    return list(listing["common_prefixes"]), list(listing["objects"])


def below(name: str) -> Iterator[obstore.ObjectMeta]:
    """All objects below a place."""
    bucket, key = _split(name)
    with _as_os_error():
        for objects in obstore.list(_store(bucket), key):
            yield from objects


def upload(file: Path | IO[bytes], name: str) -> None:
    """Make an object of a file of this machine, in parts where it is large; it is there when it is whole."""
    bucket, key = _split(name)
    with _as_os_error():
        obstore.put(_store(bucket), key, file)


def rename(name: str, to: str) -> None:
    """Give an object another name in its bucket: it is copied, of 5 GB at most, and removed."""
    (bucket, key), (_, new) = _split(name), _split(to)
    with _as_os_error():
        obstore.rename(_store(bucket), key, new)


def remove_below(name: str) -> None:
    """Remove all objects below a place."""
    bucket, key = _split(name)
    with _as_os_error():
        for objects in obstore.list(_store(bucket), key):
            obstore.delete(_store(bucket), [entry["path"] for entry in objects])


def put_once(name: str, content: bytes) -> bool:
    """Make the object; whether it was not there: the store decides (``If-None-Match``), of several exactly one."""
    bucket, key = _split(name)
    with _as_os_error():
        try:
            obstore.put(_store(bucket), key, content, mode="create")
        except AlreadyExistsError:
            return False
    return True


def _split(name: str) -> tuple[str, str]:
    """The bucket, and the key in it."""
    bucket, _, key = name.removeprefix("s3://").partition("/")
    return bucket, key


@cache
def _store(bucket: str) -> S3Store:
    return S3Store(bucket)


@contextmanager
def _as_os_error() -> Iterator[None]:
    """What the store refuses is an error as of a disk, and said in a line."""
    try:
        yield
    except FileNotFoundError:
        raise
    except BaseError as error:
        raise OSError(" ".join(str(error).split())[:300]) from None


class ObjectPath(S3Path):
    """A place by pathlib's methods, whose errors are those of a disk.

    A class of our own: where it is unpickled, fsspec learns of obstore first.
    """

    __slots__ = ()


_ASKING = ("exists", "is_dir", "is_file", "iterdir", "open", "read_bytes", "read_text", "stat", "unlink", "write_bytes")
for _name in _ASKING:
    setattr(ObjectPath, _name, _as_os_error()(getattr(S3Path, _name)))
register_implementation("s3", ObjectPath, clobber=True)
