"""What a running stream says of itself each second, in a file beside its checkpoint."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from socket import gethostname

from include.settings import Settings
from include.storage import write_whole


@dataclass(frozen=True)
class SignOfLife:
    """What a stream last said of itself; ``lag`` are the records not yet read, null if not known: never of files."""

    host: str
    pid: int
    at: datetime
    lag: int | None


def say_alive(settings: Settings, source: str, lag: int | None) -> None:
    """Leave a sign of life of this process, if that can be written: what is wrong with the disk, the stream tells."""
    sign = {"host": gethostname(), "pid": os.getpid(), "at": datetime.now(UTC).isoformat(), "lag": lag}
    with suppress(OSError):
        write_whole(_file(settings, source), json.dumps(sign).encode())


def sign_of_life(settings: Settings, source: str) -> SignOfLife | None:
    """The last one; none if there never was one."""
    try:
        sign = json.loads(_file(settings, source).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return SignOfLife(sign["host"], sign["pid"], datetime.fromisoformat(sign["at"]), sign["lag"])


def _file(settings: Settings, source: str) -> Path:
    return settings.streams / f"{source}.alive.json"
