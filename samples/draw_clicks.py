"""Draws clicks at random, many at a time, and writes them as JSON lines. A click is a row of numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from include.tables import UNKNOWN_COUNTRY
from samples import catalog
from samples.normal_url import normalize_url
from samples.truth import MILLISECONDS_PER_HOUR, Flags, Integers

Clicks = npt.NDArray[np.void]
Texts = npt.NDArray[np.object_]

#: One click. ``clicked_at`` is in milliseconds since 1970, UTC; ``visitor`` a number that becomes an id; the
#: rest are indexes into the tables of ``ClickFormat``.
CLICK = np.dtype(
    [
        ("id_high", np.uint64),
        ("id_low", np.uint64),
        ("clicked_at", np.int64),
        ("visitor", np.int64),
        ("page", np.int32),
        ("referrer", np.int32),
        ("tracking", np.int16),
        ("layout", np.int8),
        ("spelling", np.int8),
        ("fragment", np.int8),
        ("zone", np.int8),
        ("geo", np.int16),
        ("agent", np.int16),
        ("status", np.int16),
    ]
)

CRAWLER_SHARE = 0.08
CRAWLER_VISITORS = 60
HUMAN_SESSION_CLICKS, HUMAN_GAP_MILLISECONDS = 3, 25_000
CRAWLER_SESSION_CLICKS, CRAWLER_GAP_MILLISECONDS = 20, 4_000
TRACKED_ENTRY_SHARE, TRACKED_OTHER_SHARE = 0.4, 0.02
LOWER_CASE_COUNTRY_SHARE, UNKNOWN_COUNTRY_SHARE = 0.025, 0.03
FRAGMENT_SHARE = 0.06

# Where a page's tracking parameters stand: nowhere, after the other parameters, before them, on both sides.
_LAYOUTS = 4
_AFTER_ON_BOTH_SIDES = "&utm_term=Sale"

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_COUNTRY_SALT, _AGENT_SALT = np.uint64(1 << 40), np.uint64(2 << 40)
_HEX = np.array([f"{byte:02x}" for byte in range(256)], dtype="S2")


class Choice:
    """Draws indexes of a table in proportion to its shares."""

    def __init__(self, shares: Iterable[float]) -> None:
        sums = np.cumsum(np.fromiter(shares, dtype=np.float64))
        self._bounds = sums / sums[-1]

    def draw(self, rng: np.random.Generator, count: int) -> Integers:
        """That many indexes."""
        return self.at(rng.random(count))

    def at(self, fractions: npt.NDArray[np.float64]) -> Integers:
        """The indexes at these fractions, 0 to below 1, of the shares' sum."""
        return np.searchsorted(self._bounds, fractions, side="right").astype(np.int64)


