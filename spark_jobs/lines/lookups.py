"""What is looked up about a click: crawlers, countries, visitors; once for each distinct value of a table of lines."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from pathlib import Path

import crawleruseragents
import pyarrow as pa
import pyarrow.compute as pc
import re2

from include.settings import Settings
from include.sources import Source
from include.tables import UNKNOWN_COUNTRY
from include.visitor_keys import VisitorKeys
from spark_jobs.lines.columns import map_distinct
from spark_jobs.lines.country_database import country_reader

#: So much of a user agent is looked at: no browser and no crawler that says so writes a longer one.
MAX_AGENT_CHARACTERS = 1024


@dataclass(frozen=True)
class Lookups:
    """What a source's clicks are looked up in.

    ``visitor_keys`` and ``country_database`` are for sources that log client addresses; without the latter it is the
    one in the python-geoacumen package. Of the keys it is known where they are: a stream sees new days.
    """

    visitor_keys: VisitorKeys | None = None
    country_database: Path | None = None
    #: Not those of masked addresses, which would be networks.
    derives_visitors: bool = True

    @classmethod
    def of(cls, source: Source, settings: Settings) -> Lookups:
        """Those of a source.

        Raises:
            UsageError: if the country database cannot be read.
        """
        if not source.has_client_address:
            return cls()
        database = settings.pipeline.country_database
        country_reader(database)
        return cls(VisitorKeys.of(settings), database)

    def by_known_keys(self) -> Lookups:
        """The same for who looks for visitors that there are: of a day whose key is gone, nobody's is found."""
        return replace(self, visitor_keys=self.visitor_keys and replace(self.visitor_keys, are_made=False))

    def look_up(self, parsed: pa.Table) -> pa.Table:
        """Lines of ``parse_lines`` with ``is_bot``, and country and visitor looked up where the line has none.

        ``country_code`` is 'unknown' where it is not known; it and ``is_bot`` are null for quarantined lines. The
        client address is left out.
        """
        is_click = pc.is_null(parsed["reason"])
        is_bot = map_distinct(parsed["user_agent"], is_crawler, pa.bool_()).fill_null(False)
        country, visitor = parsed["country_code"], parsed["visitor_id"]
        if self.visitor_keys:
            country_of = country_reader(self.country_database)
            country = pc.coalesce(country, map_distinct(parsed["client_address"], country_of, pa.string()))
            if self.derives_visitors:
                visitor = pc.coalesce(visitor, _visitors(parsed, self.visitor_keys))
        known = pc.if_else(is_click, pc.fill_null(country, UNKNOWN_COUNTRY), None)
        columns = {"country_code": known, "visitor_id": visitor, "is_bot": pc.if_else(is_click, is_bot, None)}
        kept = [name for name in parsed.column_names if name not in {*columns, "client_address"}]
        return pa.table({name: parsed[name] for name in kept} | columns)


def _visitors(parsed: pa.Table, keys: VisitorKeys) -> pa.Array:
    """Visitors by client address, user agent and day; null without an address, or where the line has the visitor."""
    clients = pc.if_else(pc.is_null(parsed["visitor_id"]), parsed["client_address"], None)
    return visitors_of(
        clients, parsed["user_agent"], parsed["clicked_at"].cast(pa.timestamp("us")).cast(pa.date32()), keys
    )


def visitors_of(clients: pa.Array, agents: pa.Array, dates: pa.Array, keys: VisitorKeys) -> pa.Array:
    """The visitors of addresses with user agents (may be null) on dates; null without an address, or the day's key.

    The keyed BLAKE2b (RFC 7693) of address, user agent and day, such as 2026-03-01, with a null character between them,
    in 16 bytes, as 32 hexadecimal digits; the key has at most 64 bytes. The same under the same key, so that reruns
    agree; no address can be found from it without the key; and a visitor cannot be followed from one day to the next.
    """
    days = pc.if_else(pc.is_valid(clients), dates.cast(pa.string()), None)
    texts = pc.binary_join_element_wise(clients, agents.fill_null(""), days, "\x00")
    # Looked up for each table of lines, and not kept longer: a key that is destroyed is in no worker's memory either.
    key_of_day = keys.of_days(date.fromisoformat(day) for day in pc.unique(days).to_pylist() if day)
    hashes = {f"{day}": _keyed(key) for day, key in key_of_day.items()}

    def visitor(client: str) -> str | None:
        keyed = hashes.get(client[-10:])
        return _hashed(keyed, client) if keyed else None

    return map_distinct(texts, visitor, pa.string())


def _keyed(key: bytes) -> hashlib.blake2b:
    """The hash of nothing: to take in the key takes as long as to take in a client."""
    return hashlib.blake2b(key=key, digest_size=16)


def _hashed(keyed: hashlib.blake2b, client: str) -> str:
    hashed = keyed.copy()
    hashed.update(client.encode())
    return hashed.hexdigest()


def is_crawler(user_agent: str) -> bool:
    """Whether the first of a user agent is that of a known crawler.

    Source of the list: the crawler-user-agents package, https://github.com/monperrus/crawler-user-agents. Its patterns
    are matched together, in a time that grows with the text's length only, whatever the text is.
    """
    return bool(_crawlers().Match(user_agent[:MAX_AGENT_CHARACTERS].encode()))


@cache
def _crawlers() -> re2.Set:
    options = re2.Options()
    # With the 8 MiB that RE2 takes by default, it forgets what it has found out between two crawlers: 20 µs an agent.
    options.max_mem = 32 << 20
    patterns = re2.Set.SearchSet(options)
    for crawler in crawleruseragents.CRAWLER_USER_AGENTS_DATA:
        patterns.Add(crawler["pattern"])
    patterns.Compile()
    return patterns
