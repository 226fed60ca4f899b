"""Access logs in the formats of servers' own configuration: each line is the click that its writer meant."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Any

import pytest

from include.log_formats import log_format
from include.sources import Source
from spark_jobs.lines.parse_lines import click_times, parse_lines
from tests.lines.lines import TRACKING, lines_table
from tests.lines.oracle import moment_micros
from tests.lines.parsing import ACCESS, NOON, PREFIXES, parse
from tests.lines.random_access_logs import RandomLog
from tests.support.fault_rounds import SEED

TIME = "[01/Mar/2026:12:30:00 +0000]"
COMBINED = f'- - {TIME} "GET /a HTTP/1.1" 200 512 "-" "Moz"'
BASE = "https://www.test"
SHOP = "https://shop.example.com/a"


def read(lines: Sequence[str], log_format: str | None = None, base_url: str | None = BASE) -> list[dict[str, Any]]:
    """The rows of lines; landing finds the same times."""
    source = ACCESS.model_copy(update={"base_url": base_url})
    if log_format:
        source = Source(name="access", format="access", log_format=log_format, base_url=base_url)
    raw = [line.encode() for line in lines]
    rows = parse(raw, source)
    times = click_times(lines_table(raw), source).to_pylist()
    times_of_clicks = [time for row, time in zip(rows, times, strict=True) if row["reason"] is None]
    assert times_of_clicks == [moment_micros(row["clicked_at"]) for row in rows if row["reason"] is None]
    return rows


def test_what_another_program_puts_before_a_line_is_taken_off() -> None:
    clients = ["203.0.113.5", "2001:db8::7"]
    for host, url in (("", f"{BASE}/a"), ("shop.example.com:443 ", SHOP)):
        lines = [f"{prefix}{host}{client} {COMBINED}" for prefix in PREFIXES for client in clients]
        fields = [(row["reason"], row["client_address"], row["url"], row["user_agent"]) for row in read(lines)]
        assert fields == [(None, client, url, "Moz") for _ in PREFIXES for client in clients]


@pytest.mark.parametrize(
    ("virtual_host", "url"),
    [
        ("shop.example.com:443", SHOP),
        ("shop.example.com", SHOP),
        ("SHOP.example.com:80", SHOP),
        ("shop.example.com:8443", "https://shop.example.com:8443/a"),
        ("localhost:443", "https://localhost/a"),
        ("192.0.2.1:443", "https://192.0.2.1/a"),
        ("[2001:db8::1]:443", "https://[2001:db8::1]/a"),
    ],
)
def test_a_virtual_host_before_a_line_is_the_url_s(virtual_host: str, url: str) -> None:
    clients = ["203.0.113.5", "2001:db8::7", "203.0.113.5, 10.0.0.1"]
    rows = read([f"{virtual_host} {client} {COMBINED}" for client in clients])
    assert [(row["client_address"], row["url"]) for row in rows] == [(each.partition(",")[0], url) for each in clients]


NO_CLIENTS = [
    "shop.example.com:443 ",
    "web1 203.0.113.5 ",
    "web1 nginx: 203.0.113.5 ",
    "one two three 203.0.113.5 ",
    "203.0.113.5 198.51.100.7 ",
    "access.log:203.0.113.5 ",
    "access.log-203.0.113.5:17 ",
    "999.1.1.1 ",
    "12:30:00 ",
    "http://a/ ",
    " 203.0.113.5 ",
    "\x00\x00 203.0.113.5 ",
    "2026-03-10T12:30:00.123456789Z stdout P 203.0.113.5 ",
]


def test_what_is_before_a_line_or_in_the_client_s_place_and_not_known_makes_no_click() -> None:
    reasons = [row["reason"] for row in read([line + COMBINED for line in NO_CLIENTS])]
    assert reasons == [*["not_access_log"] * (len(NO_CLIENTS) - 2), "binary_record", "part_of_line"]


@pytest.mark.parametrize(
    ("texts", "referrer", "agent"),
    [
        ('"-" "Dalvik/2.1.0 (Linux; Alba 10" Build/LMY47I)"', None, 'Dalvik/2.1.0 (Linux; Alba 10" Build/LMY47I)'),
        ('"https://a.example/?q="x"" "Moz"', 'https://a.example/?q="x"', "Moz"),
        ('"-" ""Moz""', None, '"Moz"'),
        ('"-" "a "b" c"', None, 'a "b" c'),
        ('"-" "24" TV" 17', None, '24" TV'),
        ('""x" y" "Moz"', '"x" y', "Moz"),
        (r'"-" "a\"b" c"', None, r'a\"b" c'),
        ('"-" "a "b c" d" 17 -', None, 'a "b c" d'),
        ('"-" ""Moz (x)" 17', None, '"Moz (x)'),
        ('"-" "24" TV (27" too)"', None, '24" TV (27" too)'),
        ('"-" "Moz (7"; 10.1")" 17', None, 'Moz (7"; 10.1")'),
        ('"-" "ü" and ä" x"', None, 'ü" and ä" x'),
        ('"-" "24" TV" 17 k="v"', None, None),
        # What is behind it is no part of it.
        ('"-" "Moz" 0.1 [web] "x" k="v" {"a":"b"} x[0] [12 a]', None, "Moz"),
        # Where there are two ways to read it: which was meant?
        ('"-" "a" "b" c"', None, None),
        ('"x" " "y" "z"', None, None),
        # One is missing behind the text, or before it: the next text is no part of it.
        ('"-" "Moz 12 "web@docker"', None, None),
        ('"-" "Moz 12 "web@docker" 5ms', None, None),
        ('"-" "Moz 12 "web@docker" "http://10.0.0.1:80" 5ms', None, None),
        ('"-" "Moz 12 "-" "-" 0ms', None, None),
        ('"-" "Moz "203.0.113.9"', None, None),
        ('"-" "Moz\t"203.0.113.9"', None, None),
        ('"-" "Moz ""', None, None),
        ('"-" "Moz" 12 "web@docker "http://10.0.0.1:80" 5ms', None, None),
        ('"-" "Moz "x" 12 "web@docker"', None, None),
        ('"https://a.example/ "Moz" 12 "web@docker" "http://10.0.0.1:80" 5ms', None, None),
        ('"-" Moz" 12 "web@docker" "http://10.0.0.1:80" 5ms', None, None),
        ('"-" "Moz (x; y "web@docker"', None, None),
    ],
)
def test_quotation_marks_that_are_not_escaped(texts: str, referrer: str | None, agent: str | None) -> None:
    (row,) = read([f'203.0.113.5 - - {TIME} "GET /a HTTP/1.1" 200 512 {texts}'])
    assert (row["referrer"], row["user_agent"]) == (referrer, agent)
    assert row["reason"] == (None if agent else "not_access_log")


#: Traefik's text log: https://doc.traefik.io/traefik/observe/logs-and-access-logs/#access-logs
TRAEFIK = '%h - %u %t "%r" %>s %b "%{Referer}i" "%{User-agent}i" %{n}n "%{router}n" "%{server}n" %{took}n'


@pytest.mark.parametrize(
    ("texts", "agent"),
    [
        ('"-" "Moz" 12 "web@docker" "http://10.0.0.1:80" 5ms', "Moz"),
        ('"-" "Moz 12 "web@docker" "http://10.0.0.1:80" 5ms', None),
        ('"-" "Moz "x" 12 "web@docker" "http://10.0.0.1:80" 5ms', None),
        ('"-" "Moz 12 "web@docker" "-" 0ms', None),
    ],
)
def test_a_quotation_mark_that_is_missing_where_the_format_has_more_texts(texts: str, agent: str | None) -> None:
    (row,) = read([f'203.0.113.5 - - {TIME} "GET /a HTTP/1.1" 200 512 {texts}'], TRAEFIK)
    assert (row["reason"], row["user_agent"]) == (None if agent else "not_access_log", agent)


@pytest.mark.parametrize(
    ("line", "client"),
    [
        (f'unix: {COMBINED} "203.0.113.5, 10.0.0.3"', "203.0.113.5"),
        (f'unix: {COMBINED} "-"', None),
        (f'shop.example.com:443 unix: {COMBINED} "-"', None),
    ],
)
def test_a_socket_of_the_server_s_own_machine_is_nobody(line: str, client: str | None) -> None:
    (row,) = read([line], "main")
    assert (row["reason"], row["client_address"]) == (None, client)


FORMATS = [
    ("main", f'10.0.0.1 {COMBINED} "203.0.113.5, 10.0.0.3"', None),
    ("vhost_combined", f"shop.example.com:443 203.0.113.5 {COMBINED}", SHOP),
    ("vhost_common", f'shop.example.com 203.0.113.5 - - {TIME} "GET /a HTTP/1.1" 200 5', SHOP),
    ("combinedio", f"203.0.113.5 {COMBINED} 17 4711", None),
    (
        "nginx_proxy_manager",
        f'{TIME} - 200 200 - GET https shop.example.com "/a" [Client 203.0.113.5] [Length 12] [Gzip -] '
        '[Sent-to 10.0.0.2] "Moz" "-"',
        SHOP,
    ),
    (
        "ingress_nginx",
        f"203.0.113.5 {COMBINED} 123 0.004 [web-80] [] 10.0.0.1:80, 10.0.0.2:80 0, 13 0.001, 0.002 502, 200 ab12",
        None,
    ),
    # A directive in several pieces, as it stands in nginx.conf.
    (
        "log_format shop '$remote_addr - $remote_user [$time_local] '\n"
        "                '\"$scheme://$http_host$request_uri\" $status';",
        f'203.0.113.5 - - {TIME} "https://shop.example.com/a" 200',
        SHOP,
    ),
    (
        'log_format x escape=json "{\\"t\\":\\"$time_local\\",\\"r\\":\\"$remote_addr\\",\\"u\\":\\"$uri\\",'
        '\\"a\\":\\"$args\\",\\"h\\":\\"$host\\"}";',
        '{"t":"01/Mar/2026:12:30:00 +0000","r":"203.0.113.5","u":"/a","a":"b=\\"1","h":"shop.example.com"}',
        SHOP + "?b=%221",
    ),
    (
        r'LogFormat "%{Host}i %a %t \"%r\" %>s" own',
        f'shop.example.com 203.0.113.5 {TIME} "GET /a HTTP/1.1" 200',
        SHOP,
    ),
    (r"%h %l %u %t \"%r\" %>s %b", f'203.0.113.5 - - {TIME} "GET /a HTTP/1.1" 200 -', None),
    ("$remote_addr|$time_local|$request|$status", "203.0.113.5|01/Mar/2026:12:30:00 +0000|GET /a HTTP/1.1|200", None),
    (
        "$time_local\t$host\t$remote_addr\t$request\t$http_user_agent",
        "01/Mar/2026:12:30:00 +0000\tshop.example.com\t203.0.113.5\tGET /a HTTP/1.1\tMoz 5 (x)",
        SHOP,
    ),
    ("%h %t %r %>s", f"203.0.113.5 {TIME} GET /a HTTP/1.1 200", None),
    (
        "${http_x_forwarded_for} [$time_local] ${uri}$is_args$args",
        "203.0.113.5, 10.0.0.1 [01/Mar/2026:12:30:00 +0000] /a?b=1",
        "https://www.test/a?b=1",
    ),
    (
        '%t "%m %U%q %H" %{X-Forwarded-For}i',
        f'{TIME} "GET /a b?c=1 HTTP/1.1" 203.0.113.5',
        "https://www.test/a%20b?c=1",
    ),
    (
        '$host $remote_addr [$time_local] "$request_method $request_uri $server_protocol" $request_time',
        f'shop.example.com 203.0.113.5 {TIME} "GET /a HTTP/1.1" 0.1',
        SHOP,
    ),
    (
        "$remote_addr [$time_local] $request_uri $upstream_addr",
        f"2026-03-10T12:30:00Z 203.0.113.5, 10.0.0.1 {TIME} /a 10.0.0.1:80, 10.0.0.2:80",
        None,
    ),
    (
        "$remote_addr:$remote_port [$time_local] $server_name:$server_port$request_uri",
        "203.0.113.5:4711 [01/Mar/2026:12:30:00 +0000] shop.example.com:443/a",
        SHOP,
    ),
]


MAIN = """log_format main '$remote_addr - $remote_user [$time_local] "$request" '  # our own
    # without bytes
    '$status "$http_referer"';"""
PASTED = [
    (MAIN, f'203.0.113.5 - - {TIME} "GET /a HTTP/1.1" 200 "-"', None),
    (f"# nginx.conf\n{MAIN}  # the end", f'203.0.113.5 - - {TIME} "GET /a HTTP/1.1" 200 "-"', None),
    (f"{MAIN}\naccess_log /var/log/nginx/a.log main;", f'203.0.113.5 - - {TIME} "GET /a HTTP/1.1" 200 "-"', None),
    ("log_format bare $remote_addr|$time_iso8601|$request_uri;", "203.0.113.5|2026-03-01T12:30:00Z|/a", None),
    (
        r'CustomLog "logs/access.log" "%h %l %u %t \"%r\" %>s" env=!quiet',
        f'203.0.113.5 - - {TIME} "GET /a HTTP/1.1" 200',
        None,
    ),
    ("CustomLog ${APACHE_LOG_DIR}/access.log combined", f"203.0.113.5 {COMBINED}", None),
    ("CustomLog logs/shop.log vhost_combined env=!quiet", f"shop.example.com:443 203.0.113.5 {COMBINED}", SHOP),
    ('%V:%{local}p %h %t "%r"', f'shop.example.com:8443 203.0.113.5 {TIME} "GET /a HTTP/1.1"', f"{SHOP[:24]}:8443/a"),
    # The client by a name of one's own, where nothing else says it.
    ("$clientRealIp [$time_local] $request_uri", f"203.0.113.5 {TIME} /a", None),
    ("$remote_addr_anon - [$time_local] $request_uri", f"203.0.113.5 - {TIME} /a", None),
    ("$remote_addr $client_ip [$time_local] $request_uri", f"203.0.113.5 198.51.100.7 {TIME} /a", None),
    (
        "$remote_addr $upstream_addr $server_addr [$time_local] $request_uri",
        f"203.0.113.5 10.0.0.2:80 10.0.0.3 {TIME} /a",
        None,
    ),
    ("$http_x_cluster_client_ip $remote_addr [$time_local] $request_uri", f"203.0.113.5 10.0.0.1 {TIME} /a", None),
    ("%{REAL_IP}e %t %U", f"203.0.113.5 {TIME} /a", None),
    ("%{X-Azure-ClientIP}i %h %t %U", f"203.0.113.5 10.0.0.1 {TIME} /a", None),
    ("$remote_addr to $upstream_addr: [$time_local] $request_uri", f"203.0.113.5 to 10.0.0.2:80: {TIME} /a", None),
    # Texts with blanks.
    ("$remote_addr $geoip_city [$time_local] $request_uri", f"203.0.113.5 Bad Homburg {TIME} /a", None),
    ("$remote_addr $ssl_client_s_dn [$time_local] $request_uri", f"203.0.113.5 CN=Ada L,O=X {TIME} /a", None),
]


@pytest.mark.parametrize("more", ["log_format b '$request';", "'$request'; log_format"])
def test_a_configuration_with_more_than_a_format_is_refused(more: str) -> None:
    with pytest.raises(ValueError, match="expected one directive alone"):
        log_format(f"{MAIN}\n{more}")


@pytest.mark.parametrize(("log_format", "line", "url"), [*FORMATS, *PASTED])
def test_a_line_in_the_server_s_own_format(log_format: str, line: str, url: str | None) -> None:
    (row,) = read([line], log_format)
    assert (row["reason"], row["client_address"], row["url"]) == (None, "203.0.113.5", url or f"{BASE}/a")


@pytest.mark.parametrize(
    "log_format", ["vhost_combined", "vhost_common", '%v %h %t "%r" %>s', '$host $remote_addr [$time_local] "$request"']
)
def test_a_line_without_the_host_of_its_format_makes_no_click(log_format: str) -> None:
    lines = [f"{prefix}203.0.113.5 {COMBINED}" for prefix in ("", *PREFIXES)]
    for line, row in zip(lines, read(lines, log_format), strict=True):
        assert row["reason"] in ("not_access_log", "bad_url"), line


def test_a_host_in_the_client_s_place_and_the_client_in_its_is_no_line() -> None:
    reasons = {
        "shop.example.com 203.0.113.5": "not_access_log",
        "shop.example.com 2001:db8::7": "not_access_log",
        "203.0.113.5 192.0.2.1": None,
        "dsl-77.isp.example 192.0.2.1:443": None,
        "dsl-77.isp.example shop.example.com": None,
        "203.0.113.5 -": None,
        "- 192.0.2.1": None,
    }
    lines = [f'{client_and_host} {TIME} "GET /a HTTP/1.1" 200' for client_and_host in reasons]
    rows = read(lines, '$remote_addr $host [$time_local] "$request"')
    assert dict(zip(reasons, (row["reason"] for row in rows), strict=True)) == reasons


def test_clients_are_masked_wherever_a_format_has_them() -> None:
    broken = f'- - {TIME} "GET /a HTTP/1.1" 200 512 "-" "Moz'
    kept_of = {
        f"shop.example.com:443 dsl-77.isp.example {broken}": "- - ",
        f"Mar 10 12:30:00 web1 nginx: dsl-77.isp.example {broken}": "- 10 12:30:00 web1 nginx: - ",
        f"203.0.113.77, 198.51.100.7 {broken}": "- 198.51.100.0 ",
        f"2026-03-10T12:30:00Z stdout F 203.0.113.77 {broken}": "- stdout F 203.0.113.0 ",
    }
    assert [row["raw"] for row in read(list(kept_of))] == [kept + broken for kept in kept_of.values()]
    raw = read([f'{TIME} "GET /a HTTP/1.1" dsl-77.isp.example "dsl-78.isp.example" "x'], '%t "%r" %h %>s')[0]["raw"]
    assert raw == f'{TIME} "GET /a HTTP/1.1" - "-" "x'


@pytest.mark.parametrize(
    ("log_format", "text", "zone"),
    [
        ("$time_iso8601 $request", "2026-03-01T13:30:00+01:00", None),
        ('"$time_iso8601" $request', '"2026-03-01T12:30:00+00:00"', None),
        ("$msec $request", "1772368200.000", None),
        ("%{sec}t.%{usec_frac}t %r", "1772368200.000000", None),
        ("%{msec}t %r", "1772368200000", None),
        ("%{begin:usec}t %r", "1772368200000000", None),
        ("[%{%d/%b/%Y %T}t.%{msec_frac}t %{%z}t] %r", "[01/Mar/2026 13:30:00.000 +0100]", None),
        ("%{%FT%T%z}t %r", "2026-03-01T12:30:00+0000", None),
        ("%{%c}t %r", "Sun Mar  1 13:30:00 2026", "Europe/Berlin"),
        ("[%{%Y-%m-%d %H:%M:%S}t] %r", "[2026-03-01 13:30:00]", "Europe/Berlin"),
        ("[%{%T}t] [%{%d/%b/%Y}t] %r", "[13:30:00] [01/Mar/2026]", "Europe/Berlin"),
        ("[%{%F}t][%{%T %z}t] %r", "[2026-03-01][13:30:00 +0100]", None),
    ],
)
def test_times_as_a_format_writes_them(log_format: str, text: str, zone: str | None) -> None:
    source = Source(name="times", format="access", log_format=log_format, base_url=BASE, time_zone=zone)
    fine, bad = parse(
        [f"{text} GET /a HTTP/1.1".encode(), f"{text.replace('2', '9')} GET /a HTTP/1.1".encode()], source
    )
    assert (fine["reason"], fine["clicked_at"], fine["url"]) == (None, NOON, f"{BASE}/a")
    assert bad["reason"] in ("bad_time", "time_out_of_range")


def _same(log: RandomLog, lines: int) -> None:
    base_url = None if log.has_host else "https://base.example"
    source = Source(name="random", format="access", log_format=log.log_format, base_url=base_url)
    written = [log.line() for _ in range(lines)]
    table = lines_table([line.text.encode() for line in written])
    times = click_times(table, source).to_pylist()
    for line, row, time in zip(written, parse_lines(table, source, TRACKING).to_pylist(), times, strict=True):
        fields = (row["reason"], row["url"], row["client_address"], row["user_agent"], row["status"], row["clicked_at"])
        expected = (None, line.url, line.client, line.user_agent, line.status, line.clicked_at)
        assert fields == expected, (log.log_format, line.text)
        assert time == moment_micros(line.clicked_at)


@pytest.mark.faults
@pytest.mark.parametrize(("logs", "lines"), [(25, 20), pytest.param(200, 500, marks=pytest.mark.slow)])
def test_lines_of_random_formats(logs: int, lines: int) -> None:
    print(f"CLICKMILL_FAULT_SEED={SEED}")
    for number in range(logs):
        _same(RandomLog(random.Random(f"{SEED} {number}")), lines)


def test_half_a_line_and_another_are_none() -> None:
    cuts = ["GET /a HT", "GET /a HTTP/1.1", 'GET /a HTTP/1.1" 200 5', 'GET /a HTTP/1.1" 200 5 "-" "Mo']
    rows = read([f'203.0.113.5 - - {TIME} "{cut}198.51.100.7 {COMBINED}' for cut in cuts])
    assert [row["reason"] for row in rows] == ["not_access_log"] * len(cuts)


@pytest.mark.parametrize("log_format", [*dict.fromkeys(format_ for format_, _, _ in FORMATS), "combined", "common"])
def test_two_lines_in_one_are_no_click(log_format: str) -> None:
    by_format = {format_: line for format_, line, _ in FORMATS}
    line = by_format.get(log_format, f"203.0.113.5 {COMBINED}"[: None if log_format == "combined" else -12])
    between = ("\f", " ", "\r", "\v", "\t", "", "\x1c ", "\u2028", "\0", " x ")
    lines = [f"{first}{text}{line}" for first in (line, line[:-1], line[: len(line) // 2]) for text in between]
    assert {row["reason"] for row in read(lines, log_format)} <= {"not_access_log", "bad_time", "bad_url"}


@pytest.mark.parametrize(
    ("log_format", "line"),
    [
        ("$msec $remote_addr $request_uri", "1772368200.123 203.0.113.5 /a"),
        ("[$msec] $remote_addr $request_uri", "[1772368200.123] 203.0.113.5 /a"),
        ("$remote_addr|$time_iso8601|$request_uri", "203.0.113.5|2026-03-01T12:30:00+00:00|/a"),
        ("$time_iso8601 $remote_addr $request_uri $http_user_agent", "2026-03-01T12:30:00+00:00 203.0.113.5 /a M 5"),
        ('%{%FT%T%z}t %h %{User-Agent}i "%r"', '2026-03-01T12:30:00+0000 203.0.113.5 M 5 "GET /a HTTP/1.1"'),
    ],
)
def test_a_time_is_another_line_s_only_where_a_line_would_have_it(log_format: str, line: str) -> None:
    (time,) = re.findall(r"\d{10}\.\d+|2026-[^ |]*", line)
    lines = [line, line.replace("/a", f"/a?from={time}&at=[{time}]"), f"{line} {line}", f"{line}\f{line}"]
    assert [row["reason"] for row in read(lines, log_format)] == [None, None, "not_access_log", "not_access_log"]


def test_a_line_cut_within_its_first_bytes_and_another_are_none() -> None:
    syslog = "Mar 10 12:30:00 web1 nginx: "
    reasons = {
        "203.0.113.5 - John Smith": None,
        "203.0.113.5 - J. Smith": None,
        "203.0.113.5 - Dr. John R. Smith": None,
        "203.0.113.5 - joe@mail.example": None,
        "203.0.113.5 - SHOP\\\\Joe Smith - admin": None,
        "203.0.113.5 - a:b c": None,
        "203.0.113.5 - 198.51.100.7 - -": "not_access_log",
        "203.0.113.5 - 198.51.100.7 - frank": "not_access_log",
        "203.0.113.5 - 198.51.100.7 one frank": "not_access_log",
        "203.0.113.5 - fra198.51.100.7 - -": "not_access_log",
        "203.0.113.5 - -198.51.100.7 - -": "not_access_log",
        "203.0.113.5 - 2001:db8::7 - -": "not_access_log",
        "203.0.113.5 - - 2001:db8::7 - -": "not_access_log",
        "203.0.113.5 - host.isp.example - -": "not_access_log",
        "203.0.113.5198.51.100.7 - -": "not_access_log",
        f"{syslog}203.0.113.5 - {syslog}198.51.100.7 - -": "not_access_log",
        f"{syslog}203.0.113.5 - J. Smith": None,
    }
    with_hosts = {f"shop.example.com:443 {before}": of for before, of in reasons.items() if before[0].isdigit()}
    for name, expected in {"combined": reasons | with_hosts, "vhost_combined": with_hosts}.items():
        rows = read([f'{before} {TIME} "GET /a HTTP/1.1" 200 512 "-" "Moz"' for before in expected], name)
        outcomes = {before: (row["reason"], row["client_address"]) for before, row in zip(expected, rows, strict=True)}
        assert outcomes == {before: (of, None if of else "203.0.113.5") for before, of in expected.items()}


@pytest.mark.parametrize(
    ("target", "url"),
    [
        ("/search?q=#22shoes#22", "/search?q=%22shoes%22"),
        ("/caf#C3#A9", "/caf%C3%A9"),
        ("/a#23top", "/a%23top"),
        ("/a#top", "/a"),  # none of HAProxy's, whose letters are large
        ("/a%20b", "/a%20b"),
    ],
)
@pytest.mark.parametrize("prefix", ["", "Mar  1 12:30:00 lb1 haproxy[14389]: "])
def test_what_haproxy_escapes_is_no_fragment(prefix: str, target: str, url: str) -> None:
    source = Source.model_validate({"name": "lb", "preset": "haproxy", "base_url": BASE})
    line = (
        f"{prefix}203.0.113.5:33317 [01/Mar/2026:12:30:00.655] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- "
        f'1/1/1/1/0 0/0 {{shop|}} {{}} "GET {target} HTTP/1.1"'
    )
    (row,) = parse([line.encode()], source)
    assert (row["reason"], row["url"], row["client_address"]) == (None, f"{BASE}{url}", "203.0.113.5")
