"""Lines that are left out: neither clicks nor bad lines, but such that a rule says are not counted.

On its way such a line has the reason ``left_out_`` and the rule's name; no table keeps it but the accounts, by number.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

#: With it the reasons of such lines begin.
LEFT_OUT = "left_out_"


def reason_of_rule(rule: str) -> str:
    """The reason of lines that this rule leaves out."""
    return f"{LEFT_OUT}{rule}"


def rule_of_reason(reason: str) -> str | None:
    """The name of the rule that leaves such lines out; None for a reason for quarantine."""
    return reason.removeprefix(LEFT_OUT) if reason.startswith(LEFT_OUT) else None


def is_left_out(reasons: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """Which lines a rule leaves out, by their reasons; false for clicks, whose reason is null."""
    return pc.starts_with(reasons, LEFT_OUT).fill_null(False)


def is_quarantined(reasons: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """Which lines are quarantined, by their reasons."""
    return pc.and_(pc.is_valid(reasons), pc.invert(is_left_out(reasons)))
