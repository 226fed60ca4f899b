"""What is guessed of a log that no preset reads; a guess that says little is not sure."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from include.documents.terminal import print_document
from include.settings import Settings
from spark_jobs.inspection.field_guesses import fields_of_records, guess_fields
from spark_jobs.inspection.inspection import inspect
from spark_jobs.inspection.shown_inspection import inspection_document

PRESETS = Path(__file__).parent / "presets"


@pytest.mark.parametrize("name", ["ClientRequestReferer", "http_referrer", "referer_url", "ref"])
def test_where_a_visitor_came_from_is_not_the_page(name: str) -> None:
    record = {"ts": "2026-03-10T12:30:00Z", name: "https://from.example/", "page_path": "/a"}
    guesses = guess_fields(fields_of_records([record]), lambda _: "iso8601")
    assert guesses["url"] == "page_path"


@pytest.mark.parametrize("name", ["previous_url", "link_url", "landing_page_url", "$initial_current_url", "image_url"])
def test_another_page_is_not_the_one_that_was_asked_for(name: str) -> None:
    record = {"ts": "2026-03-10T12:30:00Z", name: "https://other.example/", "url": "/a"}
    assert guess_fields(fields_of_records([record]), lambda _: "iso8601")["url"] == "url"
    record["url"] = record.pop("url").replace("/a", "https://shop.example.com/a")
    assert guess_fields(fields_of_records([record]), lambda _: "iso8601")["url"] == "url"


@pytest.mark.parametrize("name", ["href", "link", "target"])
def test_where_a_click_goes_to_is_not_the_page_that_it_is_on(name: str) -> None:
    record = {"ts": "2026-03-10T12:30:00Z", name: "https://other.example/", "page": "/a"}
    assert guess_fields(fields_of_records([record]), lambda _: "iso8601")["url"] == "page"
    del record["page"]
    assert guess_fields(fields_of_records([record]), lambda _: "iso8601")["url"] == name


@pytest.mark.parametrize("host", ["ip-10-0-0-1", "ip-10-0-0-1.ec2.internal", "web-1.shop.internal:80", "nas.local"])
def test_a_machine_s_name_is_no_site(host: str) -> None:
    record = {"ts": "2026-03-10T12:30:00Z", "host": host, "path": "/a"}
    assert "host" not in guess_fields(fields_of_records([record]), lambda _: "iso8601")
    record["host"] = "international.example.com"
    assert guess_fields(fields_of_records([record]), lambda _: "iso8601")["host"] == "host"


@pytest.mark.parametrize(
    ("record", "host"),
    [
        # Elastic's Filebeat, Vector, Vercel: a machine or a deployment beside the site
        (
            {"host": {"hostname": "web1.corp.example"}, "url": {"path": "/a", "domain": "shop.example.com"}},
            "url.domain",
        ),
        ({"host": "ip-10-0-0-1.ec2.internal", "request": {"host": "b.example", "path": "/a"}}, "request.host"),
        ({"host": "my-app-abc.vercel.app", "proxy": {"host": "b.example", "path": "/a"}}, "proxy.host"),
        ({"host": "ip-10-0-0-1.ec2.internal", "http_host": "shop.example.com", "path": "/a"}, "http_host"),
        # pino's
        ({"hostname": "w.example", "req": {"url": "/a", "headers": {"host": "b.example"}}}, "req.headers.host"),
        # CloudFront's JSON
        ({"cs(Host)": "d1.cloudfront.net", "cs-uri-stem": "/a", "x-host-header": "b.example"}, "x-host-header"),
    ],
)
def test_the_host_beside_the_path_is_the_site(record: dict[str, object], host: str) -> None:
    record = {"time": "2026-03-10T12:30:00Z"} | record
    assert guess_fields(fields_of_records([record]), lambda _: "iso8601")["host"] == host


@pytest.mark.parametrize(
    ("path", "name", "value", "is_query"),
    [
        ("/a", "cs-uri-query", "q=1&b", True),
        ("/a", "query_string", "?q=1", True),
        ("/a", "query", "SELECT a FROM b WHERE c=1", False),
        ("/a", "query", "shoes", False),
        ("/a?q=1", "query", "q=1", False),
    ],
)
def test_a_query_beside_the_path_is_of_the_page(path: str, name: str, value: str, is_query: bool) -> None:
    record = {"time": "2026-03-10T12:30:00Z", "path": path, name: value}
    guesses = guess_fields(fields_of_records([record]), lambda _: "iso8601")
    assert guesses.get("query") == (name if is_query else None)


def test_the_name_of_a_browser_is_no_user_agent() -> None:
    record = {"time": "2026-03-10T12:30:00Z", "url": "/a", "$browser": "Chrome", "$raw_user_agent": "Mozilla/5.0 (X)"}
    guesses = guess_fields(fields_of_records([record]), lambda _: "iso8601")
    assert guesses["user_agent"] == "$raw_user_agent"


@pytest.mark.parametrize("request_line", ["GET /a HTTP/1.1", "GET /a HTTP/2", "POST /a b HTTP/2.0", "GET /a"])
def test_a_request_line_says_the_page(request_line: str) -> None:
    record = {"time": "2026-03-10T12:30:00Z", "request": request_line, "http_host": "shop.example.com"}
    guesses = guess_fields(fields_of_records([record]), lambda _: "iso8601")
    assert (guesses["request"], guesses["host"]) == ("request", "http_host")


@pytest.mark.parametrize(
    ("own", "client"),
    [("10.0.0.1", ["http_x_forwarded_for", "remote_addr"]), ("198.51.100.7", "remote_addr")],
)
def test_behind_proxies_the_client_is_whom_they_name(own: str, client: object) -> None:
    forwarded = ["203.0.113.5, 10.0.0.2", "-"]
    time = "2026-03-10T12:30:00Z"
    records = [{"time": time, "uri": "/a", "remote_addr": own, "http_x_forwarded_for": each} for each in forwarded]
    assert guess_fields(fields_of_records(records), lambda _: "iso8601")["client_address"] == client


X = '[10/Mar/2026:12:30:00 +0000] "GET /a HTTP/1.1" 200 5 "-" "Moz"'


@pytest.mark.parametrize(
    ("line", "preset"),
    [
        # Addresses that are nobody's, as in any test: the clients are in the list.
        (f'10.0.0.1 - - {X} "203.0.113.%d, 10.0.0.2"', "nginx_main"),
        # A word before a line is no host of it.
        (f"Mar 10 12:30:00 web1 nginx: 203.0.113.%d - - {X}", "combined"),
        (f"2026-03-10T12:30:00Z stdout F 203.0.113.%d - - {X}", "combined"),
    ],
)
def test_the_preset_that_finds_the_clients_is_meant(line: str, preset: str, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_text("".join(f"{line % number}\n" for number in range(9)))
    inspection = inspect(log, Settings.from_environment())
    assert (inspection.is_sure, inspection.settings.get("preset")) == (True, preset)


W3C = "#Fields: date time cs-method cs-uri-stem c-ip sc-status"


@pytest.mark.parametrize(
    ("header", "line"),
    [
        # The client behind the time that nginx took, under a header of one's own, or where the user stands.
        ("", f'10.0.0.1 - - {X} 0.005 "203.0.113.%d"'),
        ("", f'10.0.0.1 - - {X} 0.005 "2001:db8::%d"'),
        ("", f"10.0.0.1 - 203.0.113.%d {X}"),
        # A CDN is connected from addresses on the internet.
        ("", f'198.51.100.1 - - {X} "203.0.113.%d"'),
        (f"{W3C} OriginalIP\n", "2026-03-10 12:30:00 GET /a 10.0.0.1 200 203.0.113.%d:5011"),
    ],
)
def test_who_is_named_behind_a_proxy_and_not_taken_for_the_client_is_not_sure(
    header: str, line: str, tmp_path: Path
) -> None:
    log = tmp_path / "access.log"
    log.write_text(header + "".join(f"{line % number}\n" for number in range(9)))
    inspection = inspect(log, Settings.from_environment())
    assert not inspection.is_sure
    assert inspection.doubt.startswith("most lines have another address on the internet")


@pytest.mark.parametrize(
    "line",
    [
        f"10.0.0.1 - - {X}",
        # versions, URLs, and the server's own address
        '10.0.0.1 - - [10/Mar/2026:12:30:00 +0000] "GET /?ip=203.0.113.%d HTTP/1.1" 200 5 "http://203.0.113.%d/" '
        '"Mozilla/5.0 Chrome/120.0.0.%d"',
        f'10.0.0.1 - - {X} "198.51.100.1"',
        f'203.0.113.%d - - {X} "10.0.0.1:80"',
    ],
)
def test_what_names_no_other_clients_is_sure(line: str, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_text("".join(f"{line.replace('%d', str(number))}\n" for number in range(9)))
    assert inspect(log, Settings.from_environment()).is_sure


@pytest.mark.parametrize(
    "lines",
    [
        # a log of files
        [json.dumps({"time": f"2026-03-10T12:30:0{n}Z", "level": "info", "path": f"/tmp/{n}"}) for n in range(9)],
        # a table without a header: its first line is a click
        [f"HIT;{1773145800 + n};https://shop.example.com/{n};8.8.8.8" for n in range(9)],
        # whose address is which, and a host where OVH has the client
        [f"198.51.100.{n} 203.0.113.7 - {X}" for n in range(9)],
        [f"shop.example.com 203.0.113.{n} - {X}" for n in range(9)],
    ],
    ids=["a log of files", "no header", "two addresses", "swapped"],
)
def test_what_may_be_something_else_is_not_sure(lines: list[str], tmp_path: Path) -> None:
    log = tmp_path / "what.log"
    log.write_text("\n".join(lines) + "\n")
    assert not inspect(log, Settings.from_environment()).is_sure


@pytest.mark.parametrize("line", [f"web1 203.0.113.%d - - {X}", f"203.0.113.%d web1 - {X}"])
def test_a_word_for_a_host_may_be_the_name_of_a_machine(line: str, tmp_path: Path) -> None:
    log = tmp_path / "what.log"
    log.write_text("".join(f"{line % number}\n" for number in range(9)))
    inspection = inspect(log, Settings.from_environment())
    assert inspection.rows[0]["url"].endswith("://web1/a")
    assert not inspection.is_sure
    assert inspection.doubt.startswith("web1 beside the client is taken for the site, and may be the name of a machine")
    console = Console(width=200, record=True, file=StringIO())
    print_document(console, inspection_document(inspection, "what"))
    assert "not sure: web1 beside the client" in console.export_text()


@pytest.mark.parametrize(
    ("field", "host", "is_sure"),
    [
        ("hostname", "web-1.corp.example", False),
        ("host", "app03.dc2.example.com", False),
        ("host", "node1.k8s.example.com:8080", False),
        ("server_name", "web1.corp.example", False),
        ("host", "shop24.example", True),
        ("host", "www2.shop.example", True),
        ("hostname", "shop.example.com", True),
        ("http_host", "web-1.corp.example", True),
    ],
)
def test_a_numbered_host_may_be_the_name_of_a_machine(field: str, host: str, is_sure: bool, tmp_path: Path) -> None:
    log = tmp_path / "what.json"
    times = (f"2026-03-10T12:30:0{second}Z" for second in range(9))
    records = ({"time": time, field: host, "path": "/a", "status": 200, "user_agent": "Mozilla/5.0"} for time in times)
    log.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    inspection = inspect(log, Settings.from_environment())
    assert (inspection.rows[0]["url"], inspection.is_sure) == (f"https://{host}/a", is_sure)
    assert is_sure or inspection.doubt.startswith(f"{host} is taken for the site, and may be the name of a machine")


@pytest.mark.parametrize("host", ["web1:443", "localhost", "localhost:80", "web1:8080", "shop.example.com"])
def test_a_host_with_a_port_or_a_point_is_a_site(host: str, tmp_path: Path) -> None:
    log = tmp_path / "what.log"
    log.write_text("".join(f"{host} 203.0.113.{number} - - {X}\n" for number in range(9)))
    assert inspect(log, Settings.from_environment()).is_sure


def test_a_time_that_no_click_has_is_no_time(tmp_path: Path) -> None:
    log = tmp_path / "clicks.json"
    times = [1773145800000, *range(1773145801, 1773145821)]
    log.write_text("".join(f'{{"ts": {time}, "url": "http://shop.test/{time}", "ip": "8.8.8.8"}}\n' for time in times))
    inspection = inspect(log, Settings.from_environment())
    assert {outcome.reason: outcome.lines for outcome in inspection.outcomes} == {None: 20, "time_out_of_range": 1}


@pytest.mark.parametrize(
    "broken",
    ["2026-03-10T12:30:00Z,http://shop.test/p,Moz\rilla", f"2026-03-10T12:30:00Z,http://shop.test/{'p' * 200_000},a",
     '2026-03-10T12:30:00Z,http://shop.test/p,"Moz'],
    ids=["carriage return", "long", "open quote"],
)  # fmt: skip
def test_a_line_that_is_no_csv_hides_no_others(tmp_path: Path, broken: str) -> None:
    """Python's csv ends with an error at such a line, or takes all that follow for its last cell."""
    log = tmp_path / "clicks.csv"
    fine = [f"2026-03-10T12:30:00Z,http://shop.test/{number},a" for number in range(20)]
    log.write_text("\n".join(["at,page,agent", broken, *fine, ""]), newline="")
    inspection = inspect(log, Settings.from_environment())
    assert inspection.settings["format"] == "csv"
    assert inspection.urls >= 20


