"""What one page of a source is: parameters, case, trailing slash and paths with holes."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from include.errors import UsageError
from include.page_settings import PageSettings
from include.settings import PipelineSettings, Settings
from include.sources import load_sources
from spark_jobs.lines.urls import url_normalizer
from tests.lines.parsing import ACCESS, WEB, line, log_line, parse

TRACKING = PipelineSettings().tracking_parameters
SHOP = "https://shop.test"
UUID = "123E4567-e89b-12d3-a456-426614174000"
#: Settings as written in sources.toml, and what becomes of paths and queries.
CASES: dict[str, dict[str, str]] = {
    'keep_parameters = ["q", "page"]': {
        "/?q=1&session=2&page=3&Q=4": "/?q=1&page=3&Q=4",
        "/?a=1&b": "/",
        "/;v=1?gclid=1": "/;v=1",
    },
    "keep_parameters = []": {"/a?b=1": "/a", "/a;jsessionid=1?": "/a", "/a": "/a"},
    'keep_parameters = ["gclid", "utm_*"]': {"/?gclid=1&utm_x=2&q=3&fbclid=4": "/?gclid=1&utm_x=2"},
    'drop_parameters = ["sort", "view_*", "größe"]': {
        "/?sort=1&SORT=2&view_a=3&q=4&gclid=5&sorted=6": "/?q=4&sorted=6",
        "/?größe=1&q=ü": "/?q=%C3%BC",
    },
    "lower_case = true": {"/A/b%C3%9C?Q=X": "/a/b%c3%9c?Q=X", "/a": "/a"},
    'trailing_slash = "remove"': {"/a/": "/a", "/a//?q=/": "/a?q=/", "/": "/", "/a": "/a", "/;jsessionid=1": "/"},
    'paths = ["/user/{id}/profile", "/order/{n:number}", "/f/{file:uuid}/*", "/x/{key:hex}"]': {
        "/user/42/profile": "/user/{id}/profile",
        "/user/ada%20l?tab=1&gclid=2": "/user/ada%20l?tab=1",
        "/user/ada%20l/profile?tab=1&gclid=2": "/user/{id}/profile?tab=1",
        "/user//profile": "/user//profile",
        "/user/42/profile/": "/user/42/profile/",
        "/a/user/42/profile": "/a/user/42/profile",
        "/User/42/profile": "/User/42/profile",
        "/user/1;jsessionid=2/profile": "/user/{id}/profile",
        "/user/{1}/profile": "/user/{id}/profile",
        "/order/7": "/order/{n}",
        "/order/7a": "/order/7a",
        "/order/٣": "/order/%D9%A3",
        "/order/": "/order/",
        f"/f/{UUID}/a/b": "/f/{file}/a/b",
        f"/f/{UUID}/": "/f/{file}/",
        f"/f/{UUID}": f"/f/{UUID}",
        "/x/0123abCD": "/x/{key}",
        "/x/face": "/x/face",
    },
    'paths = ["/user/{id}", "/user/{name}/{tab}", "/user/{id}/*", "/größe/{n}"]': {
        "/user/1": "/user/{id}",
        "/user/1/2": "/user/{name}/{tab}",
        "/user/1/2/3": "/user/{id}/2/3",
        "/größe/1": "/gr%C3%B6%C3%9Fe/{n}",
        "/gr%c3%b6%C3%9fe/1": "/gr%C3%B6%C3%9Fe/{n}",
        "/GR%C3%B6%C3%9FE/1": "/GR%C3%B6%C3%9FE/1",
    },
    'lower_case = true\ntrailing_slash = "remove"\npaths = ["/User/{id}/"]\nkeep_parameters = []': {
        "/USER/Ada/?a=1": "/user/{id}",
        "/user/ada": "/user/{id}",
        "/": "/",
    },
}


@pytest.mark.parametrize("toml", CASES)
def test_urls_of_one_page_are_one_key(toml: str) -> None:
    normal_form = url_normalizer(TRACKING, PageSettings.model_validate(tomllib.loads(toml)))
    expected = {f"{SHOP}{url}": f"{SHOP}{key}" for url, key in CASES[toml].items()}
    assert {url: normal_form(url) for url in expected} == expected
    assert normal_form("nonsense") is None


def test_a_hole_is_no_page_that_somebody_asked_for() -> None:
    normal_form = url_normalizer(TRACKING, PageSettings(paths=("/user/{id:number}",)))
    assert normal_form(f"{SHOP}/user/1") == f"{SHOP}/user/{{id}}"
    assert normal_form(f"{SHOP}/user/{{id}}") == f"{SHOP}/user/%7Bid%7D"


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from(["a", "B", "42", "", "é", "{id}", "..", "%2F", ";x", "*"]), max_size=5),
    st.booleans(),
    st.sampled_from(["keep", "remove"]),
    st.sampled_from([(), ("/{x}",), ("/a/{x}/*",), ("/{x:number}/{y}", "/a/{b}/{c}"), ("/B/{x}",)]),
)
def test_settings_of_any_kind_do_what_they_say(
    segments: list[str], lower_case: bool, trailing_slash: Any, paths: tuple[str, ...]
) -> None:
    pages = PageSettings(lower_case=lower_case, trailing_slash=trailing_slash, paths=paths)
    url = f"{SHOP}/{'/'.join(segments)}?q=A"
    normal = url_normalizer(TRACKING)(url)
    assert normal is not None
    path = normal.removeprefix(SHOP).removesuffix("?q=A")
    if lower_case:
        path = path.lower()
    while trailing_slash == "remove" and path.endswith("/") and path != "/":
        path = path[:-1]
    for pattern in paths:
        wanted, there = pattern.lower().split("/") if lower_case else pattern.split("/"), path.split("/")
        if wanted[-1] == "*":
            if len(there) < len(wanted):
                continue
            wanted, there = wanted[:-1], [*there[: len(wanted) - 1], "/".join(there[len(wanted) - 1 :])]
            rest = ["/" + there.pop()]
        else:
            rest = [""]
        if len(wanted) == len(there) and all(
            has == want or (want[:1] == "{" and has and (":number" not in want or has.isdigit()))
            for want, has in zip(wanted, there, strict=True)
        ):
            path = "/".join(want.replace(":number", "") for want in wanted) + rest[0]
            break
    assert url_normalizer(TRACKING, pages)(url) == f"{SHOP}{path}?q=A"


def test_clicks_are_stored_under_their_pages() -> None:
    pages = PageSettings(keep_parameters=(), paths=("/user/{id}",))
    (row,) = parse([line(url="https://Shop.test/user/42?a=1")], WEB.model_copy(update={"pages": pages}))
    assert row["url"] == "https://shop.test/user/{id}"
    (row,) = parse([log_line("GET /user/42?a=1 HTTP/1.1", rest=' "-" "-"')], ACCESS.model_copy(update={"pages": pages}))
    assert row["url"] == "http://www.test/user/{id}"


def test_all_wrong_settings_are_told_together_with_an_example(tmp_path: Path) -> None:
    file = tmp_path / "sources.toml"
    file.write_text(
        '[sources.web]\nformat = "json"\nfields = { time = "ts", url = "url" }\n[sources.web.pages]\n'
        'keep_parameters = ["a b"]\ndrop_parameters = ["a=1"]\ntrailing_slash = "add"\nlower = true\n'
        'paths = ["user/{id}", "/a/{id}?b", "/a/x{id}", "/a/{id:int}", "/a/b", "/{a}/{a}", "/*/{a}",'
        ' "/../{a}", "/{A}"]\n'
    )
    with pytest.raises(UsageError) as told:
        load_sources(Settings(tmp_path, file, tmp_path / "pipeline.toml"))
    message = str(told.value)
    for part in (
        "keep_parameters.0",
        "drop_parameters.0",
        "trailing_slash: Input should be 'keep' or 'remove'",
        "pages.lower",
        "paths.0: a path starts with a /; expected one such as '/user/{id}/profile'",
        "paths.1: a path has no query",
        "paths.2: 'x{id}' is no segment",
        "paths.3: no type 'int' of a hole; expected number, hex or uuid",
        "paths.4: no hole",
        "paths.5: two holes",
        "paths.6: '*' is no segment",
        "paths.7: no URL has the segment '..'",
        "paths.8",
    ):
        assert part in message, part


def test_parameters_are_kept_or_dropped() -> None:
    with pytest.raises(ValueError, match=r"expected one of them, such as keep_parameters = \['q', 'page'\]"):
        PageSettings(keep_parameters=("q",), drop_parameters=("a",))
