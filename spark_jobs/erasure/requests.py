"""What is asked to be erased: visitors, client addresses, URLs with a beginning."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from include.errors import UsageError
from spark_jobs.lines.addresses import normal_address

#: The kinds of a request, as a line of a file of requests names them.
KINDS = ("visitor", "address", "url_prefix")
#: A shorter id is in too much text that has nothing to do with the visitor.
LEAST_CHARACTERS = 6
_URL_OF_A_HOST = re.compile(r"https?://[^/?#\s]+/\S*")


@dataclass(frozen=True)
class Requests:
    """What is to be erased, each once. Not to be printed or kept."""

    visitors: frozenset[str] = frozenset()
    addresses: frozenset[str] = frozenset()
    url_prefixes: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        return "Requests(…)"

    @classmethod
    def of(cls, visitors: Iterable[str] = (), addresses: Iterable[str] = (), prefixes: Iterable[str] = ()) -> Requests:
        """The requests, addresses in their one form.

        Raises:
            UsageError: if there is none, or one that would find too much; what it says does not name it.
        """
        asked = cls(frozenset(visitors), frozenset(map(_address, addresses)), frozenset(prefixes))
        if not (asked.visitors or asked.addresses or asked.url_prefixes):
            raise UsageError("nothing is asked to be erased: expected --visitor, --address, --url-prefix or --requests")
        for visitor in asked.visitors:
            if len(visitor.strip()) < LEAST_CHARACTERS or not visitor.isprintable():
                raise UsageError(
                    f"a visitor of {len(visitor)} characters: expected {LEAST_CHARACTERS} or more, printable, "
                    "as a shorter id is found in other text too"
                )
        for prefix in asked.url_prefixes:
            if not _URL_OF_A_HOST.fullmatch(prefix):
                raise UsageError(
                    "a URL prefix that names no host and path: expected the beginning of a URL in normal form, such as "
                    "http://shop.test/account/, as the table clicks has it"
                )
        return asked

    @classmethod
    def read(cls, file: Path) -> list[tuple[str, str]]:
        """As ``parsed``, of a file's lines.

        Raises:
            UsageError: if it cannot be read, or a line is no request.
        """
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"the requests in {file} cannot be read: {type(error).__name__}") from None
        return cls.parsed(lines, str(file))

    @classmethod
    def of_lines(cls, lines: Iterable[str], named: str) -> Requests:
        """The requests of these lines. Raises UsageError as ``parsed`` and ``of``."""
        asked = cls.parsed(lines, named)
        return cls.of(*([value for kind, value in asked if kind == wanted] for wanted in KINDS))

    @classmethod
    def parsed(cls, lines: Iterable[str], named: str) -> list[tuple[str, str]]:
        """Kind and value of each line: JSON such as {"visitor": "…"}, or TOML such as visitor = "…".

        Raises:
            UsageError: if a line is no request; the line's number is said, not what it has.
        """
        requests: list[tuple[str, str]] = []
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            values = _as_values(line)
            if len(values) != 1 or not values.keys() <= set(KINDS) or not isinstance(next(iter(values.values())), str):
                raise UsageError(
                    f"{named}, line {number} is no request: expected one of {', '.join(KINDS)} and its text, such as "
                    '{"visitor": "…"} or visitor = "…"'
                )
            requests += values.items()
        return requests

    def words(self) -> list[str]:
        """What no file may have any more."""
        return sorted(self.visitors | self.addresses)

    def hashes(self, key: bytes) -> list[str]:
        """Each request's kind and keyed hash: by these it is known on record, and can be shown to be the one."""
        of_kinds = zip(KINDS, (self.visitors, self.addresses, self.url_prefixes), strict=True)
        return sorted(
            f"{kind} {blake2b(f'{kind} {value}'.encode(), key=key, digest_size=16).hexdigest()}"
            for kind, values in of_kinds
            for value in values
        )

    def described(self) -> str:
        """How many of each kind."""
        numbers = (len(self.visitors), len(self.addresses), len(self.url_prefixes))
        return ", ".join(f"{kind.replace('_', ' ')} {number}" for kind, number in zip(KINDS, numbers, strict=True))


def _address(text: str) -> str:
    address = normal_address(text.strip())
    if address in (None, "::"):
        raise UsageError("an address that is none: expected one of IPv4 or IPv6, such as 192.0.2.7")
    return address


def _as_values(line: str) -> dict[str, Any]:
    try:
        values = json.loads(line) if line.lstrip().startswith("{") else tomllib.loads(line)
    except ValueError:
        return {}
    return values if isinstance(values, dict) else {}
