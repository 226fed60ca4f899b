"""The databases of docker-compose.yml's PostgreSQL server, and who may do what in them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import TYPE_CHECKING

from include.errors import UsageError
from include.postgres import required_address

if TYPE_CHECKING:
    from psycopg2.extensions import connection as Connection

ADMIN = "CLICKMILL_POSTGRES_ADMIN"
#: Databases, each owned by the role of its name, whose password is in this variable.
OWNERS = {"airflow": "CLICKMILL_AIRFLOW_DB_PASSWORD", "clickmill": "CLICKMILL_RESULTS_PASSWORD"}
#: Reads the published tables, for dashboards.
READER, READER_PASSWORD = "reader", "CLICKMILL_READER_PASSWORD"
#: Whatever the server's own locale is.
_CREATE_DATABASE = "CREATE DATABASE {} OWNER {} ENCODING 'UTF8' TEMPLATE template0"


def make_databases(environment: Mapping[str, str]) -> None:
    """Make what is not there: roles, with the environment's passwords, and a database for each owner.

    Raises:
        UsageError: if the environment lacks the administrator's address or a password, or has another password.
        OSError: if the server does not answer.
    """
    for database, make in (("postgres", _make_databases), ("clickmill", _let_read)):
        with closing(_connected(environment, database)) as connection:
            # A database cannot be made in a transaction.
            connection.autocommit = True
            make(connection, environment)


def _required(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name, "")
    if not value:
        raise UsageError(f"{name} is not set: run make compose-env, which makes all passwords")
    return value


def _connected(environment: Mapping[str, str], database: str) -> Connection:
    """A connection as the database's administrator."""
    import psycopg2

    parts = required_address(ADMIN, _required(environment, ADMIN))
    try:
        return psycopg2.connect(**(parts | {"dbname": database}))
    except psycopg2.OperationalError as error:
        if "authentication failed" in str(error):
            raise UsageError(
                f"PostgreSQL refuses the password of {ADMIN}: its volume has that of its first start; set it as it was "
                "then, or remove the volume if it holds nothing"
            ) from None
        # As the object store's: to be tried again.
        raise OSError(str(error)) from None


def _make_databases(connection: Connection, environment: Mapping[str, str]) -> None:
    """Roles with passwords, and a database for each owner that nobody else may enter."""
    from psycopg2 import sql
    from psycopg2.extensions import encrypt_password

    with connection.cursor() as cursor:
        for role, variable in {**OWNERS, READER: READER_PASSWORD}.items():
            cursor.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,))
            verb = "ALTER" if cursor.fetchone() else "CREATE"
            statement = sql.SQL(verb + " ROLE {} LOGIN PASSWORD %s").format(sql.Identifier(role))
            # What the server may log has no password.
            hashed = encrypt_password(_required(environment, variable), role, connection, "scram-sha-256")
            cursor.execute(statement, (hashed,))
        for owner in OWNERS:
            name = sql.Identifier(owner)
            cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", (owner,))
            if not cursor.fetchone():
                cursor.execute(sql.SQL(_CREATE_DATABASE).format(name, name))
            cursor.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(name))
        cursor.execute(sql.SQL("GRANT CONNECT ON DATABASE clickmill TO {}").format(sql.Identifier(READER)))


def _let_read(connection: Connection, environment: Mapping[str, str]) -> None:
    """What the role clickmill makes, the reader may read; and take no lock, for which jobs would wait."""
    from psycopg2 import sql

    with connection.cursor() as cursor:
        for privilege in ("USAGE ON SCHEMAS", "SELECT ON TABLES"):
            statement = sql.SQL(f"ALTER DEFAULT PRIVILEGES FOR ROLE clickmill GRANT {privilege} TO {{}}")
            cursor.execute(statement.format(sql.Identifier(READER)))
        cursor.execute("SELECT oid::regprocedure FROM pg_proc WHERE proname ~ '^pg_(try_)?advisory'")
        for (function,) in cursor.fetchall():
            cursor.execute(f"REVOKE EXECUTE ON FUNCTION {function} FROM PUBLIC")
            cursor.execute(f"GRANT EXECUTE ON FUNCTION {function} TO clickmill")
