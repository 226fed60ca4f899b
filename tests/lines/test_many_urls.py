"""Which parameters and which ids in paths make a site's URLs many, and what ends it; each told from a sample."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from include.page_settings import PageSettings
from spark_jobs.lines.many_urls import UrlSample, described_causes, kept_parameters, setting_against
from spark_jobs.lines.urls import url_normalizer

SITE = "https://shop.example.com"
CLICKS = 1000
#: Of the whole hour, of which the sample is.
URLS = 2_000_000

Random = random.Random
#: What a click's URL is, the parts to blame, and the setting against them.
CAUSES: dict[str, tuple[Callable[[Random], str], list[str], str]] = {
    "parameter": (
        lambda draw: f"/p{draw.randrange(50)}?session={draw.random()}&colour={draw.randrange(5)}",
        ["parameter session"],
        '[sources.web.pages] drop_parameters = ["session"]',
    ),
    "two parameters, each by itself": (
        lambda draw: f"/p?t={draw.random()}&session={draw.random()}&page={draw.randrange(30)}",
        ["parameter session", "parameter t"],
        '[sources.web.pages] drop_parameters = ["session", "t"]',
    ),
    "parameters together": (
        lambda draw: "/p?" + "&".join(f"{name}={draw.randrange(100)}" for name in "abcd"),
        ["parameter a", "parameter b"],
        "drop_parameters",
    ),
    "session in the path": (
        lambda draw: f"/shop/cart{draw.randrange(9)};sid={draw.random()}",
        ["path parameter sid"],
        'tracking_parameters = ["sid"] in config/pipeline.toml',
    ),
    "numbers": (
        lambda draw: f"/user/{draw.randrange(10**7)}",
        ["path /user/{id:number}"],
        '[sources.web.pages] paths = ["/user/{id:number}"]',
    ),
    "numbers, and what is of them": (
        lambda draw: f"/2026/user/{draw.randrange(10**7)}/{draw.choice(['orders', 'items'])}",
        ["path /2026/user/{id:number}/*"],
        '[sources.web.pages] paths = ["/2026/user/{id:number}/*"]',
    ),
    "UUIDs and numbers": (
        lambda draw: f"/o/{UUID(int=draw.getrandbits(128))}/line/{draw.randrange(10**6)}",
        ["path /o/{id:uuid}/line/{id2:number}"],
        '[sources.web.pages] paths = ["/o/{id:uuid}/line/{id2:number}"]',
    ),
    "hexadecimal sessions": (
        lambda draw: f"/s/{draw.getrandbits(128):032x}/p{draw.randrange(9)}",
        ["path /s/{id:hex}/*"],
        '[sources.web.pages] paths = ["/s/{id:hex}/*"]',
    ),
    "ids of letters and digits": (
        lambda draw: "/k/" + "".join(draw.choices("abcxyzABCXYZ0123456789", k=22)),
        ["path /k/{id}"],
        '[sources.web.pages] paths = ["/k/{id}"]',
    ),
}


def sample(url: Callable[[Random], str], clicks: int = CLICKS, kept: Any = ()) -> UrlSample:
    draw = Random(49)
    return UrlSample([SITE + url(draw) for _ in range(clicks)], kept)


@pytest.mark.parametrize("case", CAUSES)
def test_what_makes_urls_many_is_named_with_the_setting_that_ends_it(case: str) -> None:
    url, parts, setting = CAUSES[case]
    causes = sample(url).causes(URLS)
    named = [str(each.part) for each in causes]
    if case == "parameters together":
        # Any two of them leave few: which is a matter of chance.
        assert len(named) == 2
        assert set(named) < {f"parameter {name}" for name in "abcd"}
    else:
        assert sorted(named) == parts
    assert setting in setting_against(causes, "web", None)
    assert described_causes(causes, "web", None).startswith(f"because of the {named[0]} (")


@pytest.mark.parametrize("case", [case for case in CAUSES if case != "session in the path"])
def test_the_setting_ends_it(case: str) -> None:
    """As the real reading of URLs has it, over clicks that are not those of the sample."""
    causes = sample(CAUSES[case][0]).causes(URLS)
    pages = PageSettings(
        drop_parameters=[each.name for each in causes if each.kind == "parameter"],
        paths=[each.name for each in causes if each.kind == "path"],
    )
    draw, key_of = Random(50), url_normalizer((), pages)
    urls = {key_of(SITE + CAUSES[case][0](draw)) for _ in range(2000)}
    assert len(urls) < (1990 if case == "parameters together" else 300)


def test_pages_that_are_many_are_not_blamed_beside_a_session() -> None:
    urls = sample(lambda draw: f"/item/{draw.randrange(5000)}?session={draw.random()}")
    assert [each.name for each in urls.causes(URLS)] == ["session"]
    assert [each.name for each in urls.many_values()] == ["session", "/item/{id:number}"]


def test_nothing_is_blamed_for_pages_that_are_all_different_by_their_words() -> None:
    letters = "abcdefghijklmnop"
    urls = sample(lambda draw: f"/{''.join(draw.choices(letters, k=20))}-news?session={draw.random()}")
    assert urls.causes(URLS) == [], "without the session they would be as many"
    assert described_causes([], "web", None) == (
        "because of no parameter, nor ids in their paths, that could be left out"
    )


def test_a_search_that_a_person_has_said_to_keep_is_not_blamed() -> None:
    def search(draw: Random) -> str:
        return f"/search?q={draw.random()}&View_3={draw.random()}"

    assert [each.name for each in sample(search).causes(URLS)] == ["View_3", "q"]
    pages = PageSettings(keep_parameters=["Q", "view_*"])
    assert sample(search, kept=kept_parameters(pages)).causes(URLS) == []
    assert kept_parameters(None) == ()


def test_few_values_are_not_many() -> None:
    assert sample(lambda draw: f"/{draw.randrange(2000, 2019)}/a?v={draw.randrange(9)}").many_values() == []
    assert sample(lambda draw: f"/p?session={draw.random()}", clicks=19).many_values() == []
    assert UrlSample([]).causes() == []
    assert UrlSample([f"{SITE}/a"]).causes() == []


def test_settings_that_there_are_stay() -> None:
    causes = sample(lambda draw: f"/user/{draw.randrange(10**7)}?session={draw.random()}").causes(URLS)
    pages = PageSettings(drop_parameters=["sort"], paths=["/a/{b}"])
    assert setting_against(causes, "web", pages) == (
        '[sources.web.pages] drop_parameters = ["sort", "session"], paths = ["/a/{b}", "/user/{id:number}"]'
    )


def test_names_from_logs_are_shown_as_what_they_are() -> None:
    causes = sample(lambda draw: f"/p?%1B%5B2J{'x' * 300}={draw.random()}").causes(URLS)
    text = described_causes(causes, "web", None)
    assert text.isprintable()
    assert "\\x1b[2J" in text


@pytest.mark.parametrize("path", ["/a{b}/1", "/*/1", "//", "", "/" + "1/" * 900, "/a b/2", ";=;", "/;;x;=1"])
def test_no_url_is_too_strange(path: str) -> None:
    urls = UrlSample([f"{SITE}{path}{number}?{number}" for number in range(50)])
    for each in urls.causes() + urls.many_values():
        PageSettings(paths=[each.name] if each.kind == "path" else [])
