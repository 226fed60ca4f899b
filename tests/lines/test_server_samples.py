"""Lines of servers with all of their columns, written after their documentation: what is a click, and what is none."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lines.test_delimited_lines import parsed, source

# https://learn.microsoft.com/iis/configuration/system.applicationhost/sites/sitedefaults/logfile
IIS = [
    "#Software: Microsoft Internet Information Services 10.0",
    "#Version: 1.0",
    "#Date: 2026-03-01 12:00:01",
    "#Fields: date time s-sitename s-computername s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip "
    "cs-version cs(User-Agent) cs(Cookie) cs(Referer) cs-host sc-status sc-substatus sc-win32-status sc-bytes cs-bytes "
    "time-taken",
]
IIS_LINE = (
    "2026-03-01 12:30:00 W3SVC1 WEB01 10.0.0.4 GET /catalog/item.aspx id=42&color=sea+green 443 - 198.51.100.7 "
    "HTTP/2.0 {agent} ASP.NET_SessionId=x;+theme=dark https://www.example.com/?q=a+b www.example.com 200 0 0 512 38 4"
)
# https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/standard-logs-reference.html
CLOUDFRONT = [
    "#Version: 1.0",
    "#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) "
    "cs(User-Agent) cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id x-host-header cs-protocol cs-bytes "
    "time-taken x-forwarded-for ssl-protocol ssl-cipher x-edge-response-result-type cs-protocol-version fle-status "
    "fle-encrypted-fields c-port time-to-first-byte x-edge-detailed-result-type sc-content-type sc-content-len "
    "sc-range-start sc-range-end",
]
CLOUDFRONT_LINE = "\t".join(
    "2026-03-01 12:30:00 FRA60-P1 2390 2001:db8::7 GET d2.cloudfront.net /docs/my%2520plan.pdf 206 "
    "https://www.example.com/a?q=%2541 {agent} q=1%252B1 - Hit 9oT== www.example.com https 145 0.002 - TLSv1.3 "
    "TLS_AES_128_GCM_SHA256 Hit HTTP/2.0 - - 11040 0.002 Hit text/html 78 - -".split(" ")
)
# https://docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-access-logs.html: a client that
# ended the TLS handshake, or sent no request, leaves ``-`` nearly everywhere.
ALB_LINE = (
    "{type} 2026-03-01T12:30:00.000000Z app/shop/50dc6c495c0c9188 198.51.100.7:46532 - -1 -1 -1 {status} - 0 0 "
    '"{request}" "{agent}" - - - "-" "{domain}" "-" - 2026-03-01T12:29:59.999000Z "-" "-" "-" "-" "-" "-" "-"'
)
# https://docs.aws.amazon.com/AmazonS3/latest/userguide/LogFormat.html: what S3 does by itself has no request.
S3_OWN = (
    "79a59df900b949e5 site [01/Mar/2026:12:30:00 +0000] - AmazonS3 7B4A0FABBEXAMPLE S3.EXPIRE.OBJECT old/a.html - - - "
    '- 1024 - - - "-" - - - - - - - - -'
)
S3_LINE = (
    "79a59df900b949e5 site [01/Mar/2026:12:30:00 +0000] 198.51.100.7 arn:aws:sts::1:assumed-role/web/i 3E57427F33A5 "
    'REST.GET.OBJECT my%2520plan.pdf "GET /my%20plan.pdf?versionId=x HTTP/1.1" 200 - 2390 2390 14 13 "-" "{agent}" - '
    "s9lzHYrFp76ZVxRcpX9= SigV4 ECDHE-RSA-AES128-GCM-SHA256 AuthHeader site.s3.eu-central-1.amazonaws.com TLSv1.3 - -"
)


@pytest.mark.parametrize(
    ("format_", "lines", "expected"),
    {
        "IIS, blanks as +": (
            "w3c", [*IIS, IIS_LINE.format(agent="Mozilla/5.0+(compatible;+bot/1;++https://bot.example/)")],
            {"user_agent": "Mozilla/5.0 (compatible; bot/1; +https://bot.example/)",
             "url": "https://www.example.com/catalog/item.aspx?id=42&color=sea+green",
             "referrer": "https://www.example.com/?q=a+b", "client_address": "198.51.100.7"},
        ),
        "CloudFront, encoded twice": (
            "w3c",
            [*CLOUDFRONT, CLOUDFRONT_LINE.format(agent="Mozilla/5.0%2520(iPhone;%2520CPU%2520OS%252017)%25C3%25A9")],
            {"user_agent": "Mozilla/5.0 (iPhone; CPU OS 17)é", "url": "https://www.example.com/docs/my%20plan.pdf?q=1%2B1",
             "client_address": "2001:db8::7", "status": 206, "referrer": "https://www.example.com/a?q=%41"},
        ),
        "CloudFront, encoded once": (
            "w3c", [*CLOUDFRONT, CLOUDFRONT_LINE.format(agent="Mozilla/5.0%20(X11;%20%22x%22)%20100%25")],
            {"user_agent": 'Mozilla/5.0 (X11; "x") 100%'},
        ),
        "ALB, a TLS error": (
            "alb", [ALB_LINE.format(type="https", status="-", request="- - - ", agent="-", domain="-")],
            {"reason": "missing_url"},
        ),
        "ALB, no request": (
            "alb", [ALB_LINE.format(type="http", status="400", request="- http://shop-1.elb.amazonaws.com:80- -",
                                    agent="-", domain="-")],
            {"reason": "missing_url"},
        ),
        "ALB, redirected by itself": (
            "alb", [ALB_LINE.format(type="h2", status="301", request="GET https://www.example.com:443/a HTTP/2.0",
                                    agent="curl/8.5.0", domain="www.example.com")],
            {"url": "https://www.example.com/a", "status": 301, "user_agent": "curl/8.5.0",
             "client_address": "198.51.100.7"},
        ),
        "S3, its own work": ("s3", [S3_OWN], {"reason": "missing_url"}),
        "S3": (
            "s3", [S3_LINE.format(agent="aws-sdk-java/2.21 Linux/5.10")],
            {"url": "https://site.s3.eu-central-1.amazonaws.com/my%20plan.pdf?versionId=x", "status": 200,
             "referrer": None, "user_agent": "aws-sdk-java/2.21 Linux/5.10"},
        ),
    }.values(),
)  # fmt: skip
def test_lines_with_all_columns(format_: str, lines: list[str], expected: dict[str, Any]) -> None:
    *headers, row = parsed(source(format_, base_url="https://www.example.com"), *(f"{line}\n" for line in lines))
    assert {header["reason"] for header in headers} <= {"left_out_header"}
    assert {name: row[name] for name in {"reason": None} | expected} == {"reason": None} | expected
