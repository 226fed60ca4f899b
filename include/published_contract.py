"""The contract of the published tables: their columns, types and meaning, under a number that changes with them.

``docs/reference/published.json`` has it as it was last written. ``python -m include.table_docs`` writes it again, but
not another contract under the same number: others rely on it.
"""

from __future__ import annotations

import json
from typing import Any

from include.errors import ClickmillError
from include.tables import PUBLISHED, PUBLISHED_VERSION


def contract() -> dict[str, Any]:
    """What readers of the published tables may rely on, as plain values."""
    return {
        "version": PUBLISHED_VERSION,
        "tables": {
            table.name: {
                "one row is": table.grain,
                "key": list(table.key),
                "partitioned by": list(table.partitioned_by),
                "columns": {
                    column.name: {
                        "type": column.type,
                        "may be null": not column.required,
                        "meaning": column.comment,
                    }
                    for column in table.columns
                },
            }
            for table in (*PUBLISHED, *PUBLISHED.values())
        },
    }


def renewed(written: str, declared: dict[str, Any]) -> str:
    """The file with the declared contract, in place of the one that was written last.

    Raises:
        ClickmillError: if they differ, and the number is not a greater one.
    """
    before = json.loads(written)
    if before != declared and declared["version"] <= before["version"]:
        changed = sorted(
            name
            for name in before["tables"].keys() | declared["tables"].keys()
            if before["tables"].get(name) != declared["tables"].get(name)
        )
        raise ClickmillError(
            f"the contract of {', '.join(changed) or 'the published tables'} has changed, and its version is "
            f"{declared['version']}, after {before['version']}; expected a greater one: others read these tables. "
            "Raise PUBLISHED_VERSION in include/tables/counts.py, and say in CHANGELOG.md what changes"
        )
    return json.dumps(declared, indent=2, ensure_ascii=False) + "\n"
