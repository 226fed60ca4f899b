"""The normal form of a URL: what a browser makes of it, without fragment and tracking parameters."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from include.settings import PipelineSettings
from spark_jobs.lines.urls import url_normalizer

TRACKING = ("utm_*", "gclid", "fbclid", "msclkid", "dclid", "yclid", "igshid", "mc_cid", "mc_eid")
normal_form = url_normalizer(TRACKING)
shipped = url_normalizer(PipelineSettings().tracking_parameters)
#: Of web-platform-tests; the href is null where a browser refuses the input.
CASES: dict[str, str | None] = {
    case["input"]: case["href"] for case in json.loads((Path(__file__).parent / "data/url_cases.json").read_text())
}
#: Cases that the parser sees differently, and why.
_PUNYCODE = "refused as no Punycode; the newest standard lets a browser keep labels of ASCII only as they are"
OTHERWISE = {
    "http://a.b.c.xn--pokxncvks": _PUNYCODE,
    "http://10.0.0.xn--pokxncvks": _PUNYCODE,
    "http://a.b.c.XN--pokxncvks": _PUNYCODE,
    "http://a.b.c.Xn--pokxncvks": _PUNYCODE,
    "http://10.0.0.XN--pokxncvks": _PUNYCODE,
    "http://10.0.0.xN--pokxncvks": _PUNYCODE,
    "https://xn--/": _PUNYCODE,
}


def _is_malformed(url: str) -> bool:
    """The rule of the check urls_have_a_shape, which holds an hour where it finds one."""
    return (
        not url.startswith(("https://", "http://"))
        or url in {"https://", "http://"}
        or url.startswith(("https:///", "http:///"))
        or " " in url
        or "#" in url
    )


def _as_stored(href: str | None) -> str | None:
    """What is stored of a browser's href: none but of the web, no user, no fragment, no empty query."""
    if href is None or not href.startswith(("http://", "https://")):
        return None
    page, question_mark, query = href.split("#")[0].partition("?")
    page = re.sub("(?<=//)[^/]*@", "", page)
    return page + question_mark + query if query else page


def test_urls_are_as_browsers_see_them() -> None:
    assert len(CASES) > 250
    normal_forms = {text: url_normalizer(())(text) for text in CASES}
    different = {text for text, href in CASES.items() if normal_forms[text] != _as_stored(href)}
    assert different == OTHERWISE.keys()
    assert {normal_forms[text] for text in different} == {None}


def test_the_cases_are_of_both_kinds() -> None:
    stored = [_as_stored(href) for href in CASES.values()]
    assert stored.count(None) > 100
    assert len(stored) - stored.count(None) > 100