class ClickSource:
    """Draws the clicks that happen in an hour: crawlers' and people's sessions on Zipf-distributed pages.

    People are numbers below ``people``; small ones come back often. A person always has the same country and
    browser.
    """

    def __init__(self, people: int) -> None:
        pages = catalog.pages()
        self.people = people
        self._pages = Choice(catalog.page_shares())
        self._is_literal = np.array([page.is_literal for page in pages])
        self._entry_referrers = Choice(share for _, share in catalog.ENTRY_REFERRERS)
        self._zones = Choice(share for *_, share in catalog.TIME_ZONES)
        self._countries = Choice(catalog.COUNTRY_SHARES.values())
        self._statuses = Choice(catalog.STATUS_SHARES.values())
        self._spellings = Choice(catalog.SPELLING_SHARES)

    def draw(self, rng: np.random.Generator, count: int, hour_start: int) -> Clicks:
        """That many clicks, in no order, within the hour from ``hour_start`` (milliseconds since 1970) on."""
        crawled = int(rng.binomial(count, CRAWLER_SHARE))
        people = self._draw_people(rng, count - crawled, hour_start)
        return np.concatenate([people, self._draw_crawlers(rng, crawled, hour_start)])

    def rewrite(self, rng: np.random.Generator, clicks: Clicks) -> Clicks:
        """The same clicks as another front end would log them: time zone and country are written again."""
        rewritten = clicks.copy()
        rewritten["zone"] = self._zones.draw(rng, len(clicks))
        rewritten["geo"] = self._draw_geo(rng, clicks["visitor"])
        return rewritten

    def _draw_people(self, rng: np.random.Generator, count: int, hour_start: int) -> Clicks:
        session, is_entry = _draw_sessions(rng, count, HUMAN_SESSION_CLICKS)
        visitor = (self.people * rng.random(count) ** 3).astype(np.int64)[session]
        clicks = self._draw_any(rng, visitor)
        clicks["clicked_at"] = hour_start + _draw_times(rng, session, is_entry, HUMAN_GAP_MILLISECONDS)
        # After its entry a session's clicks are referred by the page before.
        entry = self._entry_referrers.draw(rng, count)
        clicks["referrer"] = np.where(is_entry, entry, len(catalog.ENTRY_REFERRERS) + np.roll(clicks["page"], 1))
        is_tracked = rng.random(count) < np.where(is_entry, TRACKED_ENTRY_SHARE, TRACKED_OTHER_SHARE)
        is_tracked &= ~self._is_literal[clicks["page"]]
        clicks["layout"] = is_tracked * rng.integers(1, _LAYOUTS, count)
        clicks["tracking"] = is_tracked * rng.integers(1, len(catalog.tracking_queries()), count)
        clicks["fragment"] = (rng.random(count) < FRAGMENT_SHARE) * rng.integers(1, len(catalog.FRAGMENTS), count)
        clicks["agent"] = _hash(visitor, _AGENT_SALT) % np.uint64(len(catalog.human_agents()))
        return clicks

    def _draw_crawlers(self, rng: np.random.Generator, count: int, hour_start: int) -> Clicks:
        session, is_entry = _draw_sessions(rng, count, CRAWLER_SESSION_CLICKS)
        crawler = rng.integers(0, CRAWLER_VISITORS, count)[session]
        clicks = self._draw_any(rng, self.people + crawler)
        clicks["clicked_at"] = hour_start + _draw_times(rng, session, is_entry, CRAWLER_GAP_MILLISECONDS)
        clicks["referrer"] = catalog.NO_REFERRER
        clicks["agent"] = len(catalog.human_agents()) + crawler % len(catalog.CRAWLER_AGENTS)
        return clicks

    def _draw_any(self, rng: np.random.Generator, visitor: Integers) -> Clicks:
        count = len(visitor)
        clicks = np.zeros(count, dtype=CLICK)
        ids = rng.integers(0, 1 << 64, (2, count), dtype=np.uint64)
        # The version (4) and the variant of a random UUID: RFC 9562, section 5.4.
        clicks["id_high"] = ids[0] & np.uint64(0xFFFF_FFFF_FFFF_0FFF) | np.uint64(0x4000)
        clicks["id_low"] = ids[1] & np.uint64((1 << 62) - 1) | np.uint64(1 << 63)
        clicks["visitor"] = visitor
        clicks["page"] = self._pages.draw(rng, count)
        clicks["spelling"] = self._spellings.draw(rng, count)
        clicks["zone"] = self._zones.draw(rng, count)
        clicks["geo"] = self._draw_geo(rng, visitor)
        clicks["status"] = self._statuses.draw(rng, count)
        return clicks

    def _draw_geo(self, rng: np.random.Generator, visitor: Integers) -> Integers:
        home = self._countries.at((_hash(visitor, _COUNTRY_SALT) >> np.uint64(11)) / float(1 << 53))
        count, countries = len(visitor), len(catalog.COUNTRY_SHARES)
        fraction = rng.random(count)
        logged = np.where(fraction < LOWER_CASE_COUNTRY_SHARE, countries + home, home)
        unknown = 2 * countries + rng.integers(0, len(catalog.UNKNOWN_GEO), count)
        return np.where(fraction > 1 - UNKNOWN_COUNTRY_SHARE, unknown, logged)


class ClickFormat:
    """Writes clicks as JSON lines, and says what the tables must make of them.

    ``urls`` and ``countries`` are the keys of the tables; ``url_of``, ``country_of`` and ``is_bot`` lead
    there. Under another ``visitor_salt`` the same visitors have other ids.
    """

    def __init__(self, visitor_salt: int) -> None:
        pages = catalog.pages()
        normal = [normalize_url(page.origin + page.target) for page in pages]
        self.urls = tuple(dict.fromkeys(normal))
        number_of = {url: number for number, url in enumerate(self.urls)}
        self.countries = (*catalog.COUNTRY_SHARES, UNKNOWN_COUNTRY)
        self._visitor_salt = np.uint64(visitor_salt)
        self._url_of_page = np.array([number_of[url] for url in normal])
        self._country_of_geo = np.array(
            [*range(len(catalog.COUNTRY_SHARES))] * 2 + [len(catalog.COUNTRY_SHARES)] * len(catalog.UNKNOWN_GEO)
        )
        self._origins = _texts(zip(*(catalog.spellings(page.origin) for page in pages), strict=True))
        targets = [_laid_out(page.target) for page in pages]
        self._heads = _texts(zip(*(heads for heads, _ in targets), strict=True))
        self._tails = _texts(zip(*(tails for _, tails in targets), strict=True))
        self._tracking = _texts(catalog.tracking_queries())
        self._fragments = _texts(catalog.FRAGMENTS)
        self._zones = _texts(zone for zone, *_ in catalog.TIME_ZONES)
        self._ahead = np.array([minutes * 60_000 for _, minutes, _ in catalog.TIME_ZONES])
        codes = [*catalog.COUNTRY_SHARES, *(code.lower() for code in catalog.COUNTRY_SHARES)]
        self._geo = _texts([*(f',"geo":{{"country":"{code}"}}' for code in codes), *catalog.UNKNOWN_GEO])
        inner = (f',"referrer":{_json(page.origin + page.target)}' for page in pages)
        self._referrers = _texts([*(text for text, _ in catalog.ENTRY_REFERRERS), *inner])
        self._first_crawler = len(catalog.human_agents())
        self._agents = _texts(_json(agent) for agent in (*catalog.human_agents(), *catalog.CRAWLER_AGENTS))
        self._statuses = _texts(str(status) for status in catalog.STATUS_SHARES)

    def url_of(self, clicks: Clicks) -> Integers:
        """Per click the index in ``urls`` of its URL's normal form."""
        return np.asarray(self._url_of_page[clicks["page"]])

    def country_of(self, clicks: Clicks) -> Integers:
        """Per click the index in ``countries``."""
        return np.asarray(self._country_of_geo[clicks["geo"]])

    def is_bot(self, clicks: Clicks) -> Flags:
        """Per click whether a crawler clicked."""
        return np.asarray(clicks["agent"] >= self._first_crawler)

    def lines(self, clicks: Clicks) -> list[str]:
        """One JSON object a click, compact, without a line end."""
        zone, page, layout = clicks["zone"], clicks["page"], clicks["layout"]
        local = (clicks["clicked_at"] + self._ahead[zone]).astype("datetime64[ms]")
        columns: list[list[str]] = [
            _uuids(clicks["id_high"], clicks["id_low"]),
            np.datetime_as_string(local, unit="ms").tolist(),
            self._zones[zone].tolist(),
            self._origins[clicks["spelling"], page].tolist(),
            self._heads[layout, page].tolist(),
            self._tracking[clicks["tracking"]].tolist(),
            self._tails[layout, page].tolist(),
            self._fragments[clicks["fragment"]].tolist(),
            self._geo[clicks["geo"]].tolist(),
            _hex(_hash(clicks["visitor"], self._visitor_salt)),
            self._referrers[clicks["referrer"]].tolist(),
            self._agents[clicks["agent"]].tolist(),
            self._statuses[clicks["status"]].tolist(),
        ]
        return [
            f'{{"event_id":"{event_id}","ts":"{time}{ending}","url":"{origin}{head}{tracking}{tail}{fragment}"{geo},'
            f'"visitor_id":"{visitor}"{referrer},"user_agent":{agent},"status":{status}}}'
            for (
                event_id,
                time,
                ending,
                origin,
                head,
                tracking,
                tail,
                fragment,
                geo,
                visitor,
                referrer,
                agent,
                status,
            ) in zip(*columns, strict=True)
        ]


