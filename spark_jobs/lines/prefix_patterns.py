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
_TIME_OF_SYSLOG = rf"{_MONTH_AND_DAY} \d\d:\d\d:\d\d(?:\.\d+)?"
_TIME_OF_JOURNAL = r"[A-Z][a-z]{2} \d{4}-\d\d-\d\d \d\d:\d\d:\d\d [A-Z]+"
#: What comes before a line: the names of Docker Compose (with colours, too), foreman, PM2 and kubectl; Kubernetes' CRI,
#: also before one of the others; syslog's RFC 3164 and 5424, each with its octets (RFC 6587) or without, and what
#: rsyslog, journalctl, Heroku (whose RFC 5424 has no structured data), Cloud Foundry, Fly and ``aws logs tail`` write;
#: a time, as of Docker, Go's log and PM2; a time in seconds, or as multilog and s6-log write it.
#: A part of a line (``P`` of CRI) is none.
PREFIX = "".join(
    [
        r"(?:(?:(?:\d\d:\d\d:\d\d |\d+\|)?(?:\x1b\[[\d;]*m)*[\w.@-]+ +\|(?:\x1b\[[\d;]*m)* ?|\[pod/[^\]]*\] )?",
        rf"(?:{_ISO_8601} std(?:out|err) F )?(?:",
        rf"(?:\d+ )?<\d{{1,3}}>1 (?:-|{_ISO_8601}) \S+ \S+ \S+ \S+ (?:{_DATA} )?\x{{feff}}?",
        rf"|(?:\d+ )?(?:<\d{{1,3}}>)?{_TIME_OF_SYSLOG} (?:(?:\S+ )?{_TAG} |{NAME} (?:[\w-]*[A-Za-z][\w-]* )?)?",
        rf"|(?:\d+ )?(?:<\d{{1,3}}>)?{_ISO_8601}:? {{1,2}}(?:(?:\S+ )?{_TAG} |[\w./-]*[A-Za-z_][\w./-]* )?",
        rf"| *{_ISO_8601} (?:\[[\w/-]+\] (?:OUT|ERR) |\w+\[\w+\] \w+ \[\w+\] ?)",
        rf"|<\d{{1,3}}>(?:{_TAG} )?",
        rf"|(?:{_TIME_OF_JOURNAL}|\d{{10}}(?:\.\d+)?|\[ *\d+\.\d+\]) (?:\S+ {_TAG} )?",
        r"|@[0-9a-f]{24} ",
        r"|))",
    ]
)
_MOMENT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)"
_OF_SYSLOG = rf"[A-Z][a-z]{{2}} +\d{{1,2}} \d\d:\d\d:\d\d \S+ {_TAG} "
#: What of these is usual: syslog's, with a host, and Kubernetes' CRI. There is one way on at each character.
USUAL_PREFIX = (
    rf"(?:<\d{{1,3}}>(?:1 {_MOMENT} \S+ \S+ \S+ \S+ - |{_OF_SYSLOG})|{_OF_SYSLOG}|{_MOMENT} std(?:out|err) F )"
)
#: The same before JSON, where lumberjack's cookie may follow it; and what fluentd and AWS Lambda write, with tabs.
JSON_PREFIX = rf"(?:{PREFIX}(?:@cee: ?)?|{_ISO_8601}(?:\t[\w.*/-]+){{1,2}}\t)"
