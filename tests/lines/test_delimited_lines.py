"""Delimited lines of each format: what of them is a click, and why the others are not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from include.sources import Source
from spark_jobs.lines.extraction import take_apart
from spark_jobs.lines.formats import extraction_of
from spark_jobs.lines.headers import with_headers
from spark_jobs.lines.parse_lines import click_times, parse_lines
from tests.lines.lines import TRACKING, lines_table

DAY = "2026-03-01"
_OLD = {"oldest_hours": 24 * 365 * 30}


def source(format_: str, **settings: Any) -> Source:
    return Source.model_validate({"name": "test", "format": format_} | settings)


def parsed(of: Source, *lines: str | bytes, first_line: int = 1) -> list[dict[str, Any]]:
    raw = [line.encode() if isinstance(line, str) else line for line in lines]
    (table,) = with_headers([lines_table(raw, first_line)], of)
    rows = parse_lines(table, of, TRACKING).to_pylist()
    times = click_times(table, of).to_pylist()
    for row, time in zip(rows, times, strict=True):
        assert row["reason"] or time == int(row["clicked_at"].timestamp() * 1_000_000)
    return rows


def outcomes(rows: list[dict[str, Any]]) -> list[str]:
    """The reason of each line, or its URL."""
    return [row["reason"] or row["url"] for row in rows]


HEADER = "left_out_header"
CSV = source("csv", fields={"time": "when", "url": "page", "client_address": "client", "user_agent": "agent"})


@pytest.mark.parametrize(
    ("cell", "agent"),
    {
        "plain": ("curl/8", "curl/8"),
        "quoted": ('"curl/8"', "curl/8"),
        "delimiters": ('"a, b,c"', "a, b,c"),
        "doubled quotes": ('"say ""hi"", twice"', 'say "hi", twice'),
        "only quotes": ('""""', '"'),
        "quotes and delimiters": ('""","""', '","'),
        "empty": ("", None),
        "empty in quotes": ('""', None),
        "none": ("-", None),
        "none in quotes": ('"-"', None),
        "blanks": (" a b ", " a b "),
        "letters": ("Ünï😀", "Ünï😀"),
        "a backslash": (r'"C:\\x\"', r"C:\\x" + "\\"),
        "a tab": ('"a\tb"', "a\tb"),
    }.values(),
)
def test_columns_of_a_csv_are_quoted_as_rfc_4180_has_it(cell: str, agent: str | None) -> None:
    header, line = "when,agent,page,client", f"{DAY}T12:30:00Z,{cell},http://shop.test/a,198.51.100.7\r\n"
    _, row = parsed(CSV, header, line)
    assert (row["reason"], row["user_agent"], row["client_address"]) == (None, agent, "198.51.100.7")


@pytest.mark.parametrize(
    ("line", "reason"),
    {
        "a line break in quotes": ('"2026-03-01T12:30:00Z,http://shop.test/a', "broken_quotes"),
        "its second half": ('rest",2026-03-01T12:30:00Z,http://shop.test/a', "broken_quotes"),
        "text after quotes": ('"2026"x,http://shop.test/a', "broken_quotes"),
        "a quote in a column": ('2026-03-01T12:30:00Z,http://shop.test/"a', "broken_quotes"),
        "what stands for others": ('2026-03-01T12:30:00Z,"http://shop.test/\x1f"', "broken_quotes"),
        "too few": ("2026-03-01T12:30:00Z", "wrong_columns"),
        "too many": ("2026-03-01T12:30:00Z,http://shop.test/a,", "wrong_columns"),
        "too many in quotes": ('"2026-03-01T12:30:00Z","http://shop.test/a","b"', "wrong_columns"),
        "another delimiter": ("2026-03-01T12:30:00Z;http://shop.test/a", "wrong_columns"),
        "no time": (",http://shop.test/a", "missing_time"),
        "no URL": ("2026-03-01T12:30:00Z,", "missing_url"),
        "blank": ("  ", "blank"),
        "blank without a column": ("", "blank"),
        "the header again": ("when,page", HEADER),
        "its columns in another order": ("page,when", "bad_time"),
    }.values(),
)
def test_a_line_of_a_csv_that_is_no_click_says_why(line: str, reason: str) -> None:
    of = source("csv", fields={"time": "when", "url": "page"})
    rows = parsed(of, "when,page\n", f"{line}\n", f"{DAY}T12:30:00Z,http://shop.test/b\n")
    assert outcomes(rows) == [HEADER, reason, "http://shop.test/b"]


