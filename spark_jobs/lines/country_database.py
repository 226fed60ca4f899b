"""The country of a client address, by a database in MaxMind's format, https://maxmind.github.io/MaxMind-DB."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import geoacumen
import maxminddb

from include.countries import country_code
from include.errors import UsageError
from include.settings import Settings
from include.sources import load_sources
from include.tables import UNKNOWN_COUNTRY


@cache
def country_reader(database: Path | None) -> Callable[[str], str]:
    """A function from a client address to its country's code, by a file or else the one in python-geoacumen.

    'unknown' for an address that is not one, private, not in the database, or of no single country there.

    Raises:
        UsageError: if the file cannot be read.
    """
    reader = _opened(database)

    def code_of(address: str) -> str:
        try:
            code = _code(reader.get(address))
        except (TypeError, ValueError):  # a host name, or no address at all: with a null character in it, TypeError
            return UNKNOWN_COUNTRY
        return country_code(code) if isinstance(code, str) else UNKNOWN_COUNTRY

    return code_of


def country_database_note(settings: Settings) -> str | None:
    """How old the database is, for whoever reads countries; None if no source logs client addresses."""
    database = settings.pipeline.country_database
    if not any(source.has_client_address for source in load_sources(settings).values()):
        return None
    try:
        built = datetime.fromtimestamp(_opened(database).metadata().build_epoch, UTC)
    except UsageError as error:
        return str(error)
    newer = "" if database else "; country_database in config/pipeline.toml names a newer one"
    return f"Client addresses are looked up in a country database of {built:%B %Y}{newer}."


def _code(record: Any) -> Any:
    """MaxMind's and DB-IP's records have ``country.iso_code``, others ``country_code`` or a text as ``country``."""
    if not isinstance(record, dict):
        return None
    country = record.get("country")
    return country.get("iso_code") if isinstance(country, dict) else record.get("country_code", country)


@cache
def _opened(database: Path | None) -> maxminddb.Reader:
    path = database or Path(geoacumen.db_path)
    try:
        return maxminddb.open_database(path)
    except (OSError, maxminddb.InvalidDatabaseError) as error:
        raise UsageError(
            f"country_database {path} cannot be read ({error}); expected a MaxMind-format .mmdb file"
        ) from None
