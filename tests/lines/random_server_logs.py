"""Delimited lines as servers write them: IIS, CloudFront, load balancers and S3; with what each line is."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import ClassVar
from urllib.parse import quote

from tests.lines.random_delimited_logs import RandomLog, Texts, Truth

_COMMENT = Truth("left_out_header")


class _RandomW3c(RandomLog):
    """Lines under ``#Fields:``, which come again with other columns."""

    separator = " "
    columns: ClassVar[dict[str, str]]
    unwritable = "\r\n\t"

    def __init__(self, rng: random.Random, format_: str) -> None:
        super().__init__(rng, "w3c")
        self.order = self._order()
        self.is_after_comment = True

    def _order(self) -> list[str]:
        # A line that begins with # is a comment: first is what never does.
        names = [name for name in self.columns if name != "date"]
        return ["date", *self.rng.sample(names, len(names))]

    def first(self) -> list[tuple[str, Truth]]:
        lines = ["#Software: x", "#Version: 1.0", "#Date: 2026-03-01 12:00:00", f"#Fields: {' '.join(self.order)}"]
        return [(line, _COMMENT) for line in lines]

    def time(self, moment: datetime) -> str:
        return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S}"

    def micros(self, micros: int) -> int:
        return 0

    def line(self) -> tuple[bytes, Truth]:
        if self.rng.random() < 0.02:
            self.order = self._order()
            self.is_after_comment = True
            return f"#Fields: {' '.join(self.order)}{self.end}".encode(), _COMMENT
        line, truth = super().line()
        if truth.reason == "blank" and self.is_after_comment:
            return line, _COMMENT
        self.is_after_comment = False
        return line, truth

    def write(self, texts: Texts) -> str:
        date, _, clock = (texts["time"] or "- -").partition(" ")
        if date == "noon":
            date, clock = self.time(datetime(2026, 3, 1, 12, tzinfo=UTC))[:10], "noon"
        path, _, query = (texts["target"] or "").partition("?")
        cells = {"date": date, "time": clock, "path": path, "query": query} | texts | {"time": clock}
        return self.separator.join(self.cell(role, cells.get(role)) for role in map(self.columns.get, self.order))

    def cell(self, role: str | None, text: str | None) -> str:
        """A column as the server writes it."""
        return text or "-"

    def faults(self) -> dict[str, Callable[[Texts], str]]:
        return super().faults() | {"wrong_columns": lambda texts: self.write(texts) + self.separator + "7"}


class RandomIis(_RandomW3c):
    """Blanks are ``+``; or else, as others have it, columns with blanks are quoted."""

    columns: ClassVar = {
        "date": "date", "time": "time", "s-ip": "x", "cs-method": "x", "cs-uri-stem": "path", "cs-uri-query": "query",
        "s-port": "port", "c-ip": "client", "cs(User-Agent)": "agent", "sc-status": "status", "time-taken": "x",
    }  # fmt: skip

    def __init__(self, rng: random.Random, format_: str) -> None:
        super().__init__(rng, format_)
        self.settings["base_url"] = "https://shop.test"
        self.is_quoting = rng.random() < 0.5

    def agent(self) -> str | None:
        text = super().agent()
        if text is None or self.is_quoting:
            return text
        # IIS writes a plus sign as it is, and so a blank: two are a blank and a plus sign.
        text = text.lstrip('" ').rstrip(" ").replace("  ", " +")
        return None if text in ("", "-") else text

    def cell(self, role: str | None, text: str | None) -> str:
        if role == "agent" and text and self.is_quoting:
            doubled = text.replace('"', '""')
            return f'"{doubled}"' if " " in text or '"' in text or self.rng.random() < 0.3 else text
        return (text or {"port": "443", "x": "17"}.get(role or "", "-")).replace(" ", "+")

    def faults(self) -> dict[str, Callable[[Texts], str]]:
        return super().faults() | {"broken_quotes": lambda texts: self.write(texts) + ' "x'}


