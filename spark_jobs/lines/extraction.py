"""How lines of a format are taken apart: what each module of a format gives, and ``formats`` chooses by the source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa


def _as_they_are(texts: pa.StringArray) -> pa.StringArray:
    return texts


@dataclass(frozen=True)
class Extraction:
    """SQL for DuckDB that takes lines apart.

    ``table`` makes a table of ``lines``, whose column ``text`` has a line each, null for those that cannot be read; its
    rows are in the lines' order. ``is_formed`` and ``values`` are expressions of its columns: whether it is a line of
    this format, and the text of each role, null where the line does not have it. A line that is not of the format is
    quarantined as ``not_formed``. ``prepared`` gives the lines as the SQL takes them. ``is_escaped``: bytes in the
    texts may be written with a backslash, as servers do.

    Roles: ``time``; of the URL ``url`` (a whole one, or a path), or ``path``, or ``request`` (a request line), with
    ``scheme``, ``host`` and ``query``; ``status``, ``client_address``, ``event_id``, ``country``, ``visitor``,
    ``referrer``, ``user_agent``. See ``targets`` for how a URL is made of them.
    """

    not_formed: str
    table: str
    is_formed: str
    values: Mapping[str, str]
    prepared: Callable[[pa.StringArray], pa.StringArray] = _as_they_are
    is_escaped: bool = False
