"""Formats of access logs, as a person has them."""

from __future__ import annotations

import pytest

from include.log_formats import NAMED_FORMATS, Variable, log_format

COMBINED = NAMED_FORMATS["combined"]


@pytest.mark.parametrize("name", NAMED_FORMATS)
def test_a_name_is_the_format_that_servers_ship(name: str) -> None:
    assert log_format(name) == log_format(NAMED_FORMATS[name])
    assert {"time", "status"} <= log_format(name).roles.keys()


@pytest.mark.parametrize(
    "text",
    [
        'LogFormat "%h %l %u %t \\"%r\\" %>s %b \\"%{Referer}i\\" \\"%{User-agent}i\\"" combined',
        'logformat "%h %l %u %t \\"%r\\" %>s %b \\"%{Referer}i\\" \\"%{User-agent}i\\""',
        'LogFormat  "%h %l %u %t \\"%r\\" %>s \\\n%b \\"%{Referer}i\\" \\"%{User-agent}i\\"" own-name',
        'LogFormat \'%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-agent}i"\' x',
        '"%h %l %u %t \\"%r\\" %>s %b \\"%{Referer}i\\" \\"%{User-agent}i\\""',
        '"%h %l %u %t \\"%r\\" %>s %b \\"%{Referer}i\\" \\"%{User-agent}i\\"" combined',
        '  %h %l %u %t \\"%r\\" %>s %b \\"%{Referer}i\\" \\"%{User-agent}i\\"\n',
    ],
)
def test_httpd_s_line_however_it_is_pasted(text: str) -> None:
    assert log_format(text) == log_format(COMBINED)


@pytest.mark.parametrize(
    "text",
    [
        "log_format main '$remote_addr [$time_local] ' '\"$request\" $status';",
        "log_format main\n  '$remote_addr [$time_local] '\n  '\"$request\" $status'\n;",
        'log_format main "$remote_addr [$time_local] " "\\"$request\\" $status";',
        "log_format main escape=default '$remote_addr [$time_local] \"$request\" $status';",
        "'$remote_addr [$time_local] ' '\"$request\" $status';",
        '$remote_addr [$time_local] "$request" $status',
        '${remote_addr} [${time_local}] "${request}" ${status}',
    ],
)
def test_nginx_s_line_however_it_is_pasted(text: str) -> None:
    assert log_format(text) == log_format('$remote_addr [$time_local] "$request" $status')


def test_a_format_of_quoted_texts_is_not_taken_for_pieces() -> None:
    assert log_format('"$time_local" "$request" "$remote_addr"').parts[0] == '"'


@pytest.mark.parametrize(("written", "escape"), [("", "default"), ("escape=json ", "json"), ("escape=none ", "none")])
def test_how_nginx_escapes(written: str, escape: str) -> None:
    assert log_format(f"log_format x {written}'$time_local $request';").escape == escape


@pytest.mark.parametrize(
    ("text", "kind", "pattern"),
    [
        ("%t %r", "access_log", ""),
        ("$time_local $request", "access_log", ""),
        ("$time_iso8601 $request", "iso8601", ""),
        ("$msec $request", "epoch_seconds", ""),
        ("%{sec}t %r", "epoch_seconds", ""),
        ("%{%s}t %r", "epoch_seconds", ""),
        ("%{sec}t.%{usec_frac}t %r", "epoch_seconds", ""),
        ("%{msec}t %r", "epoch_milliseconds", ""),
        ("%{end:usec}t %r", "epoch_microseconds", ""),
        ("[%{%d/%b/%Y %T}t.%{msec_frac}t %{%z}t] %r", "pattern", "%d/%b/%Y %H:%M:%S.%g %z"),
        ("[%{begin:%FT%T}t.%{usec_frac}t%{%z}t] %r", "pattern", "%Y-%m-%dT%H:%M:%S.%f%z"),
        ("%{%D %R %z}t %r", "pattern", "%m/%d/%y %H:%M %z"),
    ],
)
def test_how_times_are_written(text: str, kind: str, pattern: str) -> None:
    parsed_format = log_format(text)
    assert (parsed_format.time_format, parsed_format.pattern) == (kind, pattern)


@pytest.mark.parametrize(
    ("text", "roles"),
    [
        ("%t %h %v %V %{Host}i %r", {"host": "%{Host}i"}),
        ("$time_local $server_name $host $request", {"host": "$host"}),
        ("%t %r %s %>s", {"status": "%>s"}),
        ("$time_local $uri $request_uri $request", {"url": "$request_uri"}),
        ("$time_local $request $args $uri", {"request": "$request"}),
        ("$time_local $uri $args", {"path": "$uri", "query": "$args"}),
        ("%t %{c}a %a %r", {"client_address": "%a"}),
        ("$time_local $realip_remote_addr $remote_addr $request", {"client_address": "$remote_addr"}),
        ("%t %r %{x-forwarded-for}i %{X-Forwarded-Proto}i", {"forwarded_for": "%{x-forwarded-for}i"}),
        ("$time_local $request $scheme $http_x_forwarded_proto", {"scheme": "$http_x_forwarded_proto"}),
        ("%t %!200,304r %<s %400,501{User-agent}i", {"user_agent": "%400,501{User-agent}i", "status": "%<s"}),
    ],
)
def test_which_of_several_variables_counts(text: str, roles: dict[str, str]) -> None:
    names_by_role = {role: variable.name for role, variable in log_format(text).roles.items()}
    assert roles.items() <= names_by_role.items()
    names = [part.role for part in log_format(text).parts if isinstance(part, Variable) and part.role]
    assert len(names) == len(set(names)) == len(names_by_role)
    assert len(names_by_role.keys() & {"url", "request", "path"}) == 1
