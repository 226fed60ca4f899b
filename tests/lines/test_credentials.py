"""User and password of a URL are in nothing that is kept: not in url and referrer, raw lines and examples of fields."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from include.sources import Source
from spark_jobs.lines.credentials import texts_without_credentials, without_credentials
from spark_jobs.lines.repairs import line_digests
from spark_jobs.lines.sampled_lines import SampledLines
from tests.lines.lines import arrivals, lines_table
from tests.lines.parsing import ACCESS, REST, WEB, line, log_line, parse

TEXTS = {
    "https://ada:s3cret@shop.test/a": "https://shop.test/a",
    "http://ada@shop.test": "http://shop.test",
    "https://ada@mail.test:s3cret@shop.test/a?to=b@c.test": "https://shop.test/a?to=b@c.test",
    "HTTPS:ada:s3cret@shop.test": "HTTPS:shop.test",
    "https:/\\ada:s3cret@shop.test": "https:/\\shop.test",
    "ftp://ada:s3cret@files.test/x": "ftp://files.test/x",
    "android-app://ada@shop.test": "android-app://shop.test",
    r'{"u":"https:\/\/ada:s3cret@shop.test\/a@b"}': r'{"u":"https:\/\/shop.test\/a@b"}',
    "GET https://a:b@c.test/ http://d:e@f.test/": "GET https://c.test/ http://f.test/",
    "https://ada:s3/cret@shop.test/": "https://shop.test/",
    "https://ada:80/s3cret@shop.test/": "https://ada:80/s3cret@shop.test/",
    "https://shop.test:8443/@ada": "https://shop.test:8443/@ada",
    "https://[::1]:81/a@b": "https://[::1]:81/a@b",
    "https://shop.test/?mail=ada@mail.test": "https://shop.test/?mail=ada@mail.test",
    "https://shop.test#a@b": "https://shop.test#a@b",
    "mailto:ada@mail.test": "mailto:ada@mail.test",
    "Ada <ada@mail.test>": "Ada <ada@mail.test>",
    "http:a@//b@c": "http:c",
    "/?u=https%3A%2F%2Fada%3As3cret%40shop.test%2Fa%40b&c=d%40e": "/?u=https%3A%2F%2Fshop.test%2Fa%40b&c=d%40e",
    "http%3Aa%40%2F%2Fb%40c": "http%3Ac",
    "/?u=http%3a%2f%2fada%40shop.test": "/?u=http%3a%2f%2fshop.test",
    "/?u=https%3A%2F%2Fshop.test%2F%40ada": "/?u=https%3A%2F%2Fshop.test%2F%40ada",
    "/?u=https%3A%2F%2Fshop.test%3Fmail%3Dada%40mail.test": "/?u=https%3A%2F%2Fshop.test%3Fmail%3Dada%40mail.test",
    "/?mail=ada%40mail.test": "/?mail=ada%40mail.test",
    # Encoded in part: by Python's quote, with and without safe=":/", and by hand.
    "/?u=https%3A//ada%3As3cret%40shop.test/a": "/?u=https%3A//shop.test/a",
    "/?u=https://ada:s3cret%40shop.test/a": "/?u=https://shop.test/a",
    "/?u=https%3a%2f%2fada:s3cret@shop.test/a@b": "/?u=https%3a%2f%2fshop.test/a@b",
    "/?u=https://ada:s3cret%252540shop.test/a": "/?u=https://shop.test/a",
    "/?u=https:%2F%2Fada:s3cret@shop.test": "/?u=https:%2F%2Fshop.test",
    "/?u=https%3A%2F%2Fada%3Aa%26b%252Fc%40shop.test%2F": "/?u=https%3A%2F%2Fshop.test%2F",
    # In a URL that is in another.
    "/?u=%2Fr%3Fu%3Dhttps%253A%252F%252Fada%253As3cret%2540shop.test": "/?u=%2Fr%3Fu%3Dhttps%253A%252F%252Fshop.test",
    "https%25253A%25252F%25252Fada%252540shop.test": "https%25253A%25252F%25252Fshop.test",
    "/?u=https%253A%252F%252Fshop.test%252F%2540ada": "/?u=https%253A%252F%252Fshop.test%252F%2540ada",
    "/?u=ftp%3A%2F%2Fada%3As3cret%40files.test": "/?u=ftp%3A%2F%2Ffiles.test",
    "/?u=//ada:s3cret@shop.test/": "/?u=//shop.test/",
    '{"u":"//ada:s3cret@shop.test"}': '{"u":"//shop.test"}',
    "https://shop.test//a:b@c": "https://shop.test//a:b@c",
    "/?q=https%3A%2F%2Fshop.test+ask+ada%40mail.test": "/?q=https%3A%2F%2Fshop.test+ask+ada%40mail.test",
    "/?q=https%3A%2F%2Fshop.test%20ada%40mail.test": "/?q=https%3A%2F%2Fshop.test%20ada%40mail.test",
    "a,https%3A%2F%2Fshop.test,ada@mail.test": "a,https%3A%2F%2Fshop.test,ada@mail.test",
    # An @, and what is before it, as JSON and HTML write them.
    r'{"u":"https://ada:s3cret\u0040shop.test/a"}': '{"u":"https://shop.test/a"}',
    r'{"u":"https:\/\/ada:s3\u002bcret\U0040shop.test"}': r'{"u":"https:\/\/shop.test"}',
    r'{"u":"https\u003a\u002f\u002fada:s3cret\u0040shop.test"}': '{"u":"https://shop.test"}',
    r'{"log":"{\"u\":\"https://ada:s3cret\\u0040shop.test\"}"}': r'{"log":"{\"u\":\"https://shop.test\"}"}',
    r"https://ada:s3cret\x40shop.test": "https://shop.test",
    "<a href=https://ada:s3cret&#64;shop.test/>": "<a href=https://shop.test/>",
    "https://ada:s3cret&#x40;shop.test": "https://shop.test",
    "https:&#x2F;&#47;ada:s3cret&#0064;shop.test": "https://shop.test",
    "https://ada:s3cret&amp;#64;shop.test": "https://shop.test",
    "https&colon;&sol;&sol;ada:s3cret&commat;shop.test": "https://shop.test",
    r'{"m":"ada\u0040mail.test","u":"https:\/\/shop.test"}': r'{"m":"ada\u0040mail.test","u":"https:\/\/shop.test"}',
    "https://shop.test/?mail=ada&#64;mail.test": "https://shop.test/?mail=ada&#64;mail.test",
    "": "",
}


def test_credentials_are_taken_out_of_a_text_and_nothing_else() -> None:
    assert {text: without_credentials(text) for text in TEXTS} == TEXTS


@settings(max_examples=500, deadline=None)
@given(
    st.lists(
        st.sampled_from([*'http: // \\ @ a : 8 / ? " ftp:// [ # %3A %40 %2F & %253A %2540 %252F %25 + ='.split(), " "])
    )
)
@example(["http:", "http:", "http:", "//", "@", "%40"])
def test_what_is_left_stays(parts: list[str]) -> None:
    left = without_credentials("".join(parts))
    assert without_credentials(left) == left


def test_a_long_text_is_read_once() -> None:
    assert without_credentials("http:" * 200_000 + " @").endswith(" @")
    assert without_credentials("http:a@//" * 100_000) == "http:"


@pytest.mark.parametrize(
    ("asked", "stored"),
    [
        ("https://web.test/2020/https://ada:s3cret@shop.test/a", "https://web.test/2020/https://shop.test/a"),
        ("https://web.test/https:/ada:s3cret@shop.test/@ada", "https://web.test/https:/shop.test/@ada"),
        ("https://web.test/https%3A%2F%2Fada%40shop.test%2F@b", "https://web.test/https%3A%2F%2Fshop.test%2F@b"),
        ("https://ada:a%2Fb@web.test/a;v=1/http:b:c@../?d=1", "https://web.test/a;v=1/http:../?d=1"),
        ("https://web.test/a/http:b@/../c", "https://web.test/a/c"),
    ],
)
def test_a_url_in_the_path_of_another_has_no_credentials_either(asked: str, stored: str) -> None:
    (row,) = parse([line(url=asked)])
    assert row["url"] == stored


def test_stored_columns_have_no_credentials() -> None:
    urls = ["https://ada:s3cret@shop.test/a?next=http://ada:s3cret@b.test", "https://shop.test/a?next=http://b.test"]
    referrers = ["https://bob:hunter2@from.test/?q=a@b", "https://from.test/?q=a@b"]
    rows = parse([line(url=url, referrer=referrer) for url, referrer in zip(urls, referrers, strict=True)])
    assert {(row["url"], row["referrer"]) for row in rows} == {(urls[1], referrers[1])}
    (row,) = parse(
        [log_line("GET http://ada:s3cret@www.test/a HTTP/1.1", rest=REST.replace("from", "u:p@from"))], ACCESS
    )
    assert (row["url"], row["referrer"]) == ("http://www.test/a", "http://from.test/")


@pytest.mark.parametrize("written", ["@", "%40", "%2540", r"\x40", "&#64;", "&#x40;", r"\u0040"])
def test_no_stored_column_has_a_password_however_its_at_is_written(written: str) -> None:
    inside = f"https://ada:s3cret{written}b.test/"
    (row,) = parse([line(url=f"https://shop.test/a?next={inside}", referrer=inside)])
    assert row["url"].startswith("https://shop.test/a?next=https://"), row["url"]
    assert "s3cret" not in row["url"] + row["referrer"]
    (row,) = parse([log_line(rest=REST.replace("http://from.test/", inside))], ACCESS)
    assert "s3cret" not in row["referrer"]


def test_it_does_not_matter_where_in_a_column_a_text_stands() -> None:
    written = "https://frank:secret&commat;shop.example/"
    for before in range((1 << 16) - len(written), 1 << 16):
        texts = texts_without_credentials(pa.array(["a" * before, written]))
        assert texts.to_pylist()[1] == "https://shop.example/", before


@pytest.mark.parametrize("keep_raw", [False, True])
def test_quarantined_lines_have_no_credentials_unless_they_are_kept_as_they_came(keep_raw: bool) -> None:
    for raw, source in {
        line(url="https://ada:s3cret@shop.test:x/", ts="never"): WEB,
        log_line("GET http://ada:s3cret@www.test/a HTTP/1.1", time="never", rest=REST): ACCESS,
        rb'{"url": "https://ada:s3cret\u0040shop.test': WEB,
        rb'{"url": "https://ada:s3cret&#64;shop.test': WEB,
        b'{"url": "https://ada:s3cret@' + b"x" * 9000: WEB,
        b'{"pad": "' + b"x" * 8145 + b'", "url": "https://ada:s3cret@shop.test': WEB,
    }.items():
        (row,) = parse([raw], source.model_copy(update={"keep_raw": keep_raw}))
        assert row["reason"] is not None
        assert ("s3cret" in row["raw"] or "ada:" in row["raw"]) == keep_raw, raw[:40]


def test_a_line_is_known_again_by_what_is_kept_of_it() -> None:
    raw = log_line("GET http://ada:s3cret@www.test/a HTTP/1.1", time="never", rest=REST)
    (row,) = parse([raw], ACCESS)
    came, kept = line_digests(pa.chunked_array([[raw, row["raw"].encode()]]), ACCESS)
    assert came == kept


def test_examples_of_fields_have_no_credentials() -> None:
    source = Source(name="web", format="json", fields=WEB.fields)
    sampled = SampledLines(source, ("log_date", "log_hour"))
    sampled.add(arrivals(source, [lines_table([line(url="https://ada:s3cret@shop.test/a")])]))
    assert "s3cret" not in json.dumps(sampled.rows(), default=str)