class RandomCloudFront(_RandomW3c):
    """Tabs between columns; texts percent-encoded, once or twice."""

    separator = "\t"
    unwritable = "\r\n"
    columns: ClassVar = {
        "date": "date", "time": "time", "x-edge-location": "x", "c-ip": "client", "cs-method": "x", "cs(Host)": "x",
        "cs-uri-stem": "path", "sc-status": "status", "cs(Referer)": "x", "cs(User-Agent)": "agent",
        "cs-uri-query": "query", "cs(Cookie)": "x", "x-host-header": "host", "cs-protocol": "scheme",
    }  # fmt: skip

    def __init__(self, rng: random.Random, format_: str) -> None:
        super().__init__(rng, format_)
        self.is_twice = rng.random() < 0.5

    def cell(self, role: str | None, text: str | None) -> str:
        if role == "scheme":
            return "https"
        if role == "agent" and text:
            text = quote(text, safe="/()<>;:,.=+*'[]{}")
        elif text:
            text = quote(text, safe="/()<>;:,.=+*'[]{}&?|%")
        return (text or "-").replace("%", "%25") if self.is_twice else text or "-"

    def agent(self) -> str | None:
        text = super().agent()
        # Without a blank nobody knows whether a per cent sign in it was one.
        return text if text is None or " " in text else f"{text} x"


class RandomAws(RandomLog):
    """Lines of load balancers and S3; what of a text could end it is written by its number."""

    unwritable = ""

    def __init__(self, rng: random.Random, format_: str) -> None:
        super().__init__(rng, format_)
        self.format = format_
        self.more = rng.choice([0, 3, 99])
        if format_ == "s3":
            self.settings["base_url"] = "https://shop.test"

    def micros(self, micros: int) -> int:
        return 0 if self.format == "s3" else micros

    def time(self, moment: datetime) -> str:
        if self.format == "s3":
            return f"[{moment.astimezone(UTC):%d/%b/%Y:%H:%M:%S +0000}]"
        return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"

    def agent(self) -> str | None:
        text = super().agent()
        return text and "".join(
            character if " " <= character <= "~" and character not in '"\\' else f"\\x{byte:02X}"
            for whole in text
            for character, byte in [(whole, b) if len(whole.encode()) == 1 else ("é", b) for b in whole.encode()]
        )

    def click(self) -> tuple[Texts, Truth]:
        texts, truth = super().click()
        if texts["client"] and self.format != "s3":  # an address with its port, of IPv6 in brackets or not
            address = self.rng.choice(["198.51.100.7", "2001:db8::7", "[2001:db8::8]"])
            texts["client"], truth = f"{address}:2817", replace(truth, client=address.strip("[]"))
        return texts, truth

    def write(self, texts: Texts) -> str:
        target, time = texts["target"], texts["time"]
        method = self.rng.choice(["GET", "POST"])
        agent = f'"{texts["agent"] or "-"}"'
        if self.format == "s3":
            time = {None: "- -", "noon": "[noon +0000]"}.get(time, time)
            request = f'"{method} {target} HTTP/1.1"' if target else "-"
            columns = f"79a5 bucket {time} {texts['client'] or '-'} - 3E57 REST.GET.OBJECT a%20b {request}"
            columns += (
                f' {texts["status"] or "-"} - 113 - 7 - "-" {agent} - s9lz= SigV4 - AuthHeader shop.test TLSv1.2 - -'
            )
            return " ".join(columns.split(" ")[: len(columns.split(" ")) - self.rng.choice([0, 2])])
        request = f'"{method} https://shop.test:443{target} HTTP/1.1"' if target else '"-"'
        columns = (
            f"{time or '-'} app/lb/50dc {texts['client'] or '-'} - 0.001 0.001 0.001 {texts['status'] or '-'} - 0 57"
        )
        columns += f" {request} {agent} ECDHE TLSv1.2"
        if self.format == "elb":
            return columns
        last = ["arn:x", '"Root=1"', '"shop.test"', '"-"', "0", "2026-03-01T12:30:00Z", '"forward,waf"', '"-"', '"a b"']
        return f"https {columns} {' '.join(last[: self.more + 3])}"

    def faults(self) -> dict[str, Callable[[Texts], str]]:
        return super().faults() | {
            "wrong_columns": lambda texts: " ".join(self.write(texts).split(" ")[:6]),
            "broken_quotes": lambda texts: self.write(texts) + ' "x',
            "bad_url": lambda texts: self.write(texts).replace("shop.test", "[x", 1) if self.format == "alb" else
            self.write(texts | {"target": ":x"}),
        }  # fmt: skip
