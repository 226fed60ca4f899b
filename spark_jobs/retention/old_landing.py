"""Landing partitions past their days, ingested and published: removed, or moved into an archive."""

from __future__ import annotations

import shutil
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from include.errors import UsageError
from include.landing import closed_hours, look_at
from include.log_hours import Hour, hours_in_words
from include.storage import is_on_disk
from include.tables import INGEST_ACCOUNTING
from spark_jobs.lake.lake import Lake
from spark_jobs.retention.removal import Removal
from spark_jobs.retention.settled_hours import needed_still

#: What a partition is called while its files go: no landing partition, so that nobody ingests half of it.
_GOING = ".going-"
_ACCOUNT = ("log_date", "log_hour", "unread_files", "click_hours", "ingested_at", "clicks_removed_at")


def old_landing(lake: Lake, source: str, before: Hour, archive: Path | None) -> list[Removal]:
    """The landing partitions of log hours before that. Hold the lake's lock until they have gone.

    Raises:
        UsageError: if the landing zone is in an object store, which has rules of its own for that.
    """
    landing = lake.settings.landing
    if not is_on_disk(landing):
        raise UsageError(
            f"landing_days of source {source}: expected a landing zone on a disk; {landing} is in an object store: let "
            "a lifecycle rule of the bucket remove its objects"
        )
    closed = {hour: at for hour, at in closed_hours(landing, source).items() if hour < before}
    where = [("source", "=", source), ("log_date", "in", sorted({hour.day for hour in closed}))]
    rows = lake.read_rows(INGEST_ACCOUNTING, _ACCOUNT, where) if closed else []
    accounts = {hour: row for row in rows if (hour := Hour.of(row["log_date"], row["log_hour"])) in closed}
    needed = needed_still(lake, source, accounts)
    kept = {hour: why for hour in closed if (why := _not_read(accounts.get(hour), closed[hour]) or needed.get(hour))}
    going = [look_at(landing, source, hour) for hour in sorted(closed.keys() - kept.keys())]
    left = list((landing / source).glob(f"log_date=*/{_GOING}*"))

    def remove() -> None:
        for hour in going:
            hour.folder.rename(_going(hour.folder))
        for folder in [*(_going(hour.folder) for hour in going), *left]:
            _remove(folder, archive and archive / source)

    removal = Removal(
        f"landing partitions of {source}, {hours_in_words(hour.hour for hour in going)}",
        0,
        sum(len(hour.files) for hour in going) + len(left),
        sum(hour.size_bytes for hour in going),
        remove,
        tuple(f"{hour}, as {why}" for hour, why in sorted(kept.items())),
    )
    return [removal]


def _not_read(account: dict[str, Any] | None, closed_ns: int) -> str | None:
    if account is None or datetime.fromtimestamp(closed_ns / 1e9, UTC) > account["ingested_at"]:
        return "it has not been ingested since it landed"
    if account["unread_files"]:
        return f"{account['unread_files'][0]} was not read"
    return None


def _going(folder: Path) -> Path:
    return folder.with_name(f"{_GOING}{folder.name}")


def _remove(folder: Path, archive: Path | None) -> None:
    day = folder.parent
    if archive is not None:
        shutil.copytree(folder, archive / day.name / folder.name.removeprefix(_GOING), dirs_exist_ok=True)
    shutil.rmtree(folder)
    with suppress(OSError):  # there are other hours
        day.rmdir()