URLS: dict[str, str | None] = {
    "http://shop.test": "http://shop.test/",
    "HTTP://SHOP.Test/Path": "http://shop.test/Path",
    "http://shop.test:80/a": "http://shop.test/a",
    "https://shop.test:443": "https://shop.test/",
    "http://shop.test:443/": "http://shop.test:443/",
    "https://shop.test:80/": "https://shop.test:80/",
    "http://shop.test:8080/": "http://shop.test:8080/",
    "http://shop.test:/": "http://shop.test/",
    "http://shop.test:0080/": "http://shop.test/",
    "http://[2001:DB8::1]:80/": "http://[2001:db8::1]/",
    "http://User:Pass@Shop.test/": "http://shop.test/",
    "http://user@Evil@Host/": "http://host/",
    "https://ada:s3cret@shop.test": "https://shop.test/",
    "https://ada@shop.test:8443/@ada?to=a@b.test": "https://shop.test:8443/@ada?to=a@b.test",
    "https://:s3cret@shop.test/a": "https://shop.test/a",
    "https://ada:@shop.test/a?gclid=1": "https://shop.test/a",
    "https:ada:s%2Fcret%40@[::1]:81/a": "https://[::1]:81/a",
    "https:\\\\ada:p:w@shop.test\\a": "https://shop.test/a",
    "http://ada:s3cret@/": None,
    "http://shop.test/a@b:c/": "http://shop.test/a@b:c/",
    "http://@shop.test/": "http://shop.test/",
    "http://shop.test\\A\\B?C\\D": "http://shop.test/A/B?C\\D",
    "http:\\\\Host\\Path": "http://host/Path",
    "http:shop.test/a": "http://shop.test/a",
    "http://Ü.de:80/x": "http://xn--tda.de/x",
    "http://Ü.de/x": "http://xn--tda.de/x",
    "http://ü.de/x": "http://xn--tda.de/x",
    "http://xn--tda.de/x": "http://xn--tda.de/x",
    "http://127.1/": "http://127.0.0.1/",
    "http://shop.test?a=1": "http://shop.test/?a=1",
    "http://shop.test/?": "http://shop.test/",
    "http://shop.test/#top": "http://shop.test/",
    "http://shop.test#a?b": "http://shop.test/",
    "http://shop.test/?#a": "http://shop.test/",
    "http://shop.test/?a=1#b?c": "http://shop.test/?a=1",
    "http://shop.test/?a?b": "http://shop.test/?a?b",
    "http://shop.test/?utm_source=x": "http://shop.test/",
    "http://shop.test/?utm_source=x&utm_medium=y&gclid": "http://shop.test/",
    "http://shop.test/?UTM_Source=x&b=2&GCLID=3": "http://shop.test/?b=2",
    "http://shop.test/?b=2&a=1&b=2": "http://shop.test/?b=2&a=1&b=2",
    "http://shop.test/?gclid": "http://shop.test/",
    "http://shop.test/?gclid#?b=1": "http://shop.test/",
    "http://shop.test/?gclids=1&xgclid=1&utm=1": "http://shop.test/?gclids=1&xgclid=1&utm=1",
    "http://shop.test/?a=gclid&c=utm_x": "http://shop.test/?a=gclid&c=utm_x",
    "http://shop.test/?a=b&&gclid=1&": "http://shop.test/?a=b&&",
    "http://shop.test/utm_source=x&gclid=1": "http://shop.test/utm_source=x&gclid=1",
    "http://shop.test/?a=%2f%2F+&b": "http://shop.test/?a=%2f%2F+&b",
    "http://shop.test/a/../b//c/.": "http://shop.test/b//c/",
    "http://shop.test/%2E%2e/a": "http://shop.test/a",
    "http://shop.test/é?ü=ß": "http://shop.test/%C3%A9?%C3%BC=%C3%9F",
    # A line separator, which some take for the end of a text, hides no tracking parameter behind it.
    "http://shop.test/?q=\u2028&gclid=1": "http://shop.test/?q=%E2%80%A8",
    # Real clicks, on pages of US authorities.
    "http://shop.test/2012/EI Mar 16 DUI.htm": "http://shop.test/2012/EI%20Mar%2016%20DUI.htm",
    "http://shop.test/?term=heart attack": "http://shop.test/?term=heart%20attack",
    " http://shop.test/a\tb\n": "http://shop.test/ab",
    "http:///cart": "http://cart/",
    "http://": None,
    "http:///": None,
    "http://:80/": None,
    "https://:443/x": None,
    "http://:8080/x": None,
    "http://user@/x": None,
    "http://@/": None,
    "http://shop test/": None,
    "http://shop.test:99999/": None,
    "http://[::1/": None,
    "http://1.2.3.256/": None,
    "//shop.test/": None,
    "shop.test": None,
    "/cart": None,
    "": None,
    "ftp://shop.test/": None,
    "file:///etc/passwd": None,
    "javascript:alert(1)": None,
    "blob:http://shop.test/1": None,
}


def test_normal_form_of_each() -> None:
    assert {url: normal_form(url) for url in URLS} == URLS


def test_without_tracking_parameters_every_parameter_stays() -> None:
    urls = ["http://shop.test/?utm_source=x&gclid", "http://shop.test/?", "HTTP://a"]
    assert [url_normalizer(())(url) for url in urls] == [urls[0], "http://shop.test/", "http://a/"]


