"""The results database has what is published: whatever is in a key, and whenever it was away or refused."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import date
from typing import Any

import psycopg2
import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory

from include.errors import ClickmillError
from include.hours import Hour
from include.settings import REPOSITORY, Settings
from include.stored_rows import StoredLake
from include.tables import (
    OTHER_KEYS,
    PUBLISHED,
    PUBLISHED_CLICKS_BY_COUNTRY_DAILY,
    PUBLISHED_CLICKS_BY_COUNTRY_HOURLY,
    PUBLISHED_CLICKS_BY_URL_DAILY,
    PUBLISHED_CLICKS_BY_URL_HOURLY,
    Table,
)
from spark_jobs.publish.database import MIGRATIONS, NEWEST, copy_to_database
from spark_jobs.publish.exports import exported_columns
from tests.support.postgres_server import PostgresServer, postgres_server
from tests.support.published_rows import url_rows, write_published
from tests.support.temporary_lake import TemporaryLake, click

HOUR = Hour.parse("2026-03-01T05")
TABLES = (*PUBLISHED, *PUBLISHED.values())


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    """A server of the module's own, as tests end it."""
    with postgres_server() as server:
        yield server


@pytest.fixture
def database(postgres: PostgresServer, request: pytest.FixtureRequest) -> str:
    """The name of an empty database."""
    name = f"d{abs(hash(request.node.nodeid)):x}"
    postgres.make_database(name)
    return name


@pytest.fixture
def results(settings: Settings, postgres: PostgresServer, database: str) -> Settings:
    """A home whose published tables go there."""
    return replace(settings, results_database=postgres.address(database))


def in_database(postgres: PostgresServer, database: str, table: Table) -> list[tuple[Any, ...]]:
    """The rows there, sorted."""
    return sorted(postgres.query(database, f"SELECT {', '.join(exported_columns(table))} FROM clickmill.{table.name}"))


def in_lake(settings: Settings, table: Table) -> list[tuple[Any, ...]]:
    """The published rows, without sketches, sorted."""
    return sorted(
        tuple(row.values()) for row in StoredLake(settings.lake).read_rows(table, exported_columns(table), [])
    )


@pytest.mark.spark
@pytest.mark.path
def test_what_is_published_is_in_the_database_and_changes_with_it(
    make_lake: Callable[[str], TemporaryLake], postgres: PostgresServer, database: str
) -> None:
    lake = make_lake("results")
    lake.settings = replace(lake.settings, results_database=postgres.address(database))
    lake.settings.pipeline_file.write_text(
        f'time_zones = ["UTC", "Europe/Berlin"]\n{lake.settings.pipeline_file.read_text()}'
    )
    before = str(HOUR.plus(-1))
    lake.land(before, {"a.json": click("a", f"{before}:10:00Z")})
    lines = [click(f"b{n}", f"{HOUR}:{n:02d}:00Z", f"http://shop.test/{n % 3}", visitor_id=f"v{n}") for n in range(9)]
    lake.land(str(HOUR), {"a.json": b"".join(lines)})
    lake.run_all(before, str(HOUR.plus(1)))
    for table in TABLES:
        assert in_database(postgres, database, table) == in_lake(lake.settings, table) != []

    lake.land(str(HOUR), {"a.json": lines[0]})
    lake.run_all(str(HOUR))
    for table in TABLES:
        assert in_database(postgres, database, table) == in_lake(lake.settings, table) != []

    lake.land(str(HOUR), {"a.json": b""})
    lake.run_all(str(HOUR))
    for table in TABLES:
        assert in_database(postgres, database, table) == in_lake(lake.settings, table) != []
    assert {row[1] for row in in_database(postgres, database, PUBLISHED_CLICKS_BY_URL_HOURLY)} == {HOUR.hour - 1}


@pytest.mark.spark
def test_a_database_that_was_away_has_all_when_the_job_is_run_again(
    lake: TemporaryLake, postgres: PostgresServer, database: str
) -> None:
    lake.settings = replace(lake.settings, results_database=postgres.address(database))
    lake.land(str(HOUR), {"a.json": click("a", f"{HOUR}:10:00Z")})
    for job in ("ingest", "aggregate", "validate"):
        lake.run(job, str(HOUR))
    postgres.stop()
    try:
        with pytest.raises(ClickmillError, match="publish the same hours again") as raised:
            lake.run("publish", str(HOUR))
    finally:
        postgres.start()
    assert "Connection refused" in str(raised.value)
    assert all(in_lake(lake.settings, table) for table in TABLES), "the lake is published all the same"
    assert lake.settings.report.exists()

    lines = lake.run("publish", str(HOUR))
    assert "  database: 1 click hours and 1 days" in lines
    for table in TABLES:
        assert in_database(postgres, database, table) == in_lake(lake.settings, table) != []


