"""Delimited lines in random settings, with what each line is: a click, or the reason why it is none.

Written by Python's ``csv`` and by hand as the servers' documentation says; by nothing of the product's.
"""

from __future__ import annotations

import csv
import io
import random
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
LONGEST = 20_000
#: What stands for others while the parser cuts a line; a line with quotes, or an escape, may have none of them.
_RESERVED = "\x1c\x1d\x1e\x1f"

Texts = dict[str, "str | None"]


@dataclass(frozen=True)
class Truth:
    """What a line is: when, which URL, whose address, status and user agent; or only the reason."""

    reason: str | None
    clicked_at: datetime | None = None
    url: str | None = None
    client: str | None = None
    status: int | None = None
    user_agent: str | None = None


def is_seen(text: str) -> bool:
    """Whether there is more in it than blanks of any kind."""
    return any(unicodedata.category(character) not in ("Zs", "Zl", "Zp", "Cc", "Cf") for character in text)


#: A target as it is logged, and as it is kept.
_TARGETS = {
    "/": "/", "/a": "/a", "/products/17?q=1": "/products/17?q=1", "/caf%C3%A9": "/caf%C3%A9", "/é": "/%C3%A9",
    "/a.b/c_d~e?a=b&c=d%20e": "/a.b/c_d~e?a=b&c=d%20e", "/x?y=[1]": "/x?y=[1]", "/s?q=a,b;c|'d": "/s?q=a,b;c|%27d",
    "/a=b?c==": "/a=b?c==", "/?": "/", "/😀?ü": "/%F0%9F%98%80?%C3%BC",
}  # fmt: skip
_CLIENTS = {
    "198.51.100.7": "198.51.100.7", "2001:DB8::7": "2001:db8::7", "::ffff:192.0.2.9": "192.0.2.9",
    "[2001:db8::8]": "2001:db8::8", "203.0.113.9:4711": "203.0.113.9", "PC-7.example.test": "pc-7.example.test",
}  # fmt: skip
_WORDS = [
    "Mozilla/5.0",
    "(X11;",
    "Linux",
    "x86_64)",
    "curl/8",
    "é",
    "😀",
    "名前",
    "a=b",
    "[x]",
    "{",
    "'",
    "#",
    "%",
    "\x7f",
]
_ODD = [
    '"',
    '""',
    '"q"',
    "\\",
    '\\"',
    "\\\\",
    ",",
    ";",
    "|",
    "\t",
    "  ",
    "\x1c",
    "\x1d",
    "\x1e",
    "\x1f",
    "\x00",
    "\x0b",
]


def _framed(text: str, truth: Truth) -> Truth:
    """What cannot be read and has a zero before it is what serializers with a schema registry write."""
    cannot_be_read = truth.reason in ("not_utf8", "broken_quotes", "wrong_columns", "not_logfmt")
    return Truth("binary_record") if cannot_be_read and text.startswith("\0") and len(text) > 5 else truth