def test_tracking_parameters_are_names_not_patterns() -> None:
    of_odd_names = url_normalizer(("a.b", "c+*", "[", "d|e"))
    assert of_odd_names("http://a/?a.b=1&axb=2&c+1=3&cc=4&[=5&d|e=6&d=7&e=8") == "http://a/?axb=2&cc=4&d=7&e=8"


def test_the_shipped_tracking_parameters_can_be_used() -> None:
    assert shipped("http://shop.test/?utm_campaign=x&q=1&GCLID=2") == "http://shop.test/?q=1"


#: Of the field case A25, and others of the same kind.
TRACKED = """
    gclid gbraid wbraid gad_source gad_campaignid gad srsltid _gl _ga ttclid twclid li_fat_id _hsenc _hsmi igsh ScCid
    epik mkt_tok rdt_cid s_kwcid vero_id mc_eid dclid gclsrc msclkid yclid ysclid fbclid mibextid hsa_cam mtm_source
    pk_kwd piwik_campaign matomo_source _openstat oly_enc_id _ke _kx irclickid cjevent tblci dicbo qclid ndclid
    _branch_match_id
    mtm_anything utm_anything __s cm_mmc cm_mmca1 xtor wt_mc WT.mc_id elqTrackId dm_i bsft_uid ml_subscriber sscid awc
    PHPSESSID phpsessid JSESSIONID ASPSESSIONIDQQABCDEF CFTOKEN osCsid
""".split()
#: What a page may be known by, though some link cleaner takes it off, or some name here begins so.
IDENTITIES = """
    ref source campaign campaign_id cid id sid si spm trk s p q page pid aid view tab sort lang next session sessionid
    session_id sessid token key code name clid gclids utm mc_ mcid hs hsid pk pk_id at at_ fb fb_ ga ga_ wt wt_ _g gl
    gad2
    igs mk mkt tt tw rdt s_k vero vero_i cmpid ncid icid medium origin redirect_to url email user ts t _ v jsession php
    PHPSESSIDS xPHPSESSID
""".split()


@pytest.mark.parametrize("write", [str, str.upper, str.lower, lambda name: name.replace("_", "%5F"), "amp;{}".format])
def test_names_that_only_track_go(write: Callable[[str], str]) -> None:
    urls = [f"https://shop.test/a?b=1&{write(name)}=1*x&c=2" for name in TRACKED]
    assert {shipped(url) for url in urls} == {"https://shop.test/a?b=1&c=2"}


def test_names_by_which_a_page_may_be_known_stay() -> None:
    urls = [f"https://shop.test/a?{name}=1a2b" for name in IDENTITIES]
    assert [shipped(url) for url in urls] == urls


def test_names_are_added_to_those_that_are_built_in_and_some_are_excepted() -> None:
    url = "https://shop.test/?partner_a=1&partner_id=2&srsltid=3&gclid=4&a=5&utm_id=6"
    for entries, expected in {
        (): "?partner_a=1&partner_id=2&a=5",
        ("partner_*", "!partner_id", "!SRSLTID"): "?partner_id=2&srsltid=3&a=5",
        ("!partner_id", "partner_*"): "?a=5",
        ("!utm_*", "A"): "?partner_a=1&partner_id=2&utm_id=6",
        ("!*",): "?partner_a=1&partner_id=2&srsltid=3&gclid=4&a=5&utm_id=6",
        ("!*", "gclid"): "?partner_a=1&partner_id=2&srsltid=3&a=5&utm_id=6",
        ("*",): "",
    }.items():
        named = url_normalizer(PipelineSettings(tracking_parameters=entries).tracking_parameters)
        assert named(url) == f"https://shop.test/{expected}", entries


