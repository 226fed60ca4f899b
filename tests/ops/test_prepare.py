"""What the containers of docker-compose.yml wait for: by a real PostgreSQL, a real S3 server and real TLS."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg2
import pytest

from include.errors import UsageError
from ops.containers.certificate import make_certificate
from ops.containers.databases import ADMIN, make_databases
from ops.containers.prepare import make_bucket
from tests.support.postgres_server import PostgresServer, postgres_server
from tests.support.s3_server import S3Server

PASSWORDS = {
    "CLICKMILL_AIRFLOW_DB_PASSWORD": "a",
    "CLICKMILL_RESULTS_PASSWORD": "c",
    "CLICKMILL_READER_PASSWORD": "r",
}


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_server() as postgres:
        make_databases(PASSWORDS | {ADMIN: postgres.address()})
        yield postgres


def as_role(server: PostgresServer, role: str, database: str, sql: str) -> list[tuple[object, ...]]:
    address = server.address(database).replace("postgres@", f"{role}@")
    with psycopg2.connect(address) as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall() if cursor.description else []


def test_the_reader_reads_what_jobs_publish_and_nothing_else(server: PostgresServer) -> None:
    as_role(server, "clickmill", "clickmill", "CREATE SCHEMA IF NOT EXISTS clickmill")
    as_role(server, "clickmill", "clickmill", "CREATE TABLE clickmill.counts AS SELECT 7 AS clicks")

    assert as_role(server, "reader", "clickmill", "SELECT clicks FROM clickmill.counts") == [(7,)]
    assert as_role(server, "clickmill", "clickmill", "SELECT pg_try_advisory_lock(1, 2)") == [(True,)]
    for role, database, sql in (
        ("reader", "clickmill", "DELETE FROM clickmill.counts"),
        ("reader", "clickmill", "CREATE TABLE public.mine (n integer)"),
        ("reader", "clickmill", "SELECT pg_try_advisory_lock(1, 2)"),
        ("reader", "airflow", "SELECT 1"),
        ("clickmill", "airflow", "SELECT 1"),
        ("airflow", "clickmill", "SELECT 1"),
    ):
        with pytest.raises(psycopg2.Error, match="permission denied"):
            as_role(server, role, database, sql)


def test_made_again_nothing_is_lost_and_passwords_are_the_environments(server: PostgresServer) -> None:
    as_role(server, "airflow", "airflow", "CREATE TABLE kept AS SELECT 1 AS n")
    before = dict(server.query("postgres", "SELECT rolname, rolpassword FROM pg_authid"))
    make_databases(PASSWORDS | {ADMIN: server.address(), "CLICKMILL_READER_PASSWORD": "other"})

    after = dict(server.query("postgres", "SELECT rolname, rolpassword FROM pg_authid"))
    assert as_role(server, "airflow", "airflow", "SELECT n FROM kept") == [(1,)]
    assert all(after[role].startswith("SCRAM-SHA-256") for role in ("airflow", "clickmill", "reader"))
    assert after["reader"] != before["reader"]
    assert server.query("airflow", "SHOW server_encoding") == [("UTF8",)]


def test_a_password_that_is_missing_is_named(server: PostgresServer) -> None:
    with pytest.raises(UsageError, match="CLICKMILL_READER_PASSWORD is not set: run make compose-env"):
        make_databases(PASSWORDS | {ADMIN: server.address(), "CLICKMILL_READER_PASSWORD": ""})
    with pytest.raises(UsageError, match="CLICKMILL_POSTGRES_ADMIN is not set"):
        make_databases(PASSWORDS)


def test_a_server_that_does_not_answer_is_an_os_error(server: PostgresServer) -> None:
    with pytest.raises(OSError, match="refused"):
        make_databases(PASSWORDS | {ADMIN: "postgresql://postgres@127.0.0.1:1/postgres"})


def test_the_bucket_is_made_once_and_keeps_its_objects(s3: S3Server) -> None:
    make_bucket("s3://of-a-team/prefix", s3.variables)
    (s3.folder / "of-a-team" / "object").write_text("kept")
    make_bucket("s3://of-a-team/prefix", s3.variables)
    make_bucket("/a/folder", s3.variables)

    assert (s3.folder / "of-a-team" / "object").read_text() == "kept"


def test_clients_that_know_the_authority_trust_the_certificate_and_no_others_do(tmp_path: Path) -> None:
    assert make_certificate(tmp_path)
    before = (tmp_path / "spark.pem").read_bytes()
    assert not make_certificate(tmp_path)
    assert (tmp_path / "spark.pem").read_bytes() == before
    assert (tmp_path / "spark.pem").stat().st_mode & 0o777 == 0o600

    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(tmp_path / "spark.pem")
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            for _ in range(4):
                connection, _ = listening.accept()
                try:
                    serving.wrap_socket(connection, server_side=True).close()
                except (ssl.SSLError, OSError):
                    connection.close()

        thread = threading.Thread(target=serve)
        thread.start()

        def shake(trusting: ssl.SSLContext, name: str) -> None:
            with socket.create_connection(listening.getsockname()) as connection:
                trusting.wrap_socket(connection, server_hostname=name).close()

        knows = ssl.create_default_context(cafile=tmp_path / "ca.crt")
        # As newer versions of Python by default.
        knows.verify_flags |= ssl.VERIFY_X509_STRICT
        for name in ("spark-tls", "localhost"):
            shake(knows, name)
        with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
            shake(knows, "elsewhere")
        with pytest.raises(ssl.SSLCertVerificationError):
            shake(ssl.create_default_context(), "localhost")
        thread.join()