class RandomLog:
    """One log: settings that a person may have, and lines of it."""

    #: Of which no line may be one: what the format cannot write, or what it writes as something else.
    unwritable = ""

    def __init__(self, rng: random.Random, format_: str) -> None:
        self.rng = rng
        self.settings: dict[str, Any] = {"name": "test", "format": format_, "max_line_bytes": LONGEST}
        self.end = rng.choice(["\n", "\r\n"])

    def first(self) -> list[tuple[str, Truth]]:
        """Lines before the others."""
        return []

    def click(self) -> tuple[Texts, Truth]:
        """Texts by role, and the truth of a line that has them."""
        rng = self.rng
        target, kept = rng.choice([its for its in _TARGETS.items() if not set(its[0]) & set(self.unwritable)])
        client, address = rng.choice([*_CLIENTS.items()])
        status = rng.choice(["200", "304", "404"])
        agent = self.agent()
        texts: Texts = {"client": client, "status": status, "agent": agent, "target": target, "host": "shop.test"}
        micros = rng.choice([0, 0, 250_000, 999_999])
        moment = START + timedelta(seconds=rng.randrange(3600), microseconds=self.micros(micros))
        texts["time"] = self.time(moment)
        for role in ("client", "status"):
            if rng.random() < 0.1:
                texts[role] = None
        return texts, Truth(
            None, moment, self.url(kept), address if texts["client"] else None,
            int(status) if texts["status"] else None, agent if agent and is_seen(agent) else None,
        )  # fmt: skip

    def micros(self, micros: int) -> int:
        """So many of them as the format writes."""
        return micros

    def time(self, moment: datetime) -> str:
        """The time as the format writes it."""
        zone = timezone(timedelta(minutes=self.rng.choice([0, 60, -450, 330])))
        return moment.astimezone(zone).isoformat()

    def url(self, target: str) -> str:
        """The URL of a target."""
        return f"https://shop.test{target}"

    def agent(self) -> str | None:
        """Any text that the format can write."""
        rng = self.rng
        if rng.random() < 0.1:
            return None
        words = rng.choices(_WORDS, k=rng.randrange(1, 7))
        for _ in range(rng.choice([0, 0, 0, 1, 2, 3])):
            words.insert(rng.randrange(len(words) + 1), rng.choice(_ODD))
        text = rng.choice([" ", " ", ""]).join(words) * rng.choice([1] * 60 + [30])
        text = "".join(character for character in text if character not in self.unwritable)
        return None if text.strip(" ") in ("", "-") else text

    def write(self, texts: Texts) -> str:
        """A line without its end."""
        raise NotImplementedError

    def is_cut(self, text: str) -> bool:
        """Whether the parser can cut a well-formed line."""
        return '"' not in text or not set(_RESERVED) & set(text)

    def faults(self) -> dict[str, Callable[[Texts], str]]:
        """What is wrong with a line, each with how it is written."""
        lost: dict[str, Texts] = {
            "missing_time": {"time": None}, "missing_url": {"target": None}, "bad_time": {"time": "noon"},
            "time_out_of_range": {"time": self.time(START - timedelta(days=3650))},
        }  # fmt: skip
        return {
            reason: lambda texts, changed=changed: self.write(texts | changed) for reason, changed in lost.items()
        } | {
            "line_too_long": lambda texts: self.write(texts | {"agent": "x" * LONGEST}),
            "blank": lambda _: self.rng.choice(["", " ", "   "]),
        }

    def _changed(self, changed: Texts, texts: Texts) -> str:
        return self.write(texts | changed)

    def line(self) -> tuple[bytes, Truth]:
        """A random line, with its end."""
        texts, truth = self.click()
        text = self.write(texts)
        if self.rng.random() < 0.2:
            reason, write = self.rng.choice([*self.faults().items()])
            if self.rng.random() < 0.1:
                bad = f"{text}{self.end}".encode()[:-1].replace(b"a", b"\xff", 1) + b"\xff\n"
                return bad, _framed(text, Truth("not_utf8"))
            text, truth = write(texts), Truth(reason)
        if truth.reason not in ("line_too_long", "blank") and not self.is_cut(text):
            truth = Truth(self.reason_of_reserved)
        return f"{text}{self.end}".encode(), _framed(text, truth)

    reason_of_reserved = "broken_quotes"