@pytest.mark.parametrize("entry", ["", " ", "a b", "a&b", "?a=1", "a*b", "!!a", "!", "a=", "a=1", "*a", "a#"])
def test_an_entry_that_is_no_name_is_refused(entry: str) -> None:
    with pytest.raises(ValidationError, match="expected one such as 'partner'"):
        PipelineSettings(tracking_parameters=("good", entry))


HEX = "0123456789abcdef" * 2
ASP = "lit3py55t21z5v55vlm25s55"
SESSIONS = {
    "/a;jsessionid=1A2B.node1": "/a",
    "/a;JSESSIONID=1!2!3?q=1": "/a?q=1",
    "/a;v=2;jsessionid=1A2B;w=3/b;jsessionid=4": "/a;v=2;w=3/b",
    "/a%3Bjsessionid=1A2B": "/a",
    "/a%3bjsessionid=1A2B%3Bw=3": "/a%3Bw=3",
    "/;jsessionid=1A": "/",
    "/a;jsessionid": "/a",
    "/a;PHPSESSID=ab12/b": "/a/b",
    "/a%3bjsessionid%3D12/b": "/a/b",
    "/a%3Bv%3d1": "/a%3Bv%3d1",
    f"/a;sid={HEX}": "/a",
    "/a/..;jsessionid=1/b": "/b",
    f"/(S({ASP}))/orders/list.aspx": "/orders/list.aspx",
    f"/shop/(S({ASP}))/list.aspx": "/shop/list.aspx",
    f"/(X(1)A({HEX})S({ASP})F({HEX}))/": "/",
    f"/(S({ASP}))": "/",
    f"/%28S%28{ASP}%29%29/a": "/a",
    f"/({ASP})/a.aspx": "/a.aspx",
    f"/(s({ASP}))/a": "/a",
    f"/a?sid={HEX}&b=1": "/a?b=1",
    f"/a?SessionId={HEX.upper()}": "/a",
    "/a?session_id=123e4567-e89b-12d3-a456-426614174000": "/a",
    "/a?PHPSESSID=x": "/a",
    "/a?CFID=12&CFTOKEN=34": "/a",
    "/a?ASPSESSIONIDQQTTSACC=AB": "/a",
    "/a?b=1;jsessionid=2": "/a?b=1;jsessionid=2",
}
NO_SESSIONS = [
    "/a;v=1", "/a;sid=12", "/jsessionid=1", "/a;xjsessionid=1", "/a;b;c", "/a;", "/a;=1", "/a%3B", "/(S(x))/a",
    "/wiki/(S)",
    "/wiki/Mercury_(planet)", f"/wiki/x({ASP})/a", "/(internationalisationtxt)/a", f"/(S({ASP})/a", "/(X)/a",
    f"/a?sid={HEX[:-1]}", f"/a?sid={HEX}x", "/a?session_id=42",
    "/a?sessionid=keynote-of-the-year-2026-in-the-main-hall",
    "/a?sid=CA0123456789abcdef0123456789abcdef", "/(1;2)/a@b",
]  # fmt: skip


def test_session_ids_go() -> None:
    assert {url: shipped(f"https://shop.test{url}") for url in SESSIONS} == {
        url: f"https://shop.test{kept}" for url, kept in SESSIONS.items()
    }


def test_what_only_looks_like_a_session_id_stays() -> None:
    urls = [f"https://shop.test{path}" for path in NO_SESSIONS]
    assert [shipped(url) for url in urls] == urls


def test_a_session_id_that_is_excepted_stays() -> None:
    named = url_normalizer(PipelineSettings(tracking_parameters=("!jsessionid", "!sid")).tracking_parameters)
    url = f"https://shop.test/a;jsessionid=1?sid={HEX}"
    assert named(url) == url


def _without_tracking(parameters: list[str]) -> list[str]:
    kept = []
    for parameter in parameters:
        name = re.sub("^(amp;)+", "", unquote(parameter.split("=")[0].lower()))
        if not name.startswith("utm_") and name not in TRACKING:
            kept.append(parameter)
    return kept


