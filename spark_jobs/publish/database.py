"""The published tables in a PostgreSQL database, for dashboards: configured by CLICKMILL_RESULTS_DATABASE.

They have the tables' names, in the schema ``clickmill``, and the exports' columns: all but the visitors' sketches. The
database follows the lake: what it lacks, because it was not there, comes when the hours are published again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import date
from io import BytesIO
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv

from include.days import days_of
from include.errors import ClickmillError
from include.hours import Hour, by_day
from include.postgres import required_address
from include.settings import Settings
from include.stored_rows import Filters, StoredLake
from include.tables import PUBLISHED, Table
from spark_jobs.publish.exports import exported_columns

if TYPE_CHECKING:
    from psycopg2.extensions import connection as Connection

SCHEMA = "clickmill"
#: Where the migrations are, as alembic takes it, and the newest one.
MIGRATIONS, NEWEST = "spark_jobs.publish:migrations", "0002"
#: So many rows are sent at once, for memory's sake.
_ROWS = 100_000
#: How long a table may be locked by somebody else before that is an error: the lake is locked as long.
LOCK_SECONDS = 60
#: Whoever migrates holds this advisory lock; any number that nobody else uses.
_MIGRATING = 0x636C69636B


def copy_to_database(settings: Settings, hours: Collection[Hour]) -> str | None:
    """Replace these click hours, and their days, by what is published of them now; a line on it, if one is configured.

    Each hour, and each day of a time zone, changes in one transaction per table. Hold the lake's lock from what changed
    them on.

    Raises:
        ClickmillError: if the database cannot be reached or refuses the rows. Each table has then the former rows of an
            hour or the new ones.
    """
    if not settings.results_database or not hours:
        return None
    days = days_of(settings.pipeline.time_zones, hours)
    with _connected(settings.results_database) as connection:
        for hourly, daily in PUBLISHED.items():
            for date, numbers in by_day(hours).items():
                where = [("click_date", "=", date), ("click_hour", "in", numbers)]
                _replace(settings, connection, hourly, where, "click_date = %s AND click_hour = ANY(%s)")
            for day in days:
                where = [("time_zone", "=", day.time_zone), ("click_date", "=", day.date)]
                _replace(settings, connection, daily, where, "time_zone = %s AND click_date = %s")
    return f"  database: {len(set(hours))} click hours and {len(days)} days"


def remove_from_database(settings: Settings, table: Table, before: date) -> None:
    """Remove an hourly table's rows of click dates before that, if a database is configured.

    Raises:
        ClickmillError: if the database cannot be reached or refuses it.
    """
    if settings.results_database:
        with _connected(settings.results_database) as connection, connection, connection.cursor() as cursor:
            cursor.execute(f"DELETE FROM {SCHEMA}.{table.name} WHERE click_date < %s", [before])


def _replace(settings: Settings, connection: Connection, table: Table, where: Filters, condition: str) -> None:
    """Replace the rows of which the condition is true, given the values of the filters, in one transaction."""
    columns = exported_columns(table)
    rows = StoredLake(settings.lake).open_table(table, columns, [where])
    with connection, connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {SCHEMA}.{table.name} WHERE {condition}", [value for _, _, value in where])
        for lines in _as_csv(rows):
            cursor.copy_expert(f"COPY {SCHEMA}.{table.name} ({', '.join(columns)}) FROM STDIN (FORMAT csv)", lines)


def _as_csv(rows: pa.RecordBatchReader) -> Iterator[BytesIO]:
    """The rows as CSV without a heading, batch by batch: texts are quoted, null is nothing."""
    for batch in rows:
        for start in range(0, batch.num_rows, _ROWS):
            lines = BytesIO()
            pyarrow.csv.write_csv(batch.slice(start, _ROWS), lines, pyarrow.csv.WriteOptions(include_header=False))
            lines.seek(0)
            yield lines


@contextmanager
def _connected(address: str) -> Iterator[Connection]:
    """A connection to the database, whose tables are as this version of Clickmill needs them."""
    import psycopg2

    required_address("CLICKMILL_RESULTS_DATABASE", address)
    try:
        connection = _connect(address)
        try:
            if _version_of(connection) != NEWEST:
                _migrate(address)
            yield connection
        finally:
            connection.close()
    except psycopg2.Error as error:
        # Its first line names host and user, never the password.
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ClickmillError(
            f"the results database (CLICKMILL_RESULTS_DATABASE) has not got all that is published: {reason}; the lake "
            "has it: publish the same hours again when the database can be written"
        ) from error


def _connect(address: str) -> Connection:
    import psycopg2

    # A server that is gone without a word is noticed within a minute.
    connection = psycopg2.connect(
        address,
        connect_timeout=10,
        keepalives_idle=30,
        keepalives_interval=10,
        keepalives_count=3,
        application_name="clickmill",
    )
    with connection, connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = %s", [f"{LOCK_SECONDS}s"])
    return connection


def _version_of(connection: Connection) -> str | None:
    with connection, connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s)", [f"{SCHEMA}.alembic_version"])
        if cursor.fetchone() == (None,):
            return None
        cursor.execute(f"SELECT version_num FROM {SCHEMA}.alembic_version")
        row = cursor.fetchone()
        return str(row[0]) if row else None


def _migrate(address: str) -> None:
    """Make the tables, or bring them up to date, in one transaction; one process at a time."""
    from alembic import command
    from alembic.config import Config
    from alembic.util.exc import CommandError
    from sqlalchemy import create_engine, text
    from sqlalchemy.exc import DBAPIError
    from sqlalchemy.pool import NullPool

    engine = create_engine("postgresql+psycopg2://", creator=lambda: _connect(address), poolclass=NullPool)
    config = Config()
    config.set_main_option("script_location", MIGRATIONS)
    try:
        with engine.begin() as connection:
            connection.execute(text(f"SELECT pg_advisory_xact_lock({_MIGRATING})"))
            connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}"))
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
    except DBAPIError as error:
        raise error.orig or error from None
    except CommandError as error:
        raise ClickmillError(
            f"the tables of the results database are not of this version of Clickmill: {error}; expected migration "
            f"{NEWEST} or an older one; publish with the Clickmill that made them, or use another database"
        ) from None
