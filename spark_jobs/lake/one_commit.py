"""Several changes of a Delta table, made as commits on a draft beside it and published as one commit.

Delta can replace a table's rows and its properties in one commit only by REPLACE TABLE AS SELECT, which makes every
column nullable. Here Delta itself makes a commit for each change, in a folder with the table's log and none of its
rows; then their actions become one commit of the table. See docs/adr/0011-one-commit-for-n.md.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

from include.errors import ClickmillError

Action = dict[str, dict[str, Any]]


@contextmanager
def drafted(table: Path) -> Iterator[Path]:
    """A folder for Delta to change in place of the table's; at the end all its commits are one of the table.

    The folder has the table's history and can be written to, not read: the rows stay with the table. If anything is
    raised, or the process is killed, the table is as it was. Not for two at once: hold a lock.

    Raises:
        ClickmillError: if another writer has changed the table since.
    """
    for left_over in table.parent.glob(f".{table.name}-draft-*"):
        shutil.rmtree(left_over, ignore_errors=True)
    # A name of its own: the Spark server remembers the logs of folders.
    draft = table.parent / f".{table.name}-draft-{uuid4().hex}"
    try:
        shutil.copytree(table / "_delta_log", draft / "_delta_log")
        version = _newest_version(draft)
        yield draft
        newest = _newest_version(draft)
        actions = squashed([_actions(_commit(draft, number)) for number in range(version + 1, newest + 1)])
        _publish(draft, table, version + 1, actions)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def squashed(commits: Sequence[Sequence[Action]]) -> list[Action]:
    """The actions of one commit that changes a table as these do, one after the other.

    Of what a table has once (its metadata, its protocol), and of the words on the commit, the newest stays; of a file
    that comes and goes again, nothing.
    """
    once: dict[str, Action] = {}
    files: dict[tuple[Any, ...], Action] = {}
    others: list[Action] = []
    for action in (action for commit in commits for action in commit):
        (kind, body), *_ = action.items()
        if kind in ("commitInfo", "protocol", "metaData"):
            once[kind] = action
        elif kind in ("add", "remove"):
            file = (body["path"], json.dumps(body.get("deletionVector")))
            before = files.pop(file, None)
            if not (kind == "remove" and before and "add" in before):
                files[file] = action
        else:
            others.append(action)
    # The words on the commit stand first, as Delta writes them.
    first = [once[kind] for kind in ("commitInfo", "protocol", "metaData") if kind in once]
    return [*first, *others, *files.values()]


def _publish(draft: Path, table: Path, version: int, actions: Sequence[Action]) -> None:
    for path in (Path(unquote(action["add"]["path"])) for action in actions if "add" in action):
        (table / path).parent.mkdir(parents=True, exist_ok=True)
        (draft / path).rename(table / path)
    written = draft / "commit.json"
    written.write_text("".join(json.dumps(action) + "\n" for action in actions), encoding="utf-8")
    try:
        # A link is there at once and whole, and never takes the place of another's commit.
        os.link(written, _commit(table, version))
    except FileExistsError:
        raise ClickmillError(
            f"table {table.name} was changed by another writer meanwhile; nothing of it was replaced; run it again"
        ) from None


def _newest_version(table: Path) -> int:
    return max(int(file.stem) for file in (table / "_delta_log").glob("*.json") if file.stem.isdecimal())


def _commit(table: Path, version: int) -> Path:
    return table / "_delta_log" / f"{version:020d}.json"


def _actions(commit: Path) -> list[Action]:
    return [json.loads(line) for line in commit.read_text(encoding="utf-8").splitlines() if line.strip()]
