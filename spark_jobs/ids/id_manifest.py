"""Which files have the event ids that a stream knows after a micro-batch, and how the next one decides with them.

Each try of a micro-batch begins with the manifest of the one before, which names every file that it reads, and ends
with a manifest of its own. So all tries decide the same, whatever an earlier one or an overtaken query has left; and
files that are in no manifest are nobody's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from include.errors import ClickmillError
from include.storage import write_whole
from spark_jobs.ids.known_ids import NO_HOUR, IdFile, Ids
from spark_jobs.ids.partitions import HashRange


class UnreadableIdsError(ClickmillError):
    """A manifest, or a file that it names, is not as it was written."""


class IdManifest(BaseModel):
    """What is known: by the field that ``event_id`` names, from these files."""

    model_config = ConfigDict(frozen=True)

    event_id: str
    #: Of the next micro-batch.
    lateness_hours: int
    #: From the micro-batch after that on, if it was raised.
    raised_lateness_hours: int = 0
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
            UnreadableIdsError: if it is empty, or cut short.
        """
        file = cls.file(folder, batch_id)
        try:
            return cls.model_validate_json(file.read_bytes())
        except ValidationError:
            raise UnreadableIdsError(
                f"{file}, the event ids that are known after micro-batch {batch_id}, cannot be read: it is empty or "
                "damaged, as after a power cut; start the stream again, which takes them from clicks"
            ) from None

    def write(self, folder: Path, batch_id: int) -> None:
        """Keep it as that of a micro-batch."""
        text = self.model_dump_json().encode()
        write_whole(self.file(folder, batch_id), text, is_durable=True)

    def changed(self, **values: Any) -> Self:
        """With these values; files may be such as ``json.loads`` gives them."""
        return self.model_validate(dict(self) | values)

    def require_files(self, folder: Path) -> None:
        """See that its files are as they were written.

        Raises:
            UnreadableIdsError: if one is not, or is not there.
        """
        for name in self.names:
            try:
                Ids.read(folder / name)
            except (OSError, ValueError, EOFError) as error:
                raise UnreadableIdsError(f"{folder / name}, a file of event ids, cannot be read: {error}") from None

    @property
    def kept_hours(self) -> int:
        """An id is kept until log hours so much later are read."""
        return 2 * max(self.lateness_hours, self.raised_lateness_hours) + 2

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
        return [part for file in self.files if (part := file.within(hashes)) is not None]
