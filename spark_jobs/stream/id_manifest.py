"""Which files have the event ids that a stream knows after a micro-batch, and how the next one decides with them.

Each try of a micro-batch begins with the manifest of the one before, which names every file that it reads, and ends
with a manifest of its own. So all tries decide the same, whatever an earlier one or an overtaken query has left; and
files that are in no manifest are nobody's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict

from include.storage import write_whole
from spark_jobs.stream.known_ids import NO_HOUR, HashRange, IdFile


class IdManifest(BaseModel):
    """What is known: by the field that ``event_id`` names, from these files."""

    model_config = ConfigDict(frozen=True)

    event_id: str
    #: Of the next micro-batch.
    lateness_hours: int
    #: The latest log hour that was read.
    newest_hour: int = NO_HOUR
    files: tuple[IdFile, ...] = ()

    @staticmethod
    def file(folder: Path, batch_id: int) -> Path:
        """Where that of a micro-batch is; -1 is the one before the first."""
        return folder / f"{batch_id}.json"

    @classmethod
    def batches(cls, folder: Path) -> list[int]:
        """The micro-batches that have one, in order."""
        return sorted(int(file.stem) for file in folder.glob("*.json"))

    @classmethod
    def read(cls, folder: Path, batch_id: int) -> Self:
        """That of a micro-batch.

        Raises:
            FileNotFoundError: if it has none.
        """
        return cls.model_validate_json(cls.file(folder, batch_id).read_bytes())

    def write(self, folder: Path, batch_id: int) -> None:
        """Keep it as that of a micro-batch."""
        text = self.model_dump_json().encode()
        write_whole(self.file(folder, batch_id), lambda file: file.write(text))

    @property
    def ids(self) -> int:
        """How many are known."""
        return sum(file.ids for file in self.files)

    @property
    def names(self) -> set[str]:
        """Of its files."""
        return {file.name for file in self.files}

    def within(self, hashes: HashRange) -> list[IdFile]:
        """What of its files is in this range."""
        return [found for file in self.files if (found := file.within(hashes)) is not None]