def test_whatever_is_published_in_whatever_order_the_database_has_it(
    results: Settings, postgres: PostgresServer, database: str
) -> None:
    rng = random.Random(20261125)
    hours = [HOUR.plus(n) for n in range(40)]
    published: dict[Hour, list[str]] = {}
    for _ in range(12):
        changed = rng.sample(hours, rng.randrange(1, 6))
        for hour in changed:
            published[hour] = [f"http://shop.test/{rng.randrange(50)}-{n}" for n in range(rng.randrange(4))]
        rows = [row for hour, urls in published.items() for row in url_rows(hour, *urls)]
        write_published(results, PUBLISHED_CLICKS_BY_URL_HOURLY, rows)
        copy_to_database(results, changed)
        table = PUBLISHED_CLICKS_BY_URL_HOURLY
        assert in_database(postgres, database, table) == in_lake(results, table)


@pytest.mark.parametrize(
    "url",
    [
        'http://x.test/?a="b",c\\d\\.\\N',
        "http://x.test/\n\r\t",
        "http://x.test/" + "ü€😀" * 20,
        "http://x.test/" + "a" * 60_000,
        "",
        "NULL",
        "\\N",
    ],
)
def test_any_key_arrives_as_it_is(results: Settings, postgres: PostgresServer, database: str, url: str) -> None:
    write_published(results, PUBLISHED_CLICKS_BY_URL_HOURLY, url_rows(HOUR, url, "http://x.test/other"))
    copy_to_database(results, [HOUR])
    assert in_database(postgres, database, PUBLISHED_CLICKS_BY_URL_HOURLY) == in_lake(
        results, PUBLISHED_CLICKS_BY_URL_HOURLY
    )


def test_what_the_database_refuses_changes_nothing_of_its_hour(
    results: Settings, postgres: PostgresServer, database: str
) -> None:
    write_published(results, PUBLISHED_CLICKS_BY_URL_HOURLY, url_rows(HOUR, "http://x.test/1"))
    copy_to_database(results, [HOUR])
    former = in_database(postgres, database, PUBLISHED_CLICKS_BY_URL_HOURLY)
    postgres.query(
        database, "ALTER TABLE clickmill.published_clicks_by_url_hourly ADD CHECK (url <> 'http://x.test/3')"
    )
    write_published(results, PUBLISHED_CLICKS_BY_URL_HOURLY, url_rows(HOUR, *(f"http://x.test/{n}" for n in range(5))))
    with pytest.raises(ClickmillError, match="violates check constraint"):
        copy_to_database(results, [HOUR])
    assert in_database(postgres, database, PUBLISHED_CLICKS_BY_URL_HOURLY) == former


def test_a_table_that_somebody_has_locked_is_not_waited_for_without_end(
    results: Settings, postgres: PostgresServer, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_to_database(results, [HOUR])
    monkeypatch.setattr("spark_jobs.publish.database.LOCK_SECONDS", 1)
    with closing(psycopg2.connect(postgres.address(database))) as other, other.cursor() as cursor:
        cursor.execute("LOCK TABLE clickmill.published_clicks_by_url_hourly")
        with pytest.raises(ClickmillError, match="canceling statement due to lock timeout"):
            copy_to_database(results, [HOUR])


def test_days_of_one_time_zone_leave_the_others_alone(
    results: Settings, postgres: PostgresServer, database: str
) -> None:
    presence = {"hours_in_day": 24, "hours_present": 24, "is_final": True, "click_date": date(2026, 3, 1), "url": "u"}
    rows = [presence | {"time_zone": zone} for zone in ("UTC", "Europe/Berlin")]
    results.pipeline_file.write_text('time_zones = ["UTC", "Europe/Berlin"]\n')
    write_published(results, PUBLISHED_CLICKS_BY_URL_DAILY, rows)
    copy_to_database(results, [HOUR])
    assert len(in_database(postgres, database, PUBLISHED_CLICKS_BY_URL_DAILY)) == 2

    results.__dict__.pop("pipeline")
    results.pipeline_file.write_text('time_zones = ["UTC"]\n')
    write_published(results, PUBLISHED_CLICKS_BY_URL_DAILY, [rows[0] | {"click_count": 7}])
    copy_to_database(results, [HOUR])
    assert {(row[0], row[3]) for row in in_database(postgres, database, PUBLISHED_CLICKS_BY_URL_DAILY)} == {
        ("UTC", 7),
        ("Europe/Berlin", 3),
    }


def test_its_tables_are_those_of_the_contract_also_when_several_make_them_at_once(
    results: Settings, postgres: PostgresServer, database: str
) -> None:
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: copy_to_database(results, [HOUR]), range(4)))
    postgres_types = {"DATE": "date", "INT": "integer", "BIGINT": "bigint", "STRING": "text", "BOOLEAN": "boolean"}
    for table in TABLES:
        columns = postgres.query(
            database,
            "SELECT column_name, data_type, is_nullable FROM information_schema.columns "
            f"WHERE table_schema = 'clickmill' AND table_name = '{table.name}' ORDER BY ordinal_position",
        )
        assert columns == [
            (column.name, postgres_types[column.type], "NO" if column.required else "YES")
            for column in table.columns
            if column.name in exported_columns(table)
        ]
    assert postgres.query(database, "SELECT version_num FROM clickmill.alembic_version") == [(NEWEST,)]
    config = Config()
    config.set_main_option("script_location", MIGRATIONS)
    assert ScriptDirectory.from_config(config).get_current_head() == NEWEST