@pytest.mark.parametrize("format_", ["csv", "tsv", "logfmt"])
@pytest.mark.parametrize("first", ["", "-", '""', '"-"', '" "'])
def test_of_several_columns_the_first_that_has_a_value_counts(format_: str, first: str) -> None:
    is_logfmt = format_ == "logfmt"
    names, between = ["when", "page", "proxy", "client"], {"csv": ",", "tsv": "\t", "logfmt": " "}[format_]
    fields = {"time": "when", "url": "page", "client_address": ["proxy", "client"]}
    of = source(format_, fields=fields, **({} if is_logfmt else {"columns": names}))
    cells = [f"{DAY}T12:30:00Z", "http://shop.test/a", first, "198.51.100.7"]
    text = between.join(f"{name}={cell}" if is_logfmt else cell for name, cell in zip(names, cells, strict=True))
    (row,) = parsed(of, text)
    assert (row["reason"], row["client_address"]) == (None, "198.51.100.7")


CLICK = f"{DAY}T12:30:00Z,http://shop.test/a"


@pytest.mark.parametrize(
    ("settings", "lines", "expected"),
    {
        "no header is there": ({}, [CLICK], ["no_header"]),
        "a header of others": ({}, ["a,b", CLICK], ["no_header", "no_header"]),
        "a header with blanks": ({}, [" t , u ", CLICK], [HEADER, "http://shop.test/a"]),
        "a quoted header": ({}, ['"t","u"', CLICK], [HEADER, "http://shop.test/a"]),
        "names by place": ({"columns": ["t", "u"]}, [CLICK, CLICK], ["http://shop.test/a"] * 2),
        "names by place, after a line": (
            {"columns": ["t", "u"], "header": True},
            ["Zeit,Seite", CLICK],
            [HEADER, "http://shop.test/a"],
        ),
        "columns without a name": ({"columns": ["t", "", "u", ""]}, [f"{DAY}T12:30:00Z,,http://shop.test/a,x"],
                                   ["http://shop.test/a"]),
        "semicolons": ({"delimiter": ";", "quote": "'"}, ["t;u", f"{DAY}T12:30:00Z;'http://shop.test/;''a'"],
                       [HEADER, "http://shop.test/;'a"]),
        "bars": ({"delimiter": "|"}, ["t|u", f"{DAY}T12:30:00Z|http://shop.test/a"], [HEADER, "http://shop.test/a"]),
        "no quotes": ({"quote": ""}, ["t,u", f'{DAY}T12:30:00Z,http://shop.test/"a'], [HEADER, "http://shop.test/%22a"]),
        "escapes": ({"escape": "\\"}, ["t,u", rf'"{DAY}T12:30:00Z","http://shop.test/?a=\"b\",\\"'],
                    [HEADER, "http://shop.test/?a=%22b%22,\\"]),
    }.values(),
)  # fmt: skip
def test_a_csv_has_its_header_delimiter_and_quotes(
    settings: dict[str, Any], lines: list[str], expected: list[str]
) -> None:
    of = source("csv", fields={"time": "t", "url": "u"}, **settings)
    assert outcomes(parsed(of, *lines)) == expected