def test_an_empty_file_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty.log").touch()
    assert not inspect(tmp_path / "empty.log", Settings.from_environment()).is_sure


ACCESS = '8.8.8.8 - - [10/Mar/2026:12:30:00 +0000] "GET {}/p HTTP/1.1" 200 5 "-" "Mozilla/5.0"'


@pytest.mark.parametrize(
    ("line", "preset", "url"),
    [
        # Kubernetes' prefix was read as a virtual host of the name F.
        ("2026-03-10T12:30:00.1Z stdout F " + ACCESS.format(""), "combined", "http://localhost/p"),
        ("2026-03-10T12:30:00.1Z stdout F shop.example.com:80 " + ACCESS.format(""), "apache_vhosts",
         "http://shop.example.com/p"),
        # Varnish and proxies write whole URLs: no host stands in second place.
        (ACCESS.format("http://shop.example.com"), "combined", "http://shop.example.com/p"),
        (ACCESS.format("").replace(" - ", " shop.example.com ", 1), "ovh", "https://shop.example.com/p"),
    ],
)  # fmt: skip
def test_what_most_servers_write_is_known_as_such(line: str, preset: str, url: str, tmp_path: Path) -> None:
    log = tmp_path / "web.log"
    log.write_text(f"{line}\n" * 3)
    inspection = inspect(log, Settings.from_environment())
    assert inspection.settings["preset"] == preset
    assert {row["url"] for row in inspection.rows} == {url}


