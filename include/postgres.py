"""Addresses of PostgreSQL databases, as libpq takes them. They may have a password, which no message is to repeat."""

from __future__ import annotations

from include.errors import UsageError


def required_address(variable: str, address: str) -> dict[str, str]:
    """The parts of an address that an environment variable has.

    Raises:
        UsageError: if it is none, or a part of its password would be taken for the host.
    """
    from psycopg2 import ProgrammingError
    from psycopg2.extensions import parse_dsn

    try:
        parts: dict[str, str] = parse_dsn(address)
    except ProgrammingError:
        # What libpq says repeats what it was given.
        parts = {"host": "@"}
    if "@" in parts.get("host", ""):
        raise UsageError(
            f"{variable} is no address of a PostgreSQL database: expected one such as "
            "postgresql://user:password@host:5432/database, in which an @ of the password is written %40, a / as %2F"
        ) from None
    return parts