def test_a_tsv_has_the_url_in_parts_and_the_time_in_two_columns() -> None:
    fields = {"date": "d", "time": "t", "host": "h", "path": ["p", "q"], "client_address": "c"}
    of = source("tsv", fields=fields)
    rows = parsed(of, "d\tt\th\tp\tq\tc\t\n", f'{DAY}\t12:30:01\tshop.test\t/a,"b\t\t2001:DB8::1\t\n'.replace('"b', ""),
                  f'{DAY}\t12:30:02\tshop.test\t-\t/c\t"a\tb"\t\n')  # fmt: skip
    assert outcomes(rows) == [HEADER, "https://shop.test/a,", "https://shop.test/c"]
    assert [row["client_address"] for row in rows[1:]] == ["2001:db8::1", "a\tb"]


@pytest.mark.parametrize(
    ("line", "url", "agent"),
    {
        "plain": ("ts=2026-03-01T12:30:00Z url=http://shop.test/a agent=curl", "http://shop.test/a", "curl"),
        "quoted": ('ts="2026-03-01 12:30:00" url="http://shop.test/a b" agent="a  b"', "http://shop.test/a%20b",
                   "a  b"),
        "escaped": (r'ts=2026-03-01T12:30:00Z agent="say \"hi\" \\" url=http://shop.test/', "http://shop.test/",
                    'say "hi" \\'),
        "in a value": ('agent="url=http://x.test/ ts=1" ts=2026-03-01T12:30:00Z url=http://shop.test/',
                       "http://shop.test/", "url=http://x.test/ ts=1"),
        "a role's name in a value": ('agent="of url=http://x.test/ by" ts=2026-03-01T12:30:00Z url=http://shop.test/',
                                     "http://shop.test/", "of url=http://x.test/ by"),
        "a longer name": ("xurl=http://x.test/ url=http://shop.test/ ts=2026-03-01T12:30:00Z", "http://shop.test/",
                          None),
        "names alone, = in values": ("debug ts=2026-03-01T12:30:00Z url=http://shop.test/?a=b&c= agent=",
                                     "http://shop.test/?a=b&c=", None),
        "twice": ("url=http://shop.test/1 url=http://shop.test/2 ts=2026-03-01T12:30:00Z agent=-", "http://shop.test/1",
                  None),
        "tabs": ("url=http://shop.test/1\tagent=\"a\tb\"\t ts=2026-03-01T12:30:00Z", "http://shop.test/1", "a\tb"),
        "no words": ("GET /index.html", "not_logfmt", None),
        "an open quote": ('ts=2026-03-01T12:30:00Z url="http://shop.test/ agent=a', "not_logfmt", None),
        "a quote in a value": ('ts=2026-03-01T12:30:00Z url=http://shop.test/ agent=a"b"', "not_logfmt", None),
        "an agent without quotes": ("ts=2026-03-01T12:30:00Z url=http://shop.test/ agent=Mozilla/5.0 (X11; Linux)",
                                    "not_logfmt", None),
        "a name alone": ("url=http://shop.test/a debug ts=2026-03-01T12:30:00Z", "http://shop.test/a", None),
        "an agent of several words": ("ts=2026-03-01T12:30:00Z url=http://shop.test/ agent=My Agent (X11) a=b",
                                      "not_logfmt", None),
        "other quotes": ("url=http://shop.test/ agent='Moz X' ts=2026-03-01T12:30:00Z", "not_logfmt", None),
        "what goes on is no role's": ("ts=2026-03-01T12:30:00Z msg=it started url=http://shop.test/ agent=a",
                                      "http://shop.test/", "a"),
        "a name alone behind quotes": ('ts=2026-03-01T12:30:00Z agent="a b" debug url=http://shop.test/',
                                       "http://shop.test/", "a b"),
        "JSON": ('{"ts":"2026-03-01T12:30:00Z"}', "not_logfmt", None),
        "no URL": ("ts=2026-03-01T12:30:00Z", "missing_url", None),
        "no time": ("url=http://shop.test/", "missing_time", None),
        "blank": ("", "blank", None),
    }.values(),
)  # fmt: skip
def test_logfmt_is_names_and_values(line: str, url: str, agent: str | None) -> None:
    of = source("logfmt", fields={"time": "ts", "url": "url", "user_agent": "agent"})
    (row,) = parsed(of, line + "\n")
    assert (outcomes([row]), row["user_agent"]) == ([url], agent)