def test_visitors_that_are_not_shown_are_null_there(results: Settings, postgres: PostgresServer, database: str) -> None:
    rows = [row | {"visitor_count": None, "visitor_sketch": None} for row in url_rows(HOUR, OTHER_KEYS)]
    write_published(results, PUBLISHED_CLICKS_BY_URL_HOURLY, rows)
    copy_to_database(results, [HOUR])
    assert in_database(postgres, database, PUBLISHED_CLICKS_BY_URL_HOURLY) == [
        (HOUR.day, HOUR.hour, "(other)", 3, 1, None)
    ]


def test_tables_of_a_newer_version_are_refused(results: Settings, postgres: PostgresServer, database: str) -> None:
    copy_to_database(results, [HOUR])
    postgres.query(database, "UPDATE clickmill.alembic_version SET version_num = '9999'")
    with pytest.raises(
        ClickmillError, match=rf"not of this version of Clickmill: .*'9999'.*; expected migration {NEWEST}"
    ):
        copy_to_database(results, [HOUR])


def test_a_role_that_may_not_make_tables_is_told_so(results: Settings, postgres: PostgresServer, database: str) -> None:
    postgres.query("postgres", "DROP ROLE IF EXISTS reader; CREATE ROLE reader LOGIN")
    address = postgres.address(database).replace("postgres@", "reader@")
    with pytest.raises(ClickmillError, match=f"permission denied for database {database}"):
        copy_to_database(replace(results, results_database=address), [HOUR])


def test_the_password_is_shown_nowhere(settings: Settings) -> None:
    secret = "hunter2"
    results = replace(settings, results_database=f"postgresql://me:{secret}@127.0.0.1:1/none")
    with pytest.raises(ClickmillError) as raised:
        copy_to_database(results, [HOUR])
    assert "127.0.0.1" in str(raised.value)
    assert secret not in str(raised.value)
    assert secret not in repr(results)


def queries_of_the_guide() -> list[str]:
    guide = (REPOSITORY / "docs/guides/results-database.md").read_text(encoding="utf-8")
    return re.findall(r"^```sql\n(.*?)^```$", guide, re.DOTALL | re.MULTILINE)


def queries_of_the_dashboard() -> list[str]:
    """With what Grafana puts in place of its macro."""
    dashboard = json.loads((REPOSITORY / "config/grafana/clicks.json").read_text(encoding="utf-8"))
    return [
        re.sub(
            r"\$__timeFilter\((.*? AT TIME ZONE 'UTC')\)", r"\1 BETWEEN '2026-03-01' AND '2026-03-02'", target["rawSql"]
        )
        for panel in dashboard["panels"]
        for target in panel["targets"]
    ]


@pytest.mark.parametrize("query", [*queries_of_the_guide(), *queries_of_the_dashboard()])
def test_the_queries_of_the_guide_and_the_dashboard_find_something(
    results: Settings, postgres: PostgresServer, database: str, query: str
) -> None:
    countries = [{"country_code": code} for code in ("DE", "FR")]
    hour = {"click_date": HOUR.day, "click_hour": HOUR.hour}
    day = {"time_zone": "UTC", "click_date": HOUR.day, "hours_in_day": 24, "hours_present": 3, "is_final": False}
    write_published(results, PUBLISHED_CLICKS_BY_URL_HOURLY, url_rows(HOUR, "http://x.test/"))
    write_published(results, PUBLISHED_CLICKS_BY_COUNTRY_HOURLY, [hour | country for country in countries])
    write_published(results, PUBLISHED_CLICKS_BY_URL_DAILY, [day | {"url": "http://x.test/"}])
    write_published(results, PUBLISHED_CLICKS_BY_COUNTRY_DAILY, [day | country for country in countries])
    copy_to_database(results, [HOUR])
    assert postgres.query(database, query)


def test_without_an_address_nothing_is_copied(settings: Settings) -> None:
    assert copy_to_database(settings, [HOUR]) is None
