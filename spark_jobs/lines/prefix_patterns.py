r"""Regular expressions (RE2) of what stands at a line's beginning: clients, and what other programs put before them."""

from __future__ import annotations

#: What a server may write for a client, whether or not it is one.
ADDRESS = r"[0-9A-Fa-f]*[.:][0-9A-Fa-f:.]+"
_IN_ANY_FORM = rf"(?:\[?{ADDRESS}(?:%[\w.~-]+)?\]?(?::\d{{1,5}})?)"
#: RFC 7239, section 6: who is not known, or not to be known; and whom nginx has from a socket of its own machine.
UNKNOWN = r"(?:unknown|-|unix:|_[\w.-]+)"
#: A list of them, one at least.
ADDRESSES = rf"(?:{UNKNOWN}, ?)*{_IN_ANY_FORM}(?:, ?(?:{_IN_ANY_FORM}|{UNKNOWN}))*"
#: A host.
NAME = r"[\w.-]*[A-Za-z_][\w.-]*"
#: A server's name before a client: without a port it has a point, or it would be any word.
VIRTUAL_HOST = rf"(?:[\w-]+\.[\w.-]*[A-Za-z_][\w.-]*|{NAME}:\d{{1,5}}|[\d.]+:(?:80|443)|\[[0-9A-Fa-f:]+\]:\d{{1,5}})"
_MONTH_AND_DAY = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +\d{1,2}(?: \d{4})?"
_ISO_8601 = r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?: ?(?:Z|[+-]\d\d:?\d\d))?"
_TAG = r"[\w./-]+(?:\[[\w.-]+\])?:"
_DATA = r'(?:-|(?:\[(?:[^\]\\"]|\\.|"(?:[^"\\]|\\.)*")*\])+)'
#: What comes before a line: the names of Docker Compose (with colours, too), foreman, PM2 and kubectl; syslog's RFC
#: 3164 and 5424, each with its octets (RFC 6587) or without, and what rsyslog, journalctl and Heroku write (whose RFC
#: 5424 has no structured data); Kubernetes' CRI; a time, as of Docker and Go's log; a time in seconds.
#: A part of a line (``P`` of CRI) is none.
PREFIX = "".join(
    [
        r"(?:(?:(?:\d\d:\d\d:\d\d |\d+\|)?(?:\x1b\[[\d;]*m)*[\w.@-]+ +\|(?:\x1b\[[\d;]*m)* ?|\[pod/[^\]]*\] )?(?:",
        rf"(?:\d+ )?<\d{{1,3}}>1 (?:-|{_ISO_8601}) \S+ \S+ \S+ \S+ (?:{_DATA} )?\x{{feff}}?",
        rf"|{_ISO_8601} std(?:out|err) F ",
        rf"|(?:\d+ )?(?:<\d{{1,3}}>)?(?:{_MONTH_AND_DAY} \d\d:\d\d:\d\d(?:\.\d+)?|{_ISO_8601}) ",
        rf"(?:(?:\S+ )?{_TAG} |{NAME} )?",
        rf"|<\d{{1,3}}>(?:{_TAG} )?",
        r"|\d{10}(?:\.\d+)? ",
        r"|))",
    ]
)
#: The same before JSON, where lumberjack's cookie may follow it; and what fluentd and AWS Lambda write, with tabs.
JSON_PREFIX = rf"(?:{PREFIX}(?:@cee: ?)?|{_ISO_8601}(?:\t[\w.*/-]+){{1,2}}\t)"
