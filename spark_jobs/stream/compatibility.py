"""What a stream's checkpoint was made for: kept with it, and compared before the stream goes on.

State and offsets that were made for something else are not always refused by Spark, and where they are, each try fails
again. A checkpoint survives a change of what is not named here: see docs/reference/streams.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from include.counting import live_count_table
from include.errors import ClickmillError, UsageError
from include.settings import Settings
from include.sources import Source
from include.storage import write_whole

#: Of what Clickmill itself keeps in Spark's state; raise it when that changes.
STATE_FORMAT = 1
#: In the checkpoint's folder: what it was made for, and on what Spark has refused it.
MADE_FOR, REFUSED = "made_for.json", "refused.json"


@dataclass(frozen=True)
class Dependence:
    """What one query's checkpoint depends on; ``query`` is ``clicks``, or the key that is counted live."""

    source: str
    query: str
    folder: Path
    values: Mapping[str, Any]

    def refused(self) -> str | None:
        """Why the query cannot go on with its checkpoint, in a line; None if it can, or has none."""
        made_for = self._made_for() or {}
        for name, now in self.values.items():
            before = made_for.get(name, now)
            if before != now:
                return (
                    f"{self} cannot go on with its checkpoint: {name} was {before} and is {now}; "
                    f"{self._ways_out('change it back')}"
                )
        by_spark = _read(self.folder / REFUSED)
        return self._refusal(by_spark["said"]) if by_spark and by_spark["values"] == self.values else None

    def keep_if_absent(self) -> None:
        """Keep what a checkpoint is for that has not begun, or was begun by a version that did not keep it.

        Raises:
            ClickmillError: if the folder cannot be written.
        """
        if self._made_for() is None:
            self.keep()

    def keep(self) -> None:
        """Keep with the checkpoint what it is for from now on.

        Raises:
            ClickmillError: if the folder cannot be written.
        """
        keep_with_checkpoint(self.folder / MADE_FOR, json.dumps(self.values))

    def keep_refusal(self, refusal: str) -> str:
        """Keep that Spark has refused the checkpoint, so that nobody tries the same again; returns that in a line.

        Raises:
            ClickmillError: if the folder cannot be written.
        """
        keep_with_checkpoint(self.folder / REFUSED, json.dumps({"values": self.values, "said": refusal}))
        # It was not made for that: a checkpoint of an earlier version, in which that could not be otherwise.
        (self.folder / MADE_FOR).unlink(missing_ok=True)
        return self._refusal(refusal)

    def _refusal(self, refusal: str) -> str:
        fixed = f"if Clickmill has been fixed since, remove {self.folder / REFUSED}"
        return f"{self} cannot go on with its checkpoint: {refusal}; {self._ways_out(fixed)}"

    def _made_for(self) -> dict[str, Any] | None:
        """What the checkpoint was made for; one that does not say yet where to go on may be begun for anything."""
        return _read(self.folder / MADE_FOR) if has_begun(self.folder) else None

    def _ways_out(self, first: str) -> str:
        after = (
            "the stream goes on after its last batch in the lake, and takes the event ids that it knows from clicks; "
            "another topic is begun as starting_offsets says"
            if self.query == "clicks"
            else "its counts are made again from clicks"
        )
        return f"{first}, or begin a new checkpoint: stop the stream and remove {self.folder} ({after})"

    def __str__(self) -> str:
        return f"the stream of {self.source} ({self.query})"


def checkpoint_folder(settings: Settings, source: str, live_key: str | None = None) -> Path:
    """The checkpoint of the query that reads the source's topic, or of its live counts by a key."""
    return settings.streams / (f"{source}-live-{live_key}" if live_key else source)


def has_begun(folder: Path) -> bool:
    """Whether the checkpoint in this folder says where to go on."""
    return any(folder.glob("offsets/[0-9]*"))


def dependences(settings: Settings, source: Source, *, live: bool = True) -> dict[str, Dependence]:
    """What the source's queries depend on, as it is configured now; by query."""
    of_topic = {"state_format": STATE_FORMAT, "topic": source.kafka.topic if source.kafka else None}
    dependence_of = {"clicks": Dependence(source.name, "clicks", checkpoint_folder(settings, source.name), of_topic)}
    for key in settings.pipeline.counts if live else ():
        key_type = next(column.type for column in live_count_table(key).columns if column.name == key)
        of_key = {"state_format": STATE_FORMAT, "key": f"{key} {key_type}", "window_seconds": [60, 3600]}
        dependence_of[key] = Dependence(source.name, key, checkpoint_folder(settings, source.name, key), of_key)
    return dependence_of


def require_fit(settings: Settings, source: Source, *, live: bool = True) -> None:
    """Refuse a source whose checkpoints were made for something else.

    Raises:
        UsageError: naming what has changed, from what to what, and the ways out.
    """
    for dependence in dependences(settings, source, live=live).values():
        refused = dependence.refused()
        if refused:
            raise UsageError(refused)


def keep_with_checkpoint(file: Path, text: str) -> None:
    """Write a file in a checkpoint's folder, whole or not at all.

    Raises:
        ClickmillError: if the folder cannot be written.
    """
    try:
        write_whole(file, text.encode())
    except OSError as error:
        raise ClickmillError(
            f"the checkpoint {file.parent} cannot be written ({error.strerror}); start the stream again when it can"
        ) from error


def _read(file: Path) -> dict[str, Any] | None:
    """What the file says; None of one that is not there, as in a checkpoint of an earlier version."""
    try:
        content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    return content
