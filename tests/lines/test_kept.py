"""Which lines are counted: rules held to an oracle in plain Python over random lines and rules; and their settings."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from include.errors import UsageError
from include.source_fields import LineFields
from include.sources import Source, load_sources
from tests.lines.parsing import ISO, NOON, REST, line, log_line, parse
from tests.support.temporary_lake import make_settings

#: Hosts as a URL has them, and as a URL in normal form has them.
HOSTS = {"Shop.TEST": "shop.test", "api.shop.test:8443": "api.shop.test", "bücher.de": "xn--bcher-kva.de",
         "[2001:DB8::1]": "[2001:db8::1]"}  # fmt: skip
PATHS = ("/", "/a", "/Shop/A.PNG", "/shop/logo.png", "/admin/", "/admin/x/y", "/robots.txt", "/x.png/", "/a+b(c).css",
         "/shop%20x", "/x.mjs")  # fmt: skip
CLIENTS = {
    "192.0.2.7": "192.0.2.7",
    "::ffff:10.1.2.3": "10.1.2.3",
    "2001:DB8::A": "2001:db8::a",
    "10.200.0.1": "10.200.0.1",
}
CRAWLER = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
AGENTS = (CRAWLER, "Mozilla/5.0 (X11) Firefox/137.0", "Pingdom.com_bot 1.4", "kube-probe/1.29", None)
METHODS = ("GET", "HEAD", "POST", "PROPFIND")
STATUSES = ("200", "204", "301", "304", "404", "500")
TYPES = ("page", "identify", "page_view", "track.x", 7, True, None)


@dataclass
class Record:
    """A line as it was meant; ``host`` and ``path`` are those of a URL in normal form, None where it has none."""

    host: str | None
    path: str | None
    url: str | None
    client: str
    agent: str | None
    type: Any
    method: str
    status: str
    baseline: str | None = None

    def as_json(self) -> bytes:
        request = {"method": self.method}
        return json.dumps(
            {"ts": ISO, "url": self.url, "ip": self.client, "ua": self.agent, "type": self.type, "status": self.status,
             "request": request}
        ).encode()  # fmt: skip

    def as_access_log(self) -> bytes:
        asked = log_line(f"{self.method} {self.path} HTTP/1.1", status=self.status)
        return asked.replace(b"198.51.100.7", self.client.encode()) + f' "-" "{self.agent or "-"}"'.encode()


def records(chosen: random.Random, count: int) -> list[Record]:
    made = []
    for _ in range(count):
        host, path = chosen.choice(list(HOSTS)), chosen.choice(PATHS)
        url: str | None = f"https://{host}{path}{chosen.choice(('', '?a.png', '#b'))}"
        baseline: str | None = None
        if (kind := chosen.random()) < 0.2:
            url, baseline = (None, "missing_url") if kind < 0.1 else ("ftp://x.test/a.png", "bad_url")
        made.append(
            Record(
                None if baseline else HOSTS[host], None if baseline else path, url, chosen.choice(list(CLIENTS)),
                chosen.choice(AGENTS), chosen.choice(TYPES), chosen.choice(METHODS), chosen.choice(STATUSES), baseline,
            )
        )  # fmt: skip
    return made


VALUES: dict[str, tuple[Any, ...]] = {
    "method": ("GET", "head", "!GET", "!POST"),
    "status": (200, "2xx", "4xx", "!2xx", "!304", 404),
    "host": ("shop.test", "*.shop.test", "!*.TEST", "Bücher.de", "[2001:db8::1]", "*"),
    "path": ("/", "/shop/*", "*/x*", "!/admin/*", "/a+b(c).css", "*.png", "/?"),
    "ending": (".png", ".css", "!.PNG", ".txt"),
    "client": ("10.0.0.0/8", "192.0.2.7", "2001:db8::/32", "!10.1.2.3", "::1"),
    "user_agent": ("*firefox*", "Pingdom*", "!kube-probe/*", "*"),
    "url": ("https://shop.test/*", "*a.png", "!*admin*"),
}
FIELDS: tuple[Any, ...] = ("page", "page*", "!identify", 7, True, "*", "!*", "track.x")


def random_rule(chosen: random.Random, conditions: list[str]) -> dict[str, Any]:
    rule: dict[str, Any] = {}
    for name in chosen.sample(conditions, chosen.choice((1, 1, 2, 3))):
        if name == "crawler":
            rule[name] = chosen.random() < 0.5
            continue
        pool = FIELDS if name == "type" else VALUES[name]
        pool = tuple(value for value in pool if value != "/?")
        values = chosen.sample(pool, chosen.choice((1, 1, 2)))
        setting = values[0] if len(values) == 1 and chosen.random() < 0.5 else values
        if name == "type":
            rule["field"] = {"type": setting}
        else:
            rule[name] = setting
    return rule


def glob(pattern: str, text: str) -> bool:
    """Whether all of a text is a pattern in which * stands for anything; by its pieces, without regular expressions."""
    first, *others = pattern.split("*")
    if not others:
        return text == pattern
    if not text.startswith(first):
        return False
    place = len(first)
    for piece in others[:-1]:
        place = text.find(piece, place) + len(piece)
        if place < len(piece):
            return False
    return text.endswith(others[-1]) and len(text) - len(others[-1]) >= place


def one_fits(name: str, value: str, text: str) -> bool:
    match name:
        case "method":
            return value.upper() == text.upper()
        case "status":
            return value == text or (value.endswith("xx") and value[0] == text[0])
        case "host":
            return glob(value.lower().encode("idna").decode() if not value.isascii() else value.lower(), text)
        case "ending":
            return text.lower().endswith(value.lower())
        case "client":
            return ip_address(CLIENTS[text]) in ip_network(value)
        case "user_agent":
            return glob(value.lower(), text.lower())
        case _:
            return glob(value, text)


def condition_fits(name: str, setting: Any, record: Record) -> bool | None:
    texts: dict[str, Any] = {
        "method": record.method, "status": record.status, "host": record.host, "path": record.path,
        "ending": record.path, "client": record.client, "user_agent": record.agent, "type": record.type,
    }  # fmt: skip
    if name == "url":
        port = ":8443" if record.host == "api.shop.test" else ""
        query = "?a.png" if record.url and record.url.endswith("?a.png") else ""
        text = None if record.host is None else f"https://{record.host}{port}{record.path}{query}"
    else:
        text = texts[name]
    if text is None and name in ("host", "path", "ending", "url"):
        return None
    if name == "type" and not isinstance(text, str | None):
        text = json.dumps(text)
    values = [
        value if isinstance(value, str) else json.dumps(value)
        for value in (setting if isinstance(setting, list) else [setting])
    ]
    wanted = [value for value in values if not value.startswith("!")]
    unwanted = [value[1:] for value in values if value.startswith("!")]
    if text is None:
        return not wanted
    return (not wanted or any(one_fits(name, value, text) for value in wanted)) and not any(
        one_fits(name, value, text) for value in unwanted
    )


def rule_fits(rule: dict[str, Any], record: Record) -> bool | None:
    answers: list[bool | None] = []
    for name, setting in rule.items():
        if name == "crawler":
            answers.append((record.agent in (CRAWLER, "Pingdom.com_bot 1.4")) == setting)
        elif name == "field":
            answers.append(condition_fits("type", setting["type"], record))
        elif name != "name":
            answers.append(condition_fits(name, setting, record))
    return False if False in answers else None if None in answers else True


def outcome(drops: list[dict[str, Any]], keeps: list[dict[str, Any]], record: Record) -> str | None:
    for rule in drops:
        if rule_fits(rule, record):
            return f"left_out_{rule['name']}"
    if keeps and all(rule_fits(rule, record) is False for rule in keeps):
        return "left_out_not_kept"
    return record.baseline


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("format_", ["json", "combined"])
def test_random_rules_leave_out_what_they_say(format_: str, seed: int) -> None:
    chosen = random.Random(seed)
    conditions = ["status", "path", "ending", "client", "user_agent", "crawler", "url", "host"]
    conditions += ["type"] if format_ == "json" else ["method"]
    made = records(chosen, 300)
    if format_ == "combined":
        made = [record for record in made if record.baseline is None]
        for record in made:
            record.host, record.url = "shop.test", f"https://shop.test{record.path}"
    seen: Counter[str | None] = Counter()
    for _ in range(40):
        drops = [random_rule(chosen, conditions) | {"name": f"rule_{n}"} for n in range(chosen.choice((0, 1, 2, 3)))]
        keeps = [random_rule(chosen, conditions) for _ in range(chosen.choice((0, 0, 1, 2)))]
        rules: dict[str, Any] = {"drop": drops, "keep": keeps}
        if format_ == "json":
            mapped = LineFields(time="ts", url="url", client_address="ip", user_agent="ua", status="status")
            source = Source(name="shop", format="json", fields=mapped, **rules)
            parsed = parse([record.as_json() for record in made], source)
        else:
            source = Source(name="shop", format="combined", base_url="https://shop.test", **rules)
            parsed = parse([record.as_access_log() for record in made], source)
        expected = [outcome(drops, keeps, record) for record in made]
        wrong = [(record, row["reason"], want) for record, row, want in zip(made, parsed, expected, strict=True)
                 if row["reason"] != want]  # fmt: skip
        assert not wrong, f"{rules} {wrong[0]}"
        seen.update(expected)
    assert min(seen[None], seen["left_out_rule_0"], seen["left_out_rule_1"], seen["left_out_not_kept"]) > 100


PAGE_VIEWS = Source(name="shop", format="combined", base_url="https://shop.test", count="page_views")


@pytest.mark.parametrize(
    ("request_line", "status", "reason"),
    [
        ("GET / HTTP/1.1", "200", None),
        ("GET /shop/?image=/logo.png HTTP/1.1", "206", None),
        ("GET /a HTTP/1.1", "304", None),
        ("GET /png HTTP/1.1", "200", None),
        ("GET /x.png/ HTTP/1.1", "200", None),
        ("GET /index.html HTTP/2.0", "200", None),
        ("HEAD / HTTP/1.1", "200", "left_out_other_method"),
        ("POST /cart HTTP/1.1", "204", "left_out_other_method"),
        ("GET /a HTTP/1.1", "301", "left_out_other_status"),
        ("GET /a HTTP/1.1", "404", "left_out_other_status"),
        ("GET /a.png HTTP/1.1", "404", "left_out_other_status"),
        ("GET /logo.PNG?v=3 HTTP/1.1", "200", "left_out_static_file"),
        ("GET /fonts/a.woff2 HTTP/1.1", "304", "left_out_static_file"),
        ("GET /robots.txt HTTP/1.1", "200", "left_out_static_file"),
        # What a request says nothing of is no page view; a page that cannot be known is a bad line.
        ("-", "408", "left_out_other_method"),
        (r"\x16\x03\x01", "400", "left_out_other_method"),
        ("GET http://a%zz/logo.png HTTP/1.1", "200", "bad_url"),
    ],
)
def test_page_views_are_what_people_expect(request_line: str, status: str, reason: str | None) -> None:
    (row,) = parse([log_line(request_line, status=status, rest=REST)], PAGE_VIEWS)
    assert row["reason"] == reason


WEB = Source(
    name="web",
    format="json",
    fields=LineFields(event_id="event_id", time="ts", url="url"),
    keep=({"field": {"type": "page"}},),
    max_line_bytes=300,
)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (line(type="page"), None),
        (line(type="identify"), "left_out_not_kept"),
        (line(), "left_out_not_kept"),
        # Nothing else of a line that is left out need be right.
        (line(type="identify", url=None, ts=None, event_id=None), "left_out_not_kept"),
        (line(type="identify", ts="1999-01-01T00:00:00Z", url="no"), "left_out_not_kept"),
        (line(type="page", url=None), "missing_url"),
        (line(type="page", ts="x"), "bad_time"),
        (line(type="page", event_id=None), "missing_event_id"),
        # What is not of the format says nothing that a rule could look at.
        (b'{"type": "identify"', "not_json"),
        (b"  ", "blank"),
        (b'{"type": "\xff"}', "not_utf8"),
        (line(type="identify", other="x" * 300), "line_too_long"),
    ],
)
def test_lines_of_the_format_are_left_out_whatever_else_is_wrong_with_them(raw: bytes, reason: str | None) -> None:
    (row,) = parse([raw], WEB, first_line=1)
    assert row["reason"] == reason
    if reason == "left_out_not_kept":
        nothing = {name for name, value in row.items() if value is None}
        assert {"raw", "sampled", "clicked_at", "url", "event_id", "user_agent"} <= nothing
    elif reason is None:
        assert (row["clicked_at"], row["sampled"]) == (NOON, raw.decode())
    else:
        assert row["raw"] is not None


def test_a_condition_on_the_url_judges_only_lines_that_have_one() -> None:
    on_path = {"path": "/shop/*"}
    either = Source(name="web", format="json", fields=LineFields(time="ts", url="url"),
                    keep=(on_path | {"field": {"type": "page"}}, {"field": {"type": "screen"}}))  # fmt: skip
    lines = [line(type="page", url=None), line(type="page", url="http://x.test/shop/"), line(type="track", url=None),
             line(type="screen", url=None), line(type="page", url="http://x.test/a")]  # fmt: skip
    reasons = [row["reason"] for row in parse(lines, either)]
    assert reasons == ["missing_url", None, "left_out_not_kept", "missing_url", "left_out_not_kept"]
    on_names = Source(
        name="web",
        format="json",
        fields=LineFields(time="ts", url="url"),
        drop=({"name": "tests", "field": {"Type": "A*", "type": ["a", "!ab"], "user.group": 3}},),
    )
    lines = [line(Type="Ab", type="a", user={"group": 3}), line(Type="ab", type="a", user={"group": 3})]
    assert [row["reason"] for row in parse(lines, on_names)] == ["left_out_tests", None]


def test_a_rule_looks_at_what_was_asked_for_and_not_at_the_page_that_it_is_counted_as() -> None:
    pages = {"paths": ["/files/{name}"], "lower_case": True, "keep_parameters": []}
    rules: dict[str, Any] = {"drop": [{"name": "drafts", "url": "*draft=1"}], "keep": [{"ending": "!.PDF"}]}
    source = Source(name="web", format="json", fields=LineFields(time="ts", url="url"), pages=pages, **rules)
    asked = ("/files/a.pdf", "/Files/A?draft=1", "/files/b?x", "/files/c.html")
    rows = parse([line(url=f"http://x.test{path}") for path in asked], source)
    assert [row["reason"] for row in rows] == ["left_out_not_kept", "left_out_drafts", None, None]
    assert {row["url"] for row in rows} == {None, "http://x.test/files/{name}"}


@pytest.mark.parametrize(
    ("rule", "asked", "other"),
    [
        ({"path": "/café/*"}, "/caf%C3%A9/a", "/cafe/a"),
        ({"path": "/café/*"}, "/caf%c3%a9/a", "/CAFÉ/a"),
        ({"path": "/caf%c3%A9/*"}, "/café/a", "/Caf%C3%A9/a"),
        ({"path": '/a"{b}*'}, '/a"{b}/c', "/a/b"),
        ({"url": "*?q=größe*"}, "/s?q=gr%C3%B6%C3%9Fe&b=1", "/s?q=gross"),
    ],
)
def test_a_path_of_a_rule_is_what_a_browser_makes_of_it(rule: dict[str, Any], asked: str, other: str) -> None:
    source = Source(name="web", format="json", fields=LineFields(time="ts", url="url"), drop=({"name": "x"} | rule,))
    rows = parse([line(url=f"http://x.test{path}") for path in (asked, other)], source)
    assert [row["reason"] for row in rows] == ["left_out_x", None]


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ("200 OK", None),
        (304.0, None),
        (" 200", None),
        ("404 Not Found", "left_out_other_status"),
        ("20", "left_out_other_status"),
    ],
)
def test_a_status_with_more_than_its_code_is_that_code(status: Any, reason: str | None) -> None:
    fields = LineFields(time="ts", url="url", method="method", status="status")
    source = Source(name="web", format="json", fields=fields, count="page_views")
    (row,) = parse([line(method="GET", status=status)], source)
    assert row["reason"] == reason


def test_rules_look_at_variables_of_a_log_format_that_have_no_other_meaning() -> None:
    format_ = '$remote_addr [$time_local] "$request" $status $upstream_cache_status $body_bytes_sent "$http_x_test"'
    source = Source(name="web", format="access", log_format=format_, base_url="http://www.test", drop=(
        {"name": "cached", "field": {"$upstream_cache_status": "HIT"}},
        {"name": "tests", "field": {"$http_x_test": "*"}},
    ))  # fmt: skip
    start = b'8.8.8.8 [01/Mar/2026:12:30:00 +0000] "GET /a HTTP/1.1" 200 '
    rows = parse([start + rest for rest in (b'HIT 1 "-"', b'- 1 "yes sir"', b'MISS 1 "-"')], source)
    assert [row["reason"] for row in rows] == ["left_out_cached", "left_out_tests", None]
    for name in ("$status", "$none"):
        with pytest.raises(ValidationError, match=r"\$body_bytes_sent, \$http_x_test, \$upstream_cache_status"):
            Source(name="web", format="access", log_format=format_, base_url="http://www.test",
                   drop=({"name": "x", "field": {name: "a"}},))  # fmt: skip


def test_all_wrong_rules_are_told_together_with_an_example_each(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    settings.sources_file.write_text(
        """
        [sources.a]
        format = "combined"
        base_url = "https://shop.test"
        count = "pages"
        keep = [{}, {path = "shop"}, {status = 600}, {method = "G T"}, {field = {type = []}}]
        [[sources.a.drop]]
        name = "Staff"
        client = ["10.0.0.1/8", "staff.test"]
        ending = ["png"]
        host = "https://shop.test"
        [sources.b]
        format = "json"
        fields = {time = "ts", url = "url"}
        drop = [{name = "robots", crawler = true}, {name = "staff", client = "10.0.0.0/8"}]
        [sources.c]
        format = "json"
        fields = {time = "ts", url = "url"}
        drop = [{name = "static_file", path = "/a"}]
        [sources.d]
        format = "common"
        base_url = "https://shop.test"
        drop = [{name = "robots", user_agent = "*bot*"}]
        """,
        encoding="utf-8",
    )
    with pytest.raises(UsageError) as error:
        load_sources(settings)
    message = str(error.value)
    for expected in (
        "a.count: Input should be 'lines' or 'page_views'",
        'a.keep.0: a rule without a condition: expected one, such as ending = [".png", ".css"]',
        "a.keep.1.path: 'shop': expected a path without a query, such as \"/shop/*\"",
        "a.keep.2.status: '600': expected a status, such as 404",
        "a.keep.3.method: 'G T': expected a method",
        "a.keep.4.field.type: no value: expected a text",
        "a.drop.0.name: ",
        "a.drop.0.client: '10.0.0.1/8', 'staff.test': expected an address or a network",
        "a.drop.0.ending: 'png': expected an ending of paths, such as \".png\"",
        "a.drop.0.host: 'https://shop.test': expected a host",
        "(drop robots: user_agent; drop staff: client_address)",
        "the name 'static_file' is taken",
        "(drop robots: user_agent); they have client_address, method, request, status, time",
    ):
        assert re.search(re.escape(expected), message), (expected, message)
    with pytest.raises(ValidationError, match="rules look at"):
        Source(name="b", format="json", fields=LineFields(time="ts", url="url"), count="page_views")