@pytest.mark.parametrize(
    "table",
    [
        "date,time,c_ip,uri,status\n2026-03-10,12:30:00,8.8.8.8,/p,200\n",
        "Datum;Uhrzeit;IP;Seite;Status\n10.03.2026;12:30:00;8.8.8.8;/p;200\n",
        "sep=;\nDatum;Uhrzeit;IP;Seite;Status\n10.03.2026;12:30:00;8.8.8.8;/p;200\n",
        "when\thost_ip\tpathname\tclient_ip\n2026-03-10 12:30:00\tx\t/p\t8.8.8.8\n",
        '{"day": "2026-03-10", "clock": "12:30:00", "ip": "8.8.8.8", "page": "/p"}\n',
    ],
)
def test_a_day_and_its_time_may_be_two_fields(table: str, tmp_path: Path) -> None:
    log = tmp_path / "web.log"
    log.write_text(table)
    inspection = inspect(log, Settings.from_environment())
    assert inspection.is_sure
    assert [(row["url"], row["clicked_at"], row["country_code"]) for row in inspection.rows] == [
        ("http://localhost/p", datetime(2026, 3, 10, 12, 30, tzinfo=UTC), "US")
    ]


@pytest.mark.parametrize(
    ("line", "look"),
    [
        ('{"owner": "1", "logEvents": [{"id": 1, "message": "a"}, {"id": 2, "message": "b"}]}', "jq -c '.logEvents[]'"),
        ('{"at": 1, "level": "info", "user": {"id": 7}}', "name them in [fields], of at, level, user.id"),
        ("#Fields: c-ip cs-uri-stem", "W3C extended, but #Fields: names no date and time"),
        ("2026/03/10 12:30:00 [error] 1#1: *1 open() failed", "an error log of nginx"),
        ("GET /p 200 5.123 ms - 512", "have no time"),
        ('[GIN] 2026/03/10 - 12:30:00 | 200 | 1.2ms | 8.8.8.8 | GET "/p"', "log_format of your server"),
    ],
)
def test_what_nothing_reads_is_said_to_be_what_it_is(line: str, look: str, tmp_path: Path) -> None:
    (tmp_path / "what.log").write_text(f"{line}\n" * 3)
    inspection = inspect(tmp_path / "what.log", Settings.from_environment())
    assert not inspection.settings
    assert look in inspection.look


def test_what_is_shown_fits_a_terminal() -> None:
    for name in ("haproxy", "iis", "snowplow", "caddy"):
        log = PRESETS / f"{name}.log"
        inspection = replace(inspect(log, Settings.from_environment()), file=Path(f"{name}.log"))
        console = Console(width=80, record=True, file=StringIO())
        print_document(console, inspection_document(inspection, name))
        lines = console.export_text().splitlines()
        assert [line for line in lines if len(line) > 80] == []
        assert len(lines) <= 24