class RandomCsv(RandomLog):
    """CSV and TSV: columns in any order, by header or by place, with any delimiter, quotes and escapes."""

    roles = ("time", "url", "client", "status", "agent", "x", "y")

    def __init__(self, rng: random.Random, format_: str) -> None:
        super().__init__(rng, format_)
        self.delimiter = rng.choice(",;|\t") if format_ == "csv" else "\t"
        self.quote = rng.choice(["'", '"', '"', '"']) if rng.random() < 0.8 else ""
        self.escape = rng.choice([None, None, "\\"]) if self.quote else None
        self.unwritable = "\r\n" if self.quote else f"\r\n{self.delimiter}"
        self.columns = rng.sample(self.roles, len(self.roles))
        self.names = {role: rng.choice([role, f"the {role}", role.upper()]) for role in self.roles}
        self.has_header = rng.random() < 0.7
        self.settings |= {
            "delimiter": self.delimiter, "quote": self.quote, "escape": self.escape, "header": self.has_header,
            "fields": {"time": self.names["time"], "url": self.names["url"], "client_address": self.names["client"],
                       "status": self.names["status"], "user_agent": self.names["agent"]},
        }  # fmt: skip
        if not self.has_header or rng.random() < 0.3:
            self.settings["columns"] = [self.names[role] for role in self.columns]
        self.header = self._row([self.names[role] for role in self.columns])

    def first(self) -> list[tuple[str, Truth]]:
        return [(self.header, Truth("left_out_header"))] if self.has_header else []

    def write(self, texts: Texts) -> str:
        target = texts["target"]
        extras = {
            "x": self.rng.choice(["", "7", "a b"]),
            "y": self.agent(),
            "url": target and f"https://shop.test{target}",
        }
        return self._row([(texts | extras)[role] for role in self.columns])

    def _row(self, cells: list[str | None]) -> str:
        cells = [self.rng.choice(["", "-"]) if cell is None else cell for cell in cells]
        if not self.quote:
            return self.delimiter.join(map(str, cells)).translate(dict.fromkeys(map(ord, "\r\n")))
        text = io.StringIO()
        csv.writer(
            text, delimiter=self.delimiter, quotechar=self.quote, escapechar=self.escape, lineterminator="",
            doublequote=self.escape is None, quoting=self.rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
        ).writerow(cells)  # fmt: skip
        return text.getvalue()

    def is_cut(self, text: str) -> bool:
        can_have = not self.quote or (self.quote not in text and not self.escape)
        return can_have or not set(_RESERVED) & set(text)

    def faults(self) -> dict[str, Callable[[Texts], str]]:
        faults = super().faults() | {
            "wrong_columns": lambda texts: self.write(texts) + self.delimiter,
            "bad_url": lambda texts: self.write(texts | {"target": ":x y"}),
        }
        if self.quote:
            faults["broken_quotes"] = lambda texts: self.write(texts) + self.quote
        if self.has_header:
            faults["left_out_header"] = lambda _: self.header
        return faults


class RandomLogfmt(RandomLog):
    """Words in any order, quoted as Go's packages do."""

    unwritable = "\r\n\t\x00\x0b"
    reason_of_reserved = "not_logfmt"

    def __init__(self, rng: random.Random, format_: str) -> None:
        super().__init__(rng, format_)
        names = {"time": "ts", "path": "path", "client_address": "ip", "status": "status", "user_agent": "user_agent"}
        self.settings |= {"base_url": "https://shop.test", "fields": names}

    def write(self, texts: Texts) -> str:
        rng = self.rng
        words = {"ts": texts["time"], "path": texts["target"], "ip": texts["client"], "status": texts["status"],
                 "user_agent": texts["agent"], "level": "info", "msg": self.agent(), "xpath": "/no"}  # fmt: skip
        written = [
            f"{name}={self._value(text)}" for name, text in words.items() if text is not None or rng.random() < 0.5
        ]
        written += rng.choice([[], ["debug"]])
        rng.shuffle(written)
        return rng.choice([" ", "  "]).join(written)

    def is_cut(self, text: str) -> bool:
        return not set(_RESERVED) & set(text)

    def _value(self, text: str | None) -> str:
        if text is None:
            return self.rng.choice(["", '""', "-"])
        if set(text) & set(' ="\\') or self.rng.random() < 0.2:
            return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
        return text

    def faults(self) -> dict[str, Callable[[Texts], str]]:
        return super().faults() | {"not_logfmt": lambda texts: self.write(texts) + ' x="'}
