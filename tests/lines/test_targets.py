"""URLs from the parts that a line has."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from include.source_fields import LineFields
from include.sources import Source
from spark_jobs.lines.targets import normal_urls, percent_encoded, url_of_parts
from spark_jobs.lines.urls import url_normalizer
from tests.lines.parsing import FIELDS, line, parse

BASE = "https://shop.example.com"
NORMAL_FORM = url_normalizer(("utm_*",))


def url_of(base_url: str = "", *, is_escaped: bool = False, **parts: str | None) -> str | None:
    fields = {role: pa.array([text], pa.string()) for role, text in parts.items()}
    (url,) = normal_urls(fields, base_url, NORMAL_FORM, is_escaped=is_escaped).to_pylist()
    assert url is None or isinstance(url, str)
    return url


@pytest.mark.parametrize(
    ("base_url", "parts", "url"),
    [
        # Of one part, as of several: the host of the line wins, the scheme is that of base_url.
        (BASE, {"url": "/a"}, "https://shop.example.com/a"),
        (BASE, {"url": "/a", "host": None}, "https://shop.example.com/a"),
        (BASE, {"url": "/a", "host": "blog.example.com"}, "https://blog.example.com/a"),
        ("http://shop.test", {"url": "/a", "host": "blog.example.com"}, "http://blog.example.com/a"),
        ("", {"url": "/a", "host": "Blog.Example.com"}, "https://blog.example.com/a"),
        ("", {"url": "//a", "host": "blog.example.com"}, "https://blog.example.com//a"),
        ("", {"url": "/a?b=1&utm_source=x#top", "host": "h.example"}, "https://h.example/a?b=1"),
        ("", {"url": "/", "host": "b\u00fccher.example"}, "https://xn--bcher-kva.example/"),
        ("", {"url": "/", "host": "[2001:DB8::7]:8443"}, "https://[2001:db8::7]:8443/"),
        # Ports: the server's own says nothing of what was asked for.
        ("", {"url": "/a", "host": "h.example:443"}, "https://h.example/a"),
        ("", {"url": "/a", "host": "h.example:80"}, "http://h.example/a"),
        (BASE, {"url": "/a", "host": "h.example:80"}, "https://h.example/a"),
        ("http://b", {"url": "/a", "host": "h.example:443"}, "http://h.example/a"),
        ("", {"url": "/a", "host": "h.example:8080"}, "https://h.example:8080/a"),
        ("", {"url": "/a", "host": "h.example:8080", "scheme": "http"}, "http://h.example:8080/a"),
        ("", {"url": "/a", "host": "h.example:443", "scheme": "http"}, "http://h.example:443/a"),
        # Schemes, as servers write them.
        ("", {"url": "/a", "host": "h.example", "scheme": "http"}, "http://h.example/a"),
        (BASE, {"url": "/a", "scheme": "http"}, "http://shop.example.com/a"),
        (BASE, {"url": "/a", "scheme": "HTTPS:"}, "https://shop.example.com/a"),
        ("", {"url": "/a", "host": "h.example", "scheme": "http://"}, "http://h.example/a"),
        ("http://b", {"url": "/a", "host": "h.example", "scheme": "on"}, "https://h.example/a"),
        ("", {"url": "/a", "host": "h.example", "scheme": "-"}, "https://h.example/a"),
        ("", {"url": "/a", "host": "h.example", "scheme": "wss"}, None),
        # No host.
        (BASE, {"url": "/a", "host": "-"}, "https://shop.example.com/a"),
        (BASE, {"url": "/a", "host": "_"}, "https://shop.example.com/a"),
        ("", {"url": "/a", "host": "_"}, None),
        (BASE, {"url": "/a", "host": "_:443"}, "https://shop.example.com/a"),
        (BASE, {"url": "/a", "host": ":8443"}, "https://shop.example.com/a"),
        ("", {"url": "/a", "host": "-:80"}, None),
        ("", {"url": "/a", "host": None}, None),
        ("", {"url": "/a"}, None),
        # Hosts that are none: never another page's.
        (BASE, {"url": "/a", "host": "evil.example/x"}, None),
        (BASE, {"url": "/a", "host": "user:secret@h.example"}, None),
        (BASE, {"url": "/a", "host": "a.example, b.example"}, None),
        (BASE, {"url": "/a", "host": "a b"}, None),
        (BASE, {"url": "/a", "host": "h.example\x1ex"}, None),
        (BASE, {"url": "/a", "host": "h.example:http"}, None),
        # Queries.
        (BASE, {"url": "/a", "query": "b=1"}, "https://shop.example.com/a?b=1"),
        (BASE, {"url": "/a", "query": "?b=1"}, "https://shop.example.com/a?b=1"),
        (BASE, {"url": "/a", "query": "-"}, "https://shop.example.com/a"),
        (BASE, {"url": "/a", "query": None}, "https://shop.example.com/a"),
        (BASE, {"url": "/a?b=1", "query": "b=1"}, "https://shop.example.com/a?b=1"),
        (BASE, {"url": "/a?b", "query": "c=1"}, "https://shop.example.com/a%3Fb?c=1"),
        (BASE, {"url": "/a\x1eb", "query": "c=\x1e"}, "https://shop.example.com/a%1Eb?c=%1E"),
        (BASE, {"url": "/a", "query": "utm_source=x"}, "https://shop.example.com/a"),
        # A whole URL, and what is none.
        (BASE, {"url": "http://other.example/x", "host": "h.example"}, "http://other.example/x"),
        (BASE, {"url": "*", "host": "h.example"}, None),
        (BASE, {"url": "h.example:443", "host": "h.example"}, None),
        (BASE, {"url": "a/b", "host": "h.example"}, None),
        (BASE, {"url": None, "host": "h.example"}, None),
    ],
)
def test_url_of_parts(base_url: str, parts: dict[str, str | None], url: str | None) -> None:
    assert url_of(base_url, **parts) == url


def test_escaped_bytes_are_percent_encoded_where_the_format_has_them() -> None:
    parts = {"url": r"/caf\xC3\xA9\"", "query": r"q=\x22\\"}
    assert url_of(BASE, is_escaped=True, **parts) == "https://shop.example.com/caf%C3%A9%22?q=%22%5C"
    assert url_of(BASE, is_escaped=True, url=r"/a\x20b") == "https://shop.example.com/a%20b"
    assert url_of(BASE, url=r"/a\b") == "https://shop.example.com/a/b"  # as a browser reads it
    assert percent_encoded(r"\x5cn\\n\t") == "%5Cn%5Cn%09"


def test_each_row_has_its_own_parts() -> None:
    fields = {
        "url": pa.array(["/a", "/a", None, "/b"]),
        "host": pa.array(["x.example", None, "x.example", "x.example"]),
        "query": pa.array([None, "q=1", "q=1", ""]),
    }
    urls = normal_urls(fields, "http://base.example", NORMAL_FORM, is_escaped=False).to_pylist()
    assert urls == ["http://x.example/a", "http://base.example/a?q=1", None, "http://x.example/b"]


_TARGETS = st.one_of(
    st.none(),
    st.text("/ab.?%\\\\x41\\x1e&=-", max_size=12).map(lambda text: f"/{text}"),
    st.sampled_from(["http://o.test/a", "*", "a/b", "", "/a?b=1", r"/caf\xC3"]),
)
_HOSTS = st.sampled_from([None, "", "-", "_", "h.test", "H.test:443", "h.test:80", "a b", "h\x1e.test"])
_SCHEMES = st.sampled_from([None, "", "-", "http", "HTTPS:", "on", "http/1.1", "wss", "\x1e"])
_QUERIES = st.sampled_from([None, "", "-", "?", "?-", "b=1", "?b=1", "q=\\x22", "a\x1eb"])
_ROWS = st.lists(st.tuples(_TARGETS, _HOSTS, _SCHEMES, _QUERIES), min_size=1, max_size=20)


@given(_ROWS, st.sampled_from(["", BASE]), st.sets(st.sampled_from(["host", "scheme", "query"])), st.booleans())
def test_many_rows_are_as_each_alone(
    rows: list[tuple[str | None, ...]], base_url: str, roles: set[str], is_escaped: bool
) -> None:
    columns = dict(zip(("url", "host", "scheme", "query"), zip(*rows, strict=True), strict=True))
    fields = {role: pa.array(columns[role], pa.string()) for role in ("url", *roles)}
    together = normal_urls(fields, base_url, NORMAL_FORM, is_escaped=is_escaped).to_pylist()
    alone = [
        url_of(base_url, is_escaped=is_escaped, **{role: fields[role][row].as_py() for role in fields})
        for row in range(len(rows))
    ]
    assert together == alone
    if not is_escaped and "query" not in roles:
        assert together == [_one_after_the_other(base_url, *row, roles) for row in rows]


def _one_after_the_other(
    base_url: str, target: str | None, host: str | None, scheme: str | None, _: str | None, roles: set[str]
) -> str | None:
    if target is None:
        return None
    host, scheme = (
        (text or "").replace("\x1e", "%1E") if role in roles else ""
        for role, text in (("host", host), ("scheme", scheme))
    )
    return NORMAL_FORM(url_of_parts(base_url, target, host, scheme))


@pytest.mark.parametrize("scheme", ["http1.1", "http2.0", "HTTP/1.1", "h2"])
def test_a_version_of_the_protocol_is_no_scheme(scheme: str) -> None:
    assert url_of_parts("", "/a", "shop.test", scheme) == "https://shop.test/a"
    assert url_of_parts("http://base.test", "/a", "shop.test", scheme) == "http://shop.test/a"


def test_json_paths_are_of_base_url() -> None:
    source = Source(name="web", format="json", base_url=BASE, fields=LineFields(**FIELDS))
    rows = parse([line(url=url) for url in ("/a", "http://other.test/b", "a", r"/x\y")], source)
    assert [row["url"] for row in rows] == [f"{BASE}/a", "http://other.test/b", None, f"{BASE}/x/y"]
    assert [row["reason"] for row in rows] == [None, None, "bad_url", None]
