"""What is looked up outside Spark, once per distinct value: crawlers, countries, visitors."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path

import crawleruseragents
import geoacumen
import maxminddb
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.errors import UsageError
from include.settings import Settings
from include.sources import Source
from include.tables import UNKNOWN_COUNTRY
from spark_jobs.steps import step
from spark_jobs.transforms.parse_lines import COUNTRY_CODES


def find_crawlers(parsed: DataFrame) -> DataFrame:
    """The known crawlers among the lines' user agents, one ``user_agent`` a row; ``build_clicks`` takes them."""
    spark = parsed.sparkSession
    with step(spark, "find user agents"):
        seen = parsed.select("user_agent").where("user_agent IS NOT NULL").distinct().collect()
    crawlers = crawler_user_agents(row["user_agent"] for row in seen)
    return spark.createDataFrame([(name,) for name in crawlers], "user_agent STRING")


def find_clients(parsed: DataFrame, source: Source, settings: Settings) -> DataFrame | None:
    """Country and visitor of each distinct client, as ``build_clicks`` takes them; none if the source logs both."""
    if source.fields is not None and source.fields.client_address is None:
        return None
    spark = parsed.sparkSession
    distinct = (
        parsed.where("reason IS NULL")
        .select("client_address", "user_agent", F.to_date("clicked_at").alias("click_date"))
        .distinct()
    )
    with step(spark, "find clients"):
        seen = distinct.collect()
    countries = CountryDatabase(settings.pipeline.country_database)
    found = look_up_clients((tuple(row) for row in seen), countries, settings.visitor_key())
    return spark.createDataFrame(
        list(found),
        "client_address STRING, user_agent STRING, click_date DATE, country_code STRING, visitor_id STRING",
    )


def crawler_user_agents(user_agents: Iterable[str]) -> list[str]:
    """Those of the user agents that are known crawlers.

    Source of the list: the crawler-user-agents package, https://github.com/monperrus/crawler-user-agents.
    """
    return [user_agent for user_agent in user_agents if crawleruseragents.is_crawler(user_agent)]


class CountryDatabase:
    """Country by client address, from a MaxMind-format file; by default the one in the python-geoacumen package."""

    def __init__(self, file: Path | None = None) -> None:
        path = file or Path(geoacumen.db_path)
        try:
            self._reader = maxminddb.open_database(path)
        except (OSError, maxminddb.InvalidDatabaseError) as error:
            raise UsageError(
                f"country_database {path} cannot be read ({error}); expected a MaxMind-format .mmdb file"
            ) from None
        self._known: dict[str | None, str] = {None: UNKNOWN_COUNTRY}

    def country_code(self, address: str | None) -> str:
        """ISO 3166-1 alpha-2 code; 'unknown' for an address that is not one, private, or not in the database."""
        if address is not None and address not in self._known:
            self._known[address] = self._look_up(address)
        return self._known[address]

    def _look_up(self, address: str) -> str:
        try:
            record = self._reader.get(address)
        except ValueError:  # a host name, or no address at all
            return UNKNOWN_COUNTRY
        country = record.get("country") if isinstance(record, dict) else None
        code = country.get("iso_code") if isinstance(country, dict) else None
        return code if isinstance(code, str) and code in COUNTRY_CODES else UNKNOWN_COUNTRY


def visitor_id(key: bytes, address: str | None, user_agent: str | None, day: date) -> str | None:
    """HMAC-SHA256 (RFC 2104) of address, user agent and day, 32 hexadecimal digits of it; null without an address.

    The same under the same key, so that reruns agree; no address can be found from it without the key; and a visitor
    cannot be followed from one day to the next.
    """
    if address is None:
        return None
    message = "\x00".join((address, user_agent or "", day.isoformat()))
    return hmac.new(key, message.encode(), hashlib.sha256).hexdigest()[:32]


def look_up_clients(
    clients: Iterable[tuple[str | None, str | None, date]], countries: CountryDatabase, key: bytes
) -> Iterator[tuple[str | None, str | None, date, str, str | None]]:
    """Each client (address, user agent, day) with its country code and visitor."""
    for address, user_agent, day in clients:
        yield address, user_agent, day, countries.country_code(address), visitor_id(key, address, user_agent, day)