IIS = "#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port c-ip cs(User-Agent) sc-status"
CLOUDFRONT = (
    "#Fields: date time x-edge-location c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) cs(User-Agent) "
    "cs-uri-query x-host-header cs-protocol"
)


@pytest.mark.parametrize(
    ("header", "line", "expected"),
    {
        "IIS": (
            IIS,
            f"{DAY} 12:30:00 10.0.0.1 GET /a b=c 443 198.51.100.7 Mozilla/5.0+(compatible;++http://bot.test/) 200",
            {"url": "https://shop.test/a?b=c", "user_agent": "Mozilla/5.0 (compatible; +http://bot.test/)",
             "status": 200},
        ),
        "no query, no agent": (
            IIS,
            f"{DAY} 12:30:00 10.0.0.1 GET /a - 80 198.51.100.7 - 404",
            {"url": "https://shop.test/a", "user_agent": None, "status": 404},
        ),
        "IPv6": (IIS, f"{DAY} 12:30:00 ::1 GET / - 80 2001:DB8::7%4 x 200", {"client_address": "2001:db8::7"}),
        "a quote in an agent": (IIS, f'{DAY} 12:30:00 ::1 GET / - 80 ::1 a+"b+c 200', {"user_agent": 'a "b c'}),
        "quotes": (
            IIS,
            f'"{DAY}" "12:30:00.123" 10.0.0.1 GET /a "" 443 "198.51.100.7" "Mozilla ""5""  (x+y)" " 200"',
            {"user_agent": 'Mozilla "5"  (x+y)', "client_address": "198.51.100.7", "status": 200},
        ),
        "Apple's own escapes": (
            IIS, f"{DAY} 12:30:00 ::1 GET / - 80 ::1 My%20App/1+CFNetwork/9 200",
            {"user_agent": "My%20App/1 CFNetwork/9"},
        ),
        "per cent for blanks": (IIS, f"{DAY} 12:30:00 ::1 GET / - 80 ::1 My%20App/1%2B 200",
                                {"user_agent": "My App/1+"}),
        "several blanks": (
            "#FIELDS:  date   time  CS-URI-STEM ", f" {DAY}   12:30:00  /a ", {"url": "https://shop.test/a"},
        ),
        "hosts": (
            "#Fields: date time cs-host cs-uri-stem s-port",
            f"{DAY} 12:30:00 other.test /a 80",
            {"url": "https://other.test/a"},
        ),
        "a whole URL": ("#Fields: date time cs-uri", f"{DAY} 12:30:00 http://other.test/a?b", {"url": "http://other.test/a?b"}),
        "a URL without a scheme": (
            "#Fields: date time cs-uri cs-uri-query s-port", f"{DAY} 12:30:00 other.test/a c=d 443",
            {"url": "https://other.test/a?c=d"},
        ),
        "CloudFront": (
            CLOUDFRONT,
            f"{DAY}\t12:30:00\tFRA2\t198.51.100.7\tGET\td1.cloudfront.net\t/a%2520b.html\t200\thttps://from.test/?q=%2541\t"
            "Mozilla/5.0%2520(X11;%2520x)%2520+a\tq=%257B\twww.test\thttp",
            {"url": "http://www.test/a%20b.html?q=%7B", "user_agent": "Mozilla/5.0 (X11; x) +a",
             "referrer": "https://from.test/?q=%41"},
        ),
        "CloudFront, encoded once": (
            CLOUDFRONT,
            f"{DAY}\t12:30:00\tFRA2\t198.51.100.7\tGET\td1.cloudfront.net\t/%C3%A9\t200\t-\tSlackbot%201.0%20(+x)\t-\t-\twss",
            {"url": "https://d1.cloudfront.net/%C3%A9", "user_agent": "Slackbot 1.0 (+x)", "referrer": None},
        ),
        "CloudFront, bytes that are no text": (
            CLOUDFRONT, f"{DAY}\t12:30:00\tF\t::1\tGET\ta.test\t/\t200\t-\tx%ff%20y\t-\t-\thttps",
            {"user_agent": "x%ff%20y"},
        ),
    }.values(),
)  # fmt: skip
def test_w3c_is_read_as_its_servers_mean_it(header: str, line: str, expected: dict[str, Any]) -> None:
    of = source("w3c", base_url="https://shop.test")
    *comments, row = parsed(of, "#Software: x", "", "#Version: 1.0", header + "\r\n", line + "\r\n")
    assert outcomes(comments) == [HEADER] * 4
    assert row["reason"] is None
    assert {name: row[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("line", "reason"),
    {
        "too few": (f"{DAY} 12:30:00 /a", "wrong_columns"),
        "cut off": (f"{DAY} 12:3", "wrong_columns"),
        "too many": (f"{DAY} 12:30:00 /a 200 x", "wrong_columns"),
        "an open quote": (f'{DAY} 12:30:00 "/a 200', "broken_quotes"),
        "no time": (f"{DAY} - /a 200", "missing_time"),
        "no date": ("- 12:30:00 /a 200", "missing_time"),
        "another time": (f"{DAY} noon /a 200", "bad_time"),
        "no path": (f"{DAY} 12:30:00 - 200", "missing_url"),
        "blank": ("", "blank"),
        "a comment": ("# nothing", HEADER),
    }.values(),
)
def test_a_line_of_w3c_that_is_no_click_says_why(line: str, reason: str) -> None:
    header = "#Fields: date time cs-uri-stem sc-status"
    rows = parsed(source("w3c", base_url="http://b.test"), header, f"{DAY} 12:30:00 /b 200", line)
    assert outcomes(rows) == [HEADER, "http://b.test/b", reason]


@pytest.mark.parametrize(
    ("own", "forwarded", "client"),
    [
        ("192.168.7.63", "203.0.113.5", "203.0.113.5"),
        ("192.168.7.63", "203.0.113.5:4711,+10.0.0.1", "203.0.113.5"),
        ("192.168.7.63", "10.0.0.9,%20203.0.113.5", "203.0.113.5"),
        ("192.168.7.63", "-", "192.168.7.63"),
        ("198.51.100.7", "203.0.113.5", "198.51.100.7"),
    ],
)
def test_behind_a_balancer_the_client_of_w3c_is_whom_it_names(own: str, forwarded: str, client: str) -> None:
    header = "#Fields: date time cs-uri-stem c-ip X-Forwarded-For"
    lines = [header, f"{DAY} 12:30:00 /b {own} {forwarded}", f"{DAY} 12:30:00 /b 198.51.100.7 -"]
    _, *rows = parsed(source("w3c", base_url="http://b.test"), *lines)
    assert [row["client_address"] for row in rows] == [client, "198.51.100.7"]
    listed = source("w3c", base_url="http://b.test", fields={"client_address": "c-ip"})
    assert parsed(listed, *lines)[1]["client_address"] == own


def test_w3c_without_fields_has_no_header_unless_its_columns_are_listed() -> None:
    line = f"{DAY} 12:30:00 /b 200"
    assert outcomes(parsed(source("w3c", base_url="http://b.test"), "#Version: 1.0", line)) == [HEADER, "no_header"]
    listed = source("w3c", base_url="http://b.test", columns=["date", "time", "cs-uri-stem", "sc-status"])
    assert outcomes(parsed(listed, line, "#Fields: date time x cs-uri-stem", line.replace("200", "/c"))) == [
        "http://b.test/b", HEADER, "http://b.test/c",
    ]  # fmt: skip


ALB = ('https 2026-03-01T12:30:00.186641Z app/my-lb/50dc 192.0.2.1:2817 10.0.0.1:80 0.086 0.048 0.037 200 200 0 57 '
       '"GET https://www.test:443/a?b=c HTTP/1.1" "curl/7.46.0" ECDHE TLSv1.2 arn:x "Root" "www.test"')  # fmt: skip
ALB_REST = '"arn:y" 0 2026-03-01T12:30:00.186641Z "forward" "-" "-" "10.0.0.1:80" "200" "-" "-"'
ELB = ALB[6:].partition(" arn:x")[0]
S3 = ("79a5 bucket1 [01/Mar/2026:12:30:00 +0000] 192.0.2.3 79a5 3E57 WEBSITE.GET.OBJECT a.html "
      '"GET /a.html?x=1 HTTP/1.1" 200 - 113 - 7 - "-" "S3Console/0.4 x" - s9lz= SigV4 ECDHE AuthHeader')  # fmt: skip


@pytest.mark.parametrize(
    ("format_", "line", "expected"),
    {
        "ALB": ("alb", ALB, {"url": "https://www.test/a?b=c", "client_address": "192.0.2.1",
                             "user_agent": "curl/7.46.0", "status": 200}),
        "ALB, more columns": ("alb", f'{ALB} "-" 0 2026-03-01T12:30:00Z "a b" "-" "-" "x"',
                              {"url": "https://www.test/a?b=c"}),
        "ALB, IPv6": ("alb", ALB.replace("192.0.2.1:", "[2001:db8::1]:"), {"client_address": "2001:db8::1"}),
        "ALB, no brackets": ("alb", ALB.replace("192.0.2.1:", "2001:db8::1:"), {"client_address": "2001:db8::1"}),
        "ALB, escapes": ("alb", ALB.replace("b=c", r"b=\x22c"), {"url": "https://www.test/a?b=%22c"}),
        "ALB, an escaped quotation mark": (
            "alb", ALB.replace("curl/7.46.0", r"a \"b\" c"), {"user_agent": r"a \"b\" c", "url": "https://www.test/a?b=c"}),
        "ALB, quotation marks": ("alb", f"{ALB} {ALB_REST}".replace("curl/7.46.0", 'a "b" c').replace("b=c", 'b="c'),
                                 {"user_agent": 'a "b" c', "url": "https://www.test/a?b=%22c"}),
        "ALB, quotation marks with an end of the request": (
            "alb", ALB.replace("curl/7.46.0", 'x "a" HTTP/1.1" "e'), {"reason": "broken_quotes"}),
        "S3, texts side by side": ("s3", S3.replace("S3Console/0.4 x", 'a" "b'), {"reason": "wrong_columns"}),
        "ELB, more than it has": ("elb", f"{ELB} x", {"reason": "wrong_columns"}),
        "ELB, quotation marks": ("elb", ELB.replace("curl/7.46.0", 'a "b" c'), {"user_agent": 'a "b" c'}),
        "S3, quotation marks": ("s3", f"{S3} www.test TLSV1.2 - -".replace("S3Console/0.4 x", 'a "b" c "').replace(
            '"-"', '"http://a.test/"b""'), {"user_agent": 'a "b" c "', "referrer": 'http://a.test/"b"'}),
        "S3, a quotation mark before a blank": ("s3", S3.replace("S3Console/0.4 x", 'a " b'), {"user_agent": 'a " b'}),
        "ALB, no request": ("alb", ALB.replace("GET https://www.test:443/a?b=c HTTP/1.1", "- http://www.test:80- -"),
                            {"reason": "missing_url"}),
        "ELB, no request": ("elb", ELB.replace("GET https://www.test:443/a?b=c HTTP/1.1", "- - - "),
                            {"reason": "missing_url"}),
        "ALB, cut off": ("alb", ALB[:100], {"reason": "wrong_columns"}),
        "ALB, cut off in quotes": ("alb", ALB[:150], {"reason": "broken_quotes"}),
        "ELB": ("elb", ELB, {"url": "https://www.test/a?b=c", "user_agent": "curl/7.46.0"}),
        "ELB without an agent": ("elb", ELB.partition(' "curl')[0], {"url": "https://www.test/a?b=c",
                                                                              "user_agent": None}),
        "S3": ("s3", S3, {"url": "http://s3.test/a.html?x=1", "user_agent": "S3Console/0.4 x", "referrer": None}),
        "S3 with a host": ("s3", f"{S3} www.test TLSV1.2 - -", {"url": "http://www.test/a.html?x=1"}),
        "S3, its own work": ("s3", S3.replace('"GET /a.html?x=1 HTTP/1.1"', "-"), {"reason": "missing_url"}),
        "S3, another line": ("s3", ALB, {"reason": "wrong_columns"}),
    }.values(),
)  # fmt: skip
def test_access_logs_of_aws_need_no_columns(format_: str, line: str, expected: dict[str, Any]) -> None:
    (row,) = parsed(source(format_, **({"base_url": "http://s3.test"} if format_ == "s3" else {})), line + "\n")
    assert {name: row[name] for name in expected} == expected
    assert row["reason"] == expected.get("reason")


@pytest.mark.parametrize(
    "line", [ELB, ALB, f"{ALB} {ALB_REST}", f"{ALB} {ALB_REST} TID_12", f'{ALB} {ALB_REST} TID_12 "-" "-" "a b"']
)
@pytest.mark.parametrize(
    "agent",
    [
        *('A" "B" "C', '"A" "B" "C"', 'A" "B', 'a" b "c', 'a "b" "c" d', 'a "b c" "d', '" "', '""', '"', 'a""b', "a"),
        *('a" x y "b', 'a" - - - "b', '-" - - "x', 'a" - - arn:x "Root" "b', 'a" "-" "-" "b', 'x "a" b c d "e'),
        'a" - - - "-" "-" "-" 0 2026 "-" "-" "-" "-" "-" "-" "b',
    ],
)
def test_an_agent_of_aws_with_quotation_marks_is_read_as_a_whole(line: str, agent: str) -> None:
    request, last = "GET https://www.test:443/a?b=c HTTP/1.1", "http://www.test:80/b - HTTP/2.0"
    lines = [line.replace("curl/7.46.0", agent), line.replace(request, f"GET {last}").replace("curl/7.46.0", agent)]
    rows = parsed(source("elb" if line is ELB else "alb"), *lines)
    assert [(row["reason"], row["user_agent"]) for row in rows] == [(None, agent)] * 2
    assert outcomes(rows) == ["https://www.test/a?b=c", "http://www.test/b%20-"]


@pytest.mark.parametrize("last", ["", " www.test TLSV1.2 - -", " www.test TLSV1.2 - - new"])
@pytest.mark.parametrize(
    "agent", ['A" "B" "C', 'A" "B', 'a" b "c', 'a" x y z "b', 'a" - - - "b', '-" - - "x', '" "', '""']
)
def test_an_agent_of_s3_with_quotation_marks_is_whole_or_none_and_the_host_what_it_is(agent: str, last: str) -> None:
    line = f"{S3}{last}".replace("S3Console/0.4 x", agent)
    (row,) = parsed(source("s3", base_url="http://s3.test"), line)
    host = "www.test" if last else "s3.test"
    assert row["reason"] or (row["user_agent"], row["url"]) == (agent, f"http://{host}/a.html?x=1")
    assert (row["reason"] is not None) == ('" "' in agent)


@pytest.mark.parametrize(("format_", "line"), [("alb", ALB), ("elb", ELB), ("s3", f"{S3} www.test TLSv1.2 - -")])
def test_lines_as_aws_writes_them_are_taken_apart_by_patterns(format_: str, line: str) -> None:
    of = source(format_, base_url="http://s3.test")
    fast = replace(extraction_of(of), otherwise=None)
    lines = [line, line + "\r\n", line.replace(" ", "  ", 1), line.replace(" ", "\t", 1), line + '"', line[:60]]
    columns = take_apart(pa.array(lines), fast, lambda its: f"SELECT {its.is_formed} AS is_formed FROM taken")
    assert columns["is_formed"].to_pylist() == [True, True, False, False, False, False]
    assert outcomes(parsed(of, *lines)[:3]) == outcomes(parsed(of, line)) * 3


@pytest.mark.parametrize(
    ("of", "lines", "raw"),
    {
        "CSV": (CSV, ["when,agent,page,client", "x,203.0.113.9,y,pc-7.example.test"], "x,203.0.113.0,y,-"),
        "CSV, quoted": (CSV, ["client,when,agent,page", '"7, ""Ann""",,"203.0.113.9",y'], '"-",,"203.0.113.0",y'),
        "CSV, an address": (CSV, ["client,when,agent,page", '"203.0.113.9",x,,y'], '"203.0.113.0",x,,y'),
        "CSV, no client": (CSV, ["when,agent,page,client", "x,a,y,-"], "x,a,y,-"),
        "CSV, no header": (CSV, ["a,b", "x,203.0.113.9"], "x,203.0.113.0"),
        "W3C": (source("w3c", base_url="http://b.test"), ["#Fields: date time C-IP cs-uri-stem", "x  y pc-7 /"],
                "x  y - /"),
        "ALB": (source("alb"), ["", ALB.replace("2026-", "x").replace("192.0.2.1:2817", "2001:db8:1:2::9")],
                ALB.replace("2026-", "x").replace("192.0.2.1:2817", "2001:db8:1::").replace("10.0.0.1:", "10.0.0.0:")),
        "logfmt": (source("logfmt", fields={"time": "t", "url": "u", "client_address": "ip"}),
                   ["", 't=1 ip="pc 7" u=a ip=b'], 't=1 ip="-" u=a ip=-'),
    }.values(),
)  # fmt: skip
def test_clients_of_quarantined_lines_are_masked(of: Source, lines: list[str], raw: str) -> None:
    *_, row = parsed(of, *lines)
    assert row["raw"] == raw
    *_, kept = parsed(of.model_copy(update={"keep_raw": True}), *lines)
    assert kept["raw"] == lines[-1]


@pytest.mark.parametrize(
    ("settings", "lines"),
    {
        "CSV": ({"format": "csv", "fields": {"time": "t", "url": "u"}}, ["t,u", CLICK]),
        "CSV by place": ({"format": "csv", "fields": {"time": "t", "url": "u"}, "columns": ["t", "u"]}, [CLICK]),
        "logfmt": ({"format": "logfmt", "fields": {"time": "ts", "url": "u"}}, [f"ts={DAY}T12:30:00Z u=http://x.test/"]),
        "logfmt in quotes": (
            {"format": "logfmt", "fields": {"time": "ts", "url": "u"}}, [f'ts="{DAY} 12:30:00" u="http://x.test/"']),
        "IIS": ({"format": "w3c", "base_url": "https://x.test"}, [IIS, f"{DAY} 12:30:00 ::1 GET / - 80 ::1 x 200"]),
        "ALB": ({"format": "alb"}, [ALB]),
        "ALB of today": ({"format": "alb"}, [f'{ALB} "-" 0 {DAY}T12:30:00Z "forward" "-" "-" "x" "200"']),
        "ELB": ({"format": "elb"}, [ELB]),
        "S3": ({"format": "s3"}, [f"{S3} www.test TLSv1.2 - -"]),
    }.values(),
)  # fmt: skip
def test_two_lines_in_one_are_no_click(settings: dict[str, Any], lines: list[str]) -> None:
    *before, line = lines
    of = Source.model_validate({"name": "test", **settings})
    assert parsed(of, *lines)[-1]["reason"] is None
    between = ["\f", " ", "\r", "\v", "\t", " \x1c", "\0 ", " x ", '"-"']
    pairs = [(first, text) for first in (line, line[:-1]) for text in between]
    two = [f"{first}{text}{line}" for first, text in pairs]
    two += [f"{first}{text}{line}".replace("curl/", 'a "b" c').replace("Console/", 'a "b" c') for first, text in pairs]
    assert None not in [row["reason"] for row in parsed(of, *before, *two)]
