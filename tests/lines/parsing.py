"""Lines in each format, their sources, and what parse_lines makes of them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from include.source_fields import LineFields
from include.sources import Source
from spark_jobs.lines.parse_lines import PARSED, parse_lines
from tests.lines.lines import TRACKING, lines_table

FIELDS = {"event_id": "event_id", "time": "ts", "url": "url", "country": "geo.country", "visitor": "visitor_id",
          "referrer": "referrer", "user_agent": "user_agent", "status": "status"}  # fmt: skip
WEB = Source(name="web", format="json", fields=LineFields(**FIELDS))
ACCESS = Source(name="access", format="combined", base_url="http://www.test")
COMMON = Source(name="access", format="common", base_url="http://www.test")
NOON = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
ISO = "2026-03-01T12:30:00Z"


def parse(raw: list[bytes], source: Source = WEB, first_line: int = 2) -> list[dict[str, Any]]:
    """What parse_lines makes of lines of the log hour 2026-03-01T12, in their order."""
    table = parse_lines(lines_table(raw, first_line), source, TRACKING)
    assert table.schema == PARSED
    assert table["row_id"].to_pylist() == list(range(len(raw)))
    return table.to_pylist()


def line(**fields: Any) -> bytes:
    """A JSON line; a field given as None is left out."""
    record = {"event_id": "e", "ts": ISO, "url": "http://shop.test/"} | fields
    return json.dumps({name: value for name, value in record.items() if value is not None}).encode()


def with_value(value: bytes) -> bytes:
    """A JSON line with a value in it that nobody maps, as it is."""
    return line()[:-1] + b', "other": ' + value + b"}"


def log_line(
    request: str = "GET /a HTTP/1.1", time: str = "01/Mar/2026:12:30:00 +0000", status: str = "200", rest: str = ""
) -> bytes:
    return f'198.51.100.7 - frank [{time}] "{request}" {status} 2326{rest}'.encode()


REST = ' "http://from.test/" "curl/8"'
#: What other programs put before a line.
PREFIXES = [
    # syslog: RFC 3164, with and without what may be left out
    "<13>Mar 10 12:30:00 web1 nginx: ",
    "<190>Mar  1 12:30:00 nginx: ",
    "Mar 10 12:30:00 web1 nginx[4711]: ",
    "Mar 10 12:30:00 10.1.2.3 nginx: ",
    "Mar 10 12:30:00 2001:db8::5 access-log: ",
    "Dec 10 12:30:00 web1 ",
    "Feb 10 2026 12:30:00 web1 httpd[1]: ",
    "<190>nginx: ",
    # RFC 5424, and its octets in a stream
    "<165>1 2026-03-10T12:30:00.003Z web1 nginx 12 - - ",
    '<165>1 2026-03-10T12:30:00+01:00 web1 nginx - ID47 [x@1 a="b]" c="\\""][y@2] ',
    "123 <165>1 - web1 nginx 12 - - \ufeff",
    # rsyslog's and journalctl's files
    "2026-03-10T12:30:00.123450+00:00 web1 nginx: ",
    "2026-03-10T12:30:00+0100 web1 nginx[12]: ",
    # Heroku's, with `heroku logs` and from a drain
    "2026-03-10T12:30:00.123456+00:00 app[web.1]: ",
    "<190>1 2026-03-10T12:30:00.123456+00:00 host app web.1 - ",
    # Docker, Compose, Kubernetes, kubectl
    "2026-03-10T12:30:00.123456789Z ",
    "2026-03-10T12:30:00.123456789Z stdout F ",
    "2026-03-10T12:30:00.123456789+02:00 stderr F ",
    "web-1  | ",
    "shop_web.1 | 2026-03-10T12:30:00Z ",
    "web.1.x7k@node1    | ",
    "0|web      | ",
    "12:30:00 web.1  | ",
    "\x1b[36mweb_1  |\x1b[0m ",
    # Go's log
    "2026/03/10 12:30:00 ",
    "[pod/nginx-5d59d67564-x/nginx] ",
    "0|web      | 2026-03-10T12:30:00: ",
    "2026-03-10T12:30:00Z stdout F Mar 10 12:30:00 web1 nginx: ",
    "web-1  | <165>1 2026-03-10T12:30:00Z web1 nginx - - - ",
    # journalctl's other times, and those of multilog and s6-log
    "Tue 2026-03-10 12:30:00 UTC web1 nginx[12]: ",
    "1773145800.123456 web1 nginx[12]: ",
    "[12345.678901] web1 nginx[12]: ",
    "@400000004d9d3f0c1a2b3c4d ",
    "2026-03-10 12:30:00.123456789  ",
    # Cloud Foundry, Fly, CloudWatch, Fastly, and a tag without its colon
    "   2026-03-10T12:30:00.12+0000 [APP/PROC/WEB/0] OUT ",
    "2026-03-10T12:30:00Z app[148ed] fra [info] ",
    "2026-03-10T12:30:00.123000+00:00 ecs/web/0123abcd ",
    "<134>2026-03-10T12:30:00Z cache-fra19144 shop[12345]: ",
    "<133>Mar 10 12:30:00 web1 shop-access ",
    # a time, and a host
    "2026-03-10 12:30:00 ",
    "2026-03-10 12:30:00,123 web1 ",
    "1741609800.123 ",
]
