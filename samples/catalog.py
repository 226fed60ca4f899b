"""What the clicks are about: a made-up shop's pages, and its visitors' countries, browsers and ways in.

The same for every seed, so that two samples share their keys. All hosts are reserved ones (RFC 2606) or
well-known referrers; all shares are made up to look like a European shop's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np

ZIPF_EXPONENT = 1.05

#: Clicks per UTC hour of the day, relative to each other: a night, a rise to noon, and an evening peak.
DAILY_CURVE = (
    *(30, 21, 15, 12, 13, 19, 34, 58, 82, 99, 108, 112),
    *(114, 110, 107, 108, 112, 121, 134, 145, 141, 116, 80, 49),
)

#: ISO 3166-1 alpha-2 code to its share of the visitors, relative to the others.
COUNTRY_SHARES = {
    "DE": 300, "US": 150, "GB": 95, "FR": 75, "AT": 55, "CH": 50, "NL": 42, "IT": 38, "ES": 34, "PL": 30,
    "SE": 18, "BE": 17, "IN": 16, "CA": 14, "DK": 12, "BR": 11, "CZ": 10, "NO": 9, "AU": 9, "JP": 8,
    "FI": 7, "IE": 6, "PT": 6, "TR": 6, "HU": 5, "RO": 5, "GR": 4, "MX": 4, "KR": 3, "SG": 3,
    "ZA": 3, "AR": 2, "UA": 2, "SK": 2, "SI": 2, "HR": 2, "LU": 2, "IL": 1, "NZ": 1, "CL": 1,
}  # fmt: skip

#: JSON of the line's ``geo`` that says no country: absent, null, empty, or a code that is not assigned.
UNKNOWN_GEO = (
    "",
    ',"geo":null',
    ',"geo":{}',
    ',"geo":{"country":null}',
    ',"geo":{"country":""}',
    ',"geo":{"country":"ZZ"}',
    ',"geo":{"country":"XX"}',
)

#: HTTP status to its share, relative to the others.
STATUS_SHARES = {200: 925, 301: 30, 404: 35, 500: 10}

#: What a time ends with, the minutes it is ahead of UTC, and its share, relative to the others.
TIME_ZONES = (
    ("Z", 0, 760),
    ("+02:00", 120, 90),
    ("+01:00", 60, 60),
    ("-05:00", -300, 35),
    ("+05:30", 330, 20),
    ("-08:00", -480, 20),
    ("+00:00", 0, 15),
)

FRAGMENTS = (
    "",
    "#reviews",
    "#top",
    "#comments",
    "#delivery",
    "#section-2",
    "#/gallery?image=3",
    "#utm_source=nowhere",
)

CRAWLER_AGENTS = (
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    "Mozilla/5.0 (Linux; Android 6.0.1; Nexus 5X Build/MMB29P) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/128.0.6613.113 Mobile Safari/537.36 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
    "Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)",
    "Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)",
    "Mozilla/5.0 (compatible; SemrushBot/7~bl; +http://www.semrush.com/bot.html)",
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4 "
    "Safari/605.1.15 (Applebot/0.1; +http://www.apple.com/go/applebot)",
    "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)",
    "DuckDuckBot/1.1; (+http://duckduckgo.com/duckduckbot.html)",
    "curl/8.5.0",
    "python-requests/2.32.3",
)

#: JSON of a session's first referrer, and its share, relative to the others.
ENTRY_REFERRERS = (
    (',"referrer":null', 180),
    ("", 80),
    (',"referrer":""', 40),
    (',"referrer":"https://www.google.com/"', 280),
    (',"referrer":"https://www.google.de/"', 120),
    (',"referrer":"https://www.bing.com/"', 50),
    (',"referrer":"https://duckduckgo.com/"', 30),
    (',"referrer":"https://www.ecosia.org/"', 15),
    (',"referrer":"https://l.facebook.com/"', 50),
    (',"referrer":"https://www.instagram.com/"', 45),
    (',"referrer":"https://t.co/"', 20),
    (',"referrer":"https://www.reddit.com/"', 20),
    (',"referrer":"https://news.example.org/deals?week=9"', 25),
    (',"referrer":"https://blog.example.net/2026/02/gr\u00f6\u00dfen-ratgeber"', 25),
    (',"referrer":"android-app://com.google.android.gm/"', 20),
)
NO_REFERRER = 0

_WWW = "https://www.example.com"
_ADJECTIVES = "soft light warm classic urban alpine nordic slim wide dry fast quiet bold early late plain".split()
_NOUNS = "jacket shoe boot tent lamp bag bottle glove hat sock rope stove map watch scarf belt shirt mug".split()
_TOPICS = "shipping returns payment sizes warranty account vouchers privacy stores repairs".split()


@dataclass(frozen=True)
class Page:
    """A page as it is asked for: ``target`` is path and query; a literal one gets no tracking parameters."""

    origin: str
    target: str
    is_literal: bool = False


@cache
def pages() -> tuple[Page, ...]:
    """The pages, most popular first. Several of them can be one page in normal form."""
    shuffled = np.random.Generator(np.random.PCG64(20260301)).permutation(len(_ordinary_pages()))
    ordinary = [_ordinary_pages()[index] for index in shuffled]
    odd = list(_odd_pages())
    # The odd ones among the popular ones, so that even a small sample has them.
    return (Page(_WWW, "/"), *ordinary[:4], Page(_WWW, ""), *ordinary[4:12], *odd, *ordinary[12:])


@cache
def _ordinary_pages() -> tuple[Page, ...]:
    categories = [f"{adjective}-{noun}s" for adjective, noun in product(_ADJECTIVES[:6], _NOUNS)]
    products = [
        f"/p/{1000 + 7 * number}-{adjective}-{noun}-{size}"
        for number, (adjective, noun, size) in enumerate(product(_ADJECTIVES, _NOUNS, ("s", "m", "l", "xl")))
    ]
    return tuple(
        [Page(_WWW, f"/c/{category}") for category in categories]
        + [Page(_WWW, f"/c/{category}?page={page}") for category in categories for page in (2, 3)]
        + [Page(_WWW, f"/c/{category}?sort=price&page=2") for category in categories[:40]]
        + [Page(_WWW, path) for path in products]
        + [Page(_WWW, f"{path}?color={color}") for path in products[::5] for color in ("red", "Dark%20Blue")]
        + [Page("https://m.example.com", path) for path in products[::6]]
        + [Page("http://www.example.com", path) for path in products[::12]]
        + [Page("https://blog.example.com", f"/202{5 + n % 2}/{1 + n % 12:02d}/story-{n}") for n in range(420)]
        + [Page(_WWW, f"/help/{topic}/{number}") for topic in _TOPICS for number in range(1, 13)]
        + [Page(_WWW, f"/search?q={a}+{noun}") for a, noun in product(_ADJECTIVES, _NOUNS)]
        + [Page(_WWW, f"/search?q={noun}&page=2") for noun in _NOUNS]
    )


def _odd_pages() -> tuple[Page, ...]:
    """Where a normal form could go wrong: each is its own page, or the one that the comment says."""
    return (
        Page(_WWW, "/?", is_literal=True),  # the home page
        Page(_WWW, "/C/Warm-Boots"),  # a path's case matters
        Page(_WWW, "/search?q=utm_source"),  # a value, not a name
        Page(_WWW, "/search?q=lamp&&page=2"),  # an empty parameter is kept
        Page(_WWW, "/c/soft-lamps?utm=1"),  # starts with utm, not with utm_
        Page(_WWW, "/c/soft-lamps?gclidx=1&xgclid=2"),
        Page(_WWW, "/go?to=https://shop.example.org/?utm_source=x"),  # inside the value of another parameter
        Page(_WWW, "/help/faq?topic=a%26b&page=2"),
        Page(_WWW, "/blog/sch\u00f6ne-gr\u00fc\u00dfe"),
        Page(_WWW, "/p/caf%C3%A9?B=2&a=1"),
        Page("http://legacy.example.com:8080", "/cart"),
        Page("https://www.example.com:80", "/other-port"),
        Page("http://www.example.com:443", "/other-port"),
    )


def page_shares() -> list[float]:
    """Zipf: the page of rank r is clicked in proportion to 1 / r ** ZIPF_EXPONENT."""
    return [1 / rank**ZIPF_EXPONENT for rank in range(1, len(pages()) + 1)]


def spellings(origin: str) -> tuple[str, str, str, str]:
    """One origin in four spellings: as it is, host in upper case, default port, both."""
    scheme, _, host = origin.partition("://")
    port = "" if ":" in host else {"http": ":80", "https": ":443"}[scheme]
    return origin, f"{scheme}://{host.upper()}", f"{origin}{port}", f"{scheme.upper()}://{host.title()}{port}"


#: Share of each of the four spellings, relative to the others.
SPELLING_SHARES = (920, 40, 30, 10)


@cache
def tracking_queries() -> tuple[str, ...]:
    """What a campaign adds to a query; the first is none. Names in every case, with and without a value."""
    pairs = product(("google", "newsletter", "facebook", "partner%20x"), ("cpc", "email", "social"), range(12))
    campaigns = [f"utm_source={source}&utm_medium={medium}&utm_campaign=c{n}" for source, medium, n in pairs]
    draws = np.random.Generator(np.random.PCG64(20260302))
    click_ids = [
        f"{name}={draws.bytes(24).hex()}"
        for name in ("gclid", "fbclid", "msclkid", "GCLID", "dclid", "yclid", "igshid", "mc_eid")
        for _ in range(24)
    ]
    both = [f"{campaign}&{click_id}" for campaign, click_id in zip(campaigns, click_ids, strict=False)]
    odd = [
        "UTM_Source=News&Utm_Medium=Mail",
        "fbclid",
        "utm_",
        "mc_cid=1&mc_eid=2",
        "utm_source=a=b",
        "utm_id=",
    ]
    return ("", *campaigns, *click_ids, *both, *odd)


@cache
def human_agents() -> tuple[str, ...]:
    """Browsers, among them a phone whose maker's name holds the letters BOT."""
    webkit, gecko = "AppleWebKit/537.36 (KHTML, like Gecko)", "Gecko/20100101"
    iphone = "AppleWebKit/605.1.15 (KHTML, like Gecko) Version/{0}.{1} Mobile/15E148 Safari/604.1"
    systems = ("Windows NT 10.0; Win64; x64", "Macintosh; Intel Mac OS X 10_15_7", "X11; Linux x86_64")
    phones = ("Android 10; K", "Android 14; SM-S918B", "Android 13; Pixel 7", "Android 13; CUBOT P80")
    return (
        *(f"Mozilla/5.0 ({s}) {webkit} Chrome/{n}.0.0.0 Safari/537.36" for s in systems for n in range(122, 131)),
        *(
            f"Mozilla/5.0 (Linux; {phone}) {webkit} Chrome/{n}.0.0.0 Mobile Safari/537.36"
            for phone in phones
            for n in range(124, 131)
        ),
        *(
            f"Mozilla/5.0 (iPhone; CPU iPhone OS {n}_{m} like Mac OS X) {iphone.format(n, m)}"
            for n in (16, 17, 18)
            for m in range(1, 6)
        ),
        *(f"Mozilla/5.0 ({s}; rv:{n}.0) {gecko} Firefox/{n}.0" for s in systems for n in (128, 130, 131)),
        *(f"Mozilla/5.0 ({systems[0]}) {webkit} Chrome/{n}.0.0.0 Safari/537.36 Edg/{n}.0.0.0" for n in range(126, 131)),
    )
