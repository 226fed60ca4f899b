"""Landing partitions past their days, ingested and published: removed, or moved into an archive.

Only what was read goes: partitions of which the account lists each file in the very state in which it lies there. One
to which something comes while it goes is put back.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from include.errors import UsageError
from include.hours import Hour, hours_in_words
from include.landing import SUCCESS, LandedHour, closed_hours, hour_of_folder, landed_since, look_at
from include.storage import entries, is_on_disk
from include.tables import INGEST_ACCOUNTING
from spark_jobs.hours.settled_hours import needed_still
from spark_jobs.lake.lake import Lake
from spark_jobs.lake.stages import Stage
from spark_jobs.retention.removal import removal, say_removed

#: What a partition is called while its files go: no landing partition, so that nobody ingests half of it.
_GOING = ".going-"
_ALL_GOING = f"log_date=*/{_GOING}*"
_ACCOUNT = ("log_date", "log_hour", "landed_files", "unread_files", "click_hours", "clicks_removed_at")
#: So many log hours' accounts at a time.
_PART = 744
#: Of a log hour without an account nothing has been read.
_NOTHING: Mapping[str, Any] = {"landed_files": None}


def old_landing(lake: Lake, source: str, before: Hour, archive: Path | None) -> list[Stage]:
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
    closed = {hour: look_at(landing, source, hour) for hour in closed_hours(landing, source) if hour < before}
    # What a killed run has left.
    original_folders = (
        folder.with_name(folder.name.removeprefix(_GOING)) for folder in (landing / source).glob(_ALL_GOING)
    )
    left = {hour: folder for folder in original_folders if (hour := hour_of_folder(folder))}
    accounts = lake.row_by_hour(INGEST_ACCOUNTING, source, {*closed, *left}, _ACCOUNT)
    needed = needed_still(lake, source, {hour: row for hour, row in accounts.items() if hour in closed})
    kept = {
        hour: why
        for hour, landed in closed.items()
        if (why := _not_read(landed, accounts.get(hour)) or needed.get(hour))
    }
    going = {hour: closed[hour].folder for hour in sorted(closed.keys() - kept.keys())}

    def remove() -> None:
        gone = dict(left)
        for hour, folder in going.items():
            if not _going(folder).exists():
                folder.rename(_going(folder))
                if landed_since(entries(_going(folder)), accounts[hour]):  # it has come meanwhile
                    _put_back(folder)
                else:
                    gone[hour] = folder
        accounted = sorted(gone.keys() & accounts.keys())
        for start in range(0, len(accounted), _PART):
            say_removed(lake, source, accounted[start : start + _PART], "landing_removed_at")
        for hour, folder in gone.items():
            _remove(folder, accounts.get(hour, _NOTHING), archive and archive / source)

    stage = removal(
        f"landing partitions of {source}, {hours_in_words(going)}",
        0,
        sum(len(closed[hour].files) for hour in going) + len(left),
        sum(closed[hour].size_bytes for hour in going),
        remove,
        (f"{hour}, as {why}" for hour, why in sorted(kept.items())),
    )
    return [stage]


def _not_read(landed: LandedHour, account: Mapping[str, Any] | None) -> str | None:
    if account is not None and account["unread_files"]:
        return f"{account['unread_files'][0]} was not read"
    if account is None or landed_since(landed.listed, account):
        return "it has not been ingested since it landed"
    return None


def _going(folder: Path) -> Path:
    return folder.with_name(f"{_GOING}{folder.name}")


def _remove(folder: Path, account: Mapping[str, Any], archive: Path | None) -> None:
    """Remove what was in this landing partition, which is called otherwise by now, unless it was not read."""
    going, day = _going(folder), folder.parent
    contents = entries(going)
    if landed_since(contents, account):
        _put_back(folder)
        return
    for entry in contents:
        if archive is not None and entry.is_file:
            (archive / day.name / folder.name).mkdir(parents=True, exist_ok=True)
            shutil.copy2(entry.path, archive / day.name / folder.name)
        if entry.is_file:
            entry.path.unlink()
        else:
            shutil.rmtree(entry.path)
    for empty in (going, day):
        with suppress(OSError):  # something has come into it
            empty.rmdir()


def _put_back(folder: Path) -> None:
    """Call the landing partition as it was called; what has landed there by now stays as it is."""
    going = _going(folder)
    with suppress(OSError):
        going.rename(folder)
    for entry in entries(going):  # there is another folder of that name
        target = folder / entry.path.name
        if not target.exists():
            entry.path.rename(target)
        elif target.name == SUCCESS:
            entry.path.unlink()
    with suppress(OSError):
        going.rmdir()