_names = st.sampled_from([*TRACKING[1:], "utm_source", "UTM_", "Gclid", "gclids", "xutm_a", "utm", "q", ""])
_values = st.sampled_from(["", "=", "=1", "=a=b", "=?/@:", "=gclid"])
_parameters = st.lists(
    st.tuples(_names | st.text("aU_%2.+;", max_size=5), _values).map("".join),
    max_size=6,
)


@settings(max_examples=500, deadline=None)
@given(_parameters, st.sampled_from(["", "#", "#top?utm_x=1&q"]))
def test_tracking_parameters_go_and_the_others_stay_in_order(parameters: list[str], fragment: str) -> None:
    kept = "&".join(_without_tracking(parameters))
    expected = f"http://shop.test/p?{kept}" if kept else "http://shop.test/p"
    assert normal_form(f"http://shop.test/p?{'&'.join(parameters)}{fragment}") == expected


def _any_url(rng: random.Random) -> str:
    def text(alphabet: str, most: int) -> str:
        return "".join(rng.choices(alphabet, k=rng.randrange(most)))

    scheme = rng.choice(["http://", "https://", "HTTP://", "https:", "http:\\/", "ht\ttp://", "http:///"])
    user = rng.choice(["", "", "", "u@", "U:p@", "@", ":@", "a@b@", "%zz@"])
    host = rng.choice(["a", "Shop.TEST", "[::1]", "x-y.z", "é.test", "1.2", "0x7F.1", "faß.de", "a\u00adb", "\uff11.a"])
    port = rng.choice(["", "", ":80", ":443", ":8080", ":", ":00080"])
    path = rng.choice(["", "/", "/" + text("aB/.;%2f:=&é@ \\\t|\"<>`{}^'\x00\x7f😀", 12)])
    names = [*TRACKING, "utm_Source", "UTM_", "Gclid", "q", "", "a", "autm_x", text("a=&?;+%é '\"<>\u2028", 5)]
    parameters = "&".join(
        f"{rng.choice(names)}{rng.choice(['', '=', '=1', '=a=b', '=?/@:'])}" for _ in range(rng.randrange(4))
    )
    query = rng.choice(["", "?", "?" + parameters, "?" + parameters])
    return f"{scheme}{user}{host}{port}{path}{query}{rng.choice(['', '', '#', '#top?x#y'])}"


def test_any_url_has_a_normal_form_that_is_its_own_and_that_no_check_refuses() -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    urls = [_any_url(rng) for _ in range(20_000)]
    normal_forms = {url: normal for url in [*CASES, *URLS, *urls] if (normal := normal_form(url)) is not None}
    assert len(normal_forms) > 10_000
    for url, normal in normal_forms.items():
        assert normal_form(normal) == normal, url
        assert not _is_malformed(normal), url
        assert re.fullmatch(r"[!-~]+", normal), url
        parts = urlsplit(normal)
        assert parts.hostname, url
        assert _without_tracking(parts.query.split("&")) == parts.query.split("&"), url


@settings(max_examples=2000, deadline=None)
@given(st.text(max_size=30), st.sampled_from(["http://", "https://h/", "http:", "", "http://h/?", "http://u@"]))
def test_any_text_has_a_normal_form_that_is_its_own_or_none(text: str, start: str) -> None:
    normal = normal_form(start + text)
    assert normal is None or (normal_form(normal) == normal and not _is_malformed(normal))


def test_a_url_is_refused_by_the_check_only_for_what_no_normal_form_has() -> None:
    for url in ("ftp://a/", "http://", "http:///", "https:///a", "http://a/ ", "http://a/#", ""):
        assert _is_malformed(url)


def test_long_urls_have_a_normal_form_too() -> None:
    assert normal_form("http://h/a/" + "../" * 20_000) == "http://h/"
    assert normal_form("http://h/?" + "&utm_x=1" * 20_000 + "&q") == "http://h/?&q"
    assert normal_form("http://h/" + "é" * 20_000) == "http://h/" + "%C3%A9" * 20_000
