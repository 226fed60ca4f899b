"""Access logs in random formats, with what each line says: written as nginx and httpd write them."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from ipaddress import IPv4Address, IPv6Address

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Line:
    """A line and its truth: when, which URL, whose address; as Clickmill keeps them."""

    text: str
    clicked_at: datetime
    url: str
    client: str
    user_agent: str | None
    status: int


#: What is written, by nginx and by httpd; and whether it may have spaces, and so is quoted.
_VARIABLES = {
    "client": ("$remote_addr", "%h", False),
    "user": ("$remote_user", "%u", False),
    "status": ("$status", "%>s", False),
    "size": ("$body_bytes_sent", "%b", False),
    "referrer": ("$http_referer", "%{Referer}i", True),
    "agent": ("$http_user_agent", "%{User-Agent}i", True),
    "host": ("$host", "%{Host}i", False),
    "seconds": ("$request_time", "%D", False),
    "cookie": ("$http_cookie", "%{Cookie}i", True),
    "tls": ("$ssl_protocol", "%{SSL_PROTOCOL}x", False),
}
_REQUESTS = (
    ("$request", "%r", "{method} {target} HTTP/1.1"),
    ("$request_method $request_uri $server_protocol", "%m %U%q %H", "{method} {target} HTTP/1.1"),
    ("$request_method $scheme://$host$request_uri", "", "{method} http://{host}{target}"),
)


class RandomLog:
    """A format that a person may have, and lines of it."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._is_nginx = rng.random() < 0.5
        names = rng.sample([*_VARIABLES], rng.randrange(3, len(_VARIABLES) + 1))
        names = [*dict.fromkeys([*names, "client", "agent", "status"])]
        rng.shuffle(names)
        if rng.random() < 0.4:  # as most have it
            names = ["client", *(name for name in names if name != "client")]
        names.insert(rng.randrange(1, len(names) + 1), "time")
        names.insert(rng.randrange(1, len(names) + 1), "request")
        self._names = names
        self._request = rng.choice(_REQUESTS if self._is_nginx else _REQUESTS[:2])
        self._separator = rng.choice([" "] * 6 + ["\t", " | "])
        self.has_host = "host" in names or "$host" in self._request[0]
        self.log_format = self._separator.join(self._written(name) for name in names)

    def _written(self, name: str) -> str:
        if name == "time":
            return "[$time_local]" if self._is_nginx else "%t"
        if name == "request":
            return f'"{self._request[not self._is_nginx]}"'
        text, is_quoted = _VARIABLES[name][not self._is_nginx], _VARIABLES[name][2]
        return f'"{text}"' if is_quoted else text

    def line(self) -> Line:
        """A random line."""
        rng = self._rng
        moment = START + timedelta(seconds=rng.randrange(3600))
        zone = timezone(timedelta(minutes=rng.choice([0, 60, -450, 330])))
        host, target = rng.choice(["shop.example.com", "blog.example.org"]), self._target()
        address = rng.choice(
            [IPv4Address(rng.randrange(1 << 24, 223 << 24)), IPv6Address(rng.randrange(1 << 125, 1 << 126))]
        )
        client = rng.choice([str(address), str(address).upper()])
        agent = rng.choice(
            ["Mozilla/5.0 (X11; Linux x86_64)", "curl/8", 'a "quoted" [agent]', "tab\there", "é | ü", "-"]
        )
        status = rng.choice([200, 200, 304, 404])
        request = self._request[2].format(method=rng.choice(["GET", "POST"]), target=target, host=host)
        values = {
            "client": client,
            "user": rng.choice(["-", "-", "frank"]),
            "status": str(status),
            "size": rng.choice(["-", "0", str(rng.randrange(10**6))]),
            "referrer": rng.choice(["-", 'https://from.example/?q=[1] "x"', "https://from.example/a b"]),
            "agent": agent,
            "host": host,
            "seconds": rng.choice(["0.004", "12"]) if self._is_nginx else "17",
            "cookie": rng.choice(["-", 'a=1; b="2"', "c=[3] 200 5"]),
            "tls": rng.choice(["-", "TLSv1.3"]),
            "time": f"[{moment.astimezone(zone):%d/%b/%Y:%H:%M:%S %z}]",
            "request": f'"{self._escaped(request)}"',
        }
        for name in ("referrer", "agent", "cookie"):
            values[name] = f'"{self._escaped(values[name])}"'
        return Line(
            self._separator.join(values[name] for name in self._names),
            moment,
            f"{'http' if '$scheme' in self._request[0] else 'https'}://"
            f"{host if self.has_host else 'base.example'}{target}",
            str(address),
            None if agent == "-" else self._escaped(agent),
            status,
        )

    def _target(self) -> str:
        path = self._rng.choice(["/", "/a", "/products/17", "/caf%C3%A9", "/a.b/c_d~e"])
        return path + self._rng.choice(["", "", "?q=1", "?a=b&c=d%20e", "?x=[1]"])

    def _escaped(self, text: str) -> str:
        """As both servers write what could end a quoted text: nginx by number, httpd by a backslash."""
        if self._is_nginx:
            return "".join(
                f"\\x{byte:02X}" if byte < 32 or byte > 126 or byte in b'"\\' else chr(byte) for byte in text.encode()
            )
        escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t")
        return "".join(c if c.isascii() else "".join(f"\\x{byte:02x}" for byte in c.encode()) for c in escaped)