def _draw_sessions(rng: np.random.Generator, count: int, mean_clicks: int) -> tuple[Integers, Flags]:
    """Per click the number of its session, ascending, and whether it is the session's first."""
    lengths = rng.geometric(1 / mean_clicks, count)
    session = np.repeat(np.arange(count), lengths)[:count]
    return session, np.diff(session, prepend=-1) > 0


def _draw_times(rng: np.random.Generator, session: Integers, is_entry: Flags, mean_gap: int) -> Integers:
    """Per click its milliseconds within the hour. A session that outlasts it goes on at the hour's start."""
    gaps = np.where(is_entry, 0, rng.exponential(mean_gap, len(session))).cumsum()
    since_entry = gaps - gaps[is_entry][session] if len(session) else gaps
    start = rng.random(len(session))[session] * MILLISECONDS_PER_HOUR
    return np.asarray((start + since_entry).astype(np.int64) % MILLISECONDS_PER_HOUR)


def _laid_out(target: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What stands before and after the tracking parameters, per layout."""
    path, _, query = target.partition("?")
    after = f"&{query}" if query else ""
    heads = (target, f"{path}?{query}&" if query else f"{path}?", f"{path}?", f"{path}?")
    return heads, ("", "", after, after + _AFTER_ON_BOTH_SIDES)


def _json(text: str) -> str:
    return orjson.dumps(text).decode()


def _texts(texts: Iterable[Any]) -> Texts:
    return np.array(list(texts), dtype=object)


def _hash(numbers: Integers, salt: np.uint64) -> npt.NDArray[np.uint64]:
    """SplitMix64, a bijection, so that no two numbers share one. Source: https://prng.di.unimi.it/splitmix64.c."""
    mixed = (numbers.astype(np.uint64) + salt) * _GOLDEN
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _digits(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint8]:
    """Per number a row of its 16 hexadecimal digits, as ASCII."""
    octets = np.ascontiguousarray(numbers.astype(">u8")).view(np.uint8).reshape(-1, 8)
    return _HEX[octets].view(np.uint8).reshape(-1, 16)


def _hex(numbers: npt.NDArray[np.uint64]) -> list[str]:
    return _as_texts(_digits(numbers))


def _uuids(high: npt.NDArray[np.uint64], low: npt.NDArray[np.uint64]) -> list[str]:
    upper, lower = _digits(high), _digits(low)
    dash = np.full((len(high), 1), ord("-"), dtype=np.uint8)
    parts = [upper[:, :8], dash, upper[:, 8:12], dash, upper[:, 12:], dash, lower[:, :4], dash, lower[:, 4:]]
    return _as_texts(np.concatenate(parts, axis=1))


def _as_texts(rows: npt.NDArray[np.uint8]) -> list[str]:
    text, width = np.ascontiguousarray(rows).tobytes().decode("ascii"), rows.shape[1]
    return [text[start : start + width] for start in range(0, len(text), width)]
