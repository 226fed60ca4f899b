"""The store of event ids: files of 64-bit hashes in order, which batch and stream write, merge and look up alike.

A batch has one column, and removes its files when it has decided; a stream keeps three (``known_ids.Ids``). Why these
are two uses: docs/adr/0029-duplicates.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Self
from uuid import uuid4

import numpy as np

from include.storage import is_on_disk, write_whole
from spark_jobs.ids.partitions import HashRange, Numbers


@dataclass(frozen=True, eq=False)
class SortedHashes:
    """Columns of 64 bits, in the order of the first one, the hashes."""

    columns: tuple[Numbers, ...]

    @classmethod
    def joined(cls, parts: Iterable[Self]) -> Self:
        """All of them, in order: of one hash in that of the parts. There is a part."""
        first, *others = zip(*(part.columns for part in parts), strict=True)
        hashes = np.concatenate(first)
        if not others:
            hashes.sort()
            return cls((hashes,))
        order = np.argsort(hashes, kind="stable")
        # One column after the other: there may be millions.
        return cls((hashes[order], *(np.concatenate(column)[order] for column in others)))

    @classmethod
    def read(cls, file: Path) -> Self:
        """All of a file, read as they are looked at; whole from an object store.

        Raises:
            ValueError: if the file is cut short, as EOFError if nothing is in it.
        """
        columns = np.load(file, mmap_mode="r") if is_on_disk(file) else np.load(BytesIO(file.read_bytes()))
        return cls(tuple(map(np.asarray, columns)))

    def write(self, folder: Path, *, is_durable: bool = False) -> Path:
        """Keep them as a file of the folder, whole or not at all; by a name of its own."""
        return write_whole(folder / f"{uuid4()}.npy", self._write, is_durable=is_durable)

    def _write(self, file: BinaryIO) -> None:
        # ``numpy.save`` writes by a file of C's, and does not look whether the last bytes have found room.
        shape = {"shape": (len(self.columns), len(self))}
        np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(self.hashes) | shape)
        for column in self.columns:
            file.write(np.ascontiguousarray(column).view(np.uint8).data)

    @property
    def hashes(self) -> Numbers:
        """The first column."""
        return self.columns[0]

    def __len__(self) -> int:
        return len(self.hashes)

    def within(self, hashes: HashRange) -> Self:
        """Those of this range; a view."""
        return self.where(hashes.among(self.hashes))

    def where(self, chosen: Numbers | slice) -> Self:
        """Those of them."""
        return type(self)(tuple(column[chosen] for column in self.columns))
