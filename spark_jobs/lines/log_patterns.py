r"""Regular expressions (RE2) of the lines that an access log's format writes.

A line is read in steps, see ``pattern_steps``. What does not fit so is read as a whole line, more slowly.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from include.log_formats import LogFormat, Variable
from spark_jobs.lines.pattern_steps import MOST_PARTS, Pattern
from spark_jobs.lines.prefix_patterns import ADDRESS, ADDRESSES, NAME, PREFIX, UNKNOWN, USUAL_PREFIX, VIRTUAL_HOST

#: ``plain``: as servers write it. Of a line that is not: ``prefixed`` by what another program put before it, or with a
#: client in a rarer form, or any user; ``named``, with the name of the client's host; with quotation marks in a quoted
#: text that are not escaped, as ``short`` as a text may be, or as ``long``.
Reading = Literal["plain", "prefixed", "named", "short", "long"]

_TIMES = {
    "access_log": r"\d\d/[A-Za-z]{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}",
    "iso8601": r'\d{4}-\d\d-\d\d[^\s",;|\]]+',
}

_QUOTED = r'"[^"\\]*(?:\\.[^"\\]*)*"'
#: Behind these a quotation mark opens no text: it is inside of one whose marks are not escaped, `24" TV`.
_OF_WORD = r"A-Za-z0-9_.!?)}%\-" + "\x80-\U0010ffff"
_LETTERS = _OF_WORD.replace("0-9", "")
_WORDS = rf"(?:{_QUOTED})*[{_OF_WORD}]*"
#: After what is needed of a line: any text, whose quotation marks are two by two.
_REST = rf'{_WORDS}(?:[^"{_OF_WORD}]{_WORDS})*$'
#: The same without what may begin the time of another line, ``[01/``, and may be cut off there.
_NO_END = rf'"\[{_OF_WORD}\r\n'
_PLAIN_REST = (
    rf'{_WORDS}(?:[^"\[{_OF_WORD}]{_WORDS}|\[+(?:{_QUOTED}{_WORDS}|[{_LETTERS}][{_OF_WORD}]*|[^{_NO_END}]{_WORDS}|'
    rf"\d(?:[{_LETTERS}][{_OF_WORD}]*|[^{_NO_END}]{_WORDS}|\d(?:[{_OF_WORD}]+|[^/{_NO_END}]{_WORDS}))))*$"
)
_ANOTHER_TIME = ' [01/Mar/2026:12:30:00 +0000] "'

#: By so much of them times are known.
_BEGUN_TIMES = _TIMES | {"access_log": r"\d\d/[A-Za-z]{3}/\d{4}:"}

#: The group of a user's name where that may be any text: see ``IS_TWO_CLIENTS``.
USER = "user"
#: What is no user's name: it ends one line, cut off there, and begins another, ``… 198.51.100.7 - frank``, or one
#: without a client, ``… - - frank``.
IS_TWO_CLIENTS = r"(?:(?:\d{1,3}\.){3}\d{1,3}|:[0-9A-Fa-f]+) \S+ \S|^ *- +[^ ]|- +-(?: |$)"

#: A time as seconds, or parts of them, since 1970.
_NUMBER = r"\d+(?:\.\d+)?"
#: The same since 1973, and no duration or size.
_SECONDS = r"\d{9,}(?:\.\d+)?"

#: A text at the end of a line, which may have spaces.
_ANY = ".*"


@dataclass(frozen=True)
class _Piece:
    """A literal text's or a variable's pattern, with the role that is taken out."""

    text: str
    role: str = ""


def steps(format_: LogFormat, roles: frozenset[str], *, has_prefix: bool = False) -> list[Pattern]:
    """The patterns of a line's parts, one after the other, for these roles; each but the last has ``before``.

    That is the whole text that it took, from whose end the next goes on; of the last there is ``all`` if no part of it
    is always there. Where the line ``has_prefix`` the first takes that, with ``host`` where that is wanted.
    """
    pieces = _pieces(format_, roles, "plain", has_prefix=has_prefix)
    places = [place for place, piece in enumerate(pieces) if piece.role]
    most = MOST_PARTS if {"time", "status"} & {pieces[place].role for place in places[-MOST_PARTS:]} else MOST_PARTS - 1
    starts = [max(len(places) - most, 0)]
    while starts[0]:
        starts.insert(0, max(starts[0] - (MOST_PARTS - 1), 0))
    cuts = [0, *(places[start] for start in starts[1:]), len(pieces)]
    patterns = []
    for number, (start, end) in enumerate(pairwise(cuts)):
        text = "".join(_written(piece) for piece in pieces[start:end])
        names = tuple(piece.role for piece in pieces[start:end] if piece.role)
        is_last = number == len(starts) - 1
        if not is_last or most < MOST_PARTS:
            text, names = f"({text})", ("all" if is_last else "before", *names)
        patterns.append(Pattern(f"^{text}", names))
    return [_prefix_before(format_, roles, pieces), *patterns] if has_prefix else patterns


def steps_behind_usual_prefix(format_: LogFormat, roles: frozenset[str]) -> list[Pattern]:
    """The same for a line that has a prefix, one that is usual, and begins with the client behind it; or none."""
    if not _begins_with_client(format_):
        return []
    _, *patterns = steps(format_, roles, has_prefix=True)
    return [Pattern(f"^({USUAL_PREFIX}){ADDRESS} ", ("before",)), *patterns]


def _prefix_before(format_: LogFormat, roles: frozenset[str], pieces: list[_Piece]) -> Pattern:
    """The pattern of a prefix, and not of the beginning of the line itself that follows it."""
    prefix, names = _prefix(format_, roles, VIRTUAL_HOST)
    begin = f"{ADDRESS} " if _begins_with_client(format_) else "".join(piece.text for piece in pieces[:2])
    return Pattern(f"^({prefix}){begin}", ("before", *names))


def _prefix(format_: LogFormat, roles: frozenset[str], virtual_host: str) -> tuple[str, tuple[str, ...]]:
    if not _begins_with_client(format_) or "host" in format_.roles:
        return PREFIX, ()
    if "host" not in roles:
        return rf"{PREFIX}(?:{virtual_host} )?", ()
    return rf"{PREFIX}(?:({virtual_host}) )?", ("host",)


def whole_line(format_: LogFormat, roles: frozenset[str], reading: Reading) -> Pattern:
    """The pattern of a whole line in one of the slower readings, with ``host`` where it is before the line."""
    pieces = _pieces(format_, roles, reading)
    names = tuple(piece.role for piece in pieces if piece.role)
    prefix, host = _prefix(format_, roles, VIRTUAL_HOST if reading == "prefixed" else rf"{NAME}:\d{{1,5}}")
    return Pattern(f"^{prefix}{''.join(map(_written, pieces))}", (*host, *names))


def two_times(format_: LogFormat) -> str:
    """The pattern of a line with two times as the format has them: two lines in one, or halves of two."""
    parts, place, time = _time_of(format_)
    texts = [f"(?:{piece.text})" for piece in _pieces(format_, frozenset(format_.roles), "plain")[:-1]]
    texts[place] = _BEGUN_TIMES.get(time.kind) or (times_pattern(time.kind) if "%" in time.kind else _NUMBER)
    before = parts[place - 1] if place else ""
    if time.kind == "access_log" or (isinstance(before, str) and before[-1:].strip() and texts[place] != _NUMBER):
        begin = re.escape(before[-1:] if isinstance(before, str) else "") + texts[place]
    else:  # such a time may be in a URL: what is beside it belongs to it
        first = max(place - 2, 0)
        begin = "".join(texts[first : first + 5]).replace(_NUMBER, _SECONDS)
    return rf"(?s)(?:{begin}.*){{2}}"


def is_one_line(format_: LogFormat, roles: frozenset[str]) -> bool:
    """Whether no second line can be in a line that fits its plain pattern: not behind it, and in no part of it."""
    parts, place, time = _time_of(format_)
    before = parts[place - 1] if place else ""
    is_bracketed = isinstance(before, str) and before.endswith("[") and time.kind == "access_log"
    pieces = _pieces(format_, roles, "plain")[:-1]
    return is_bracketed and not any(re.fullmatch(piece.text, _ANOTHER_TIME) for piece in pieces)


def _time_of(format_: LogFormat) -> tuple[tuple[str | Variable, ...], int, Variable]:
    """A format's parts, and the place of the time among them."""
    time = format_.roles["time"]
    return format_.parts, format_.parts.index(time), time


def _written(piece: _Piece) -> str:
    return f"({piece.text})" if piece.role else piece.text


def _begins_with_client(format_: LogFormat) -> bool:
    first = format_.parts[0]
    return isinstance(first, Variable) and first.role in ("client_address", "forwarded_for")


def _pieces(format_: LogFormat, roles: frozenset[str], reading: Reading, *, has_prefix: bool = False) -> list[_Piece]:
    """The patterns of a format's parts, up to where nothing more is needed; all of them where texts may be any."""
    parts = format_.parts
    needed = [place for place, part in enumerate(parts) if isinstance(part, Variable) and part.role in roles]
    end = len(parts) if reading in ("short", "long") else _end(parts, needed[-1])
    if end < len(parts):
        parts = parts[:end] if roles == {"time"} else _to_a_quote(parts[:end])
    # Where a line begins with the client, a missing name of a user makes nothing else of it.
    may_miss_user = _begins_with_client(format_) and not has_prefix
    pieces = []
    for place, part in enumerate(parts):
        before, after = parts[max(place - 1, 0) : place], parts[place + 1 : place + 2]
        if isinstance(part, str):
            is_last = place + 1 == len(parts) and roles != {"time"}
            is_after_user = bool(before) and isinstance(before[0], Variable) and before[0].kind == "user"
            pieces.append(_Piece(_literal(part, is_last, reading == "plain" and is_after_user)))
        else:
            around = _Around(before, after, reading, format_.escape == "none", may_miss_user)
            text = _text_of(part, around)
            if not place and part.kind in ("host", "host_and_port") and (has_prefix or reading != "plain"):
                text = f"{VIRTUAL_HOST}|localhost|_"  # any word may be one of the prefix
            is_looked_at = part.role in roles or (reading == "prefixed" and part.kind == "user")
            role = (part.role or USER) if is_looked_at else ""
            pieces.append(_Piece(text if role else f"(?:{text})", role))
    if reading in ("short", "long"):
        return [*pieces, _Piece(rf"(?:\s{_REST[:-1]})?$")]
    if roles == {"time"}:
        return pieces
    if end == len(format_.parts) and pieces[-1].text == _ANY:
        return [*pieces, _Piece("$")]
    rest = _PLAIN_REST if reading == "plain" else _REST
    last = parts[-1]
    needs_space = end == len(format_.parts) or isinstance(last, Variable) or last != last.rstrip()
    return [*pieces, _Piece(rf"(?:\s{rest[:-1]})?$" if needs_space else rest)]


def _to_a_quote(parts: tuple[str | Variable, ...]) -> tuple[str | Variable, ...]:
    """The parts, less the beginning of a quoted text at their end."""
    last = parts[-1]
    if isinstance(last, str) and '"' in last and _quotation_marks(parts) % 2:
        return (*parts[:-1], last[: last.rindex('"')])
    return parts


def _end(parts: tuple[str | Variable, ...], last: int) -> int:
    """Up to where a line is looked at: behind the last part that is needed, its quoted text, and numbers after it."""
    end = last + 1
    if _quotation_marks(parts[:last]) % 2:
        while end < len(parts) and _quotation_marks(parts[:end]) % 2:
            end += 1
    while end < len(parts) and (isinstance(parts[end], str) or parts[end].kind == "number"):  # type: ignore[union-attr]
        end += 1
    return end


def _quotation_marks(parts: tuple[str | Variable, ...]) -> int:
    return sum(part.count('"') for part in parts if isinstance(part, str))


def _literal(text: str, is_last: bool, is_after_user: bool) -> str:
    # The space is taken with the name, that there is one way on.
    if is_after_user and text.strip():
        text = text.lstrip()
    return re.escape(text.rstrip() if is_last else text).replace(r"\ ", " ")


@dataclass(frozen=True)
class _Around:
    """What is beside a variable."""

    before: tuple[str | Variable, ...]
    after: tuple[str | Variable, ...]
    reading: Reading
    is_raw: bool
    may_miss_user: bool

    @property
    def opens(self) -> str:
        """The character before it."""
        return self.before[0][-1:] if self.before and isinstance(self.before[0], str) else ""

    @property
    def closes(self) -> str:
        """The characters after it."""
        return self.after[0] if self.after and isinstance(self.after[0], str) else ""

    @property
    def next_kind(self) -> str:
        """Of the variable that follows at once."""
        return self.after[0].kind if self.after and isinstance(self.after[0], Variable) else ""

    def no(self, characters: str = "") -> str:
        """A text without white space, quotation marks, these characters and that after it."""
        end = self.closes[:1].strip()
        return rf'[^\s"{re.escape(characters + end)}]*'


def _text_of(variable: Variable, around: _Around) -> str:
    if around.opens == '"' and around.closes[:1] == '"':
        return _quoted_text(around)
    match variable.kind:
        case "status":
            # Without an answer HAProxy writes -1, Envoy 0. Each alternative has first characters of its own: where two
            # share one, RE2 takes three times as long for the line.
            return r"[1-9]\d\d|0(?:\d\d)?|-1?"
        case "number":
            return r"\d+|-"
        case "is_args":
            return r"\??"
        case "client" | "clients" if variable.role:
            return _client(around)
        case "clients":
            word = r'[^\s",]+' if around.closes[:1] == ":" else rf"{around.no(',')[:-1]}+"
            return rf"{word}(?:(?:, ?| : ){word})*"
        case "logname":
            return r"[^\s.:]+"
        case "user":
            return _user(around)
        case "host" if around.closes[:1] == ":":
            return rf"\[[^\]\s]*\]|{around.no('[')}"
        case "host" | "host_and_port" if around.next_kind:
            return around.no("/")
        case "path" if around.next_kind or around.closes[:1] == "?":
            return around.no("?") if around.reading == "plain" else r'[^?"]*'
        case "query":
            return around.no()
        case "free" | "path":
            return _free(variable, around)
    return _time(variable, around) if variable.role == "time" else around.no()


def _quoted_text(around: _Around) -> str:
    match around.reading:
        case "short":
            return ".*?"
        case "long":
            return ".*"
    return r'[^"]*' if around.is_raw else r'[^"\\]*(?:\\.[^"\\]*)*'


def _client(around: _Around) -> str:
    if around.closes[:1] == ":":  # a port: the last of the colons, of which IPv6 has some
        return r'[^\s"]*'
    if around.closes[:1].strip() or around.closes[:1] == "\t":
        return rf"[^{re.escape(around.closes[0])}]*"
    match around.reading:
        case "plain":
            return f"{ADDRESS}|-|unix:"
        case "prefixed":
            return f"{ADDRESSES}|-"
        case "named":
            return f"{NAME}|{UNKNOWN}"
    return f"{ADDRESSES}|{NAME}|{UNKNOWN}"


def _user(around: _Around) -> str:
    end = around.closes.strip()[:1]
    # httpd writes "" for an empty name, and \" in a name.
    if around.reading in ("named", "short", "long") or not end:
        return r'(?:[^\s"\\]|\\.|"")+'
    if around.reading == "prefixed":
        return r'(?:[^"\\]|\\.|"")*?'
    # With blanks, but none behind a point or a colon: these are in the client of another line; and no word of theirs is
    # "-", which may be the client, or the name, of another: such are read more slowly.
    end = re.escape(end)
    letter, of_word = rf'[^ ".:{end}-]', rf'[^ ".:{end}]'
    last = rf'[.:][^\s"{end}]* ?'
    others = f"(?: (?:(?:{letter}|-{of_word}){of_word}*)?)*(?:{last})?"
    first = f"(?:{letter}{of_word}*)" + ("?" if around.may_miss_user else "")
    return f"-(?: *|{of_word}+{others}|{last})|{first}{others}"


def _free(variable: Variable, around: _Around) -> str:
    end = around.closes[:1]
    if end.strip() or end == "\t":
        return rf"[^{re.escape(end)}]*"
    if not around.after:
        return _ANY
    if around.reading == "plain" and variable.kind == "path":
        return around.no()
    return ".*" if around.reading == "long" else ".*?"


def _time(variable: Variable, around: _Around) -> str:
    if (end := around.closes[:1]) in ("]", '"') and end not in variable.kind:
        return rf"[^{re.escape(end)}]+"
    if variable.kind in _TIMES:
        return _TIMES[variable.kind]
    return _NUMBER if "%" not in variable.kind else times_pattern(variable.kind)


def times_pattern(pattern: str) -> str:
    """The regular expression of a ``strptime`` pattern's times."""
    return "".join(_parts_of_times(pattern))


def _parts_of_times(pattern: str) -> Iterator[str]:
    for directive, text in re.findall(r"(%-?.)|([^%]+)", pattern, re.DOTALL):
        if not directive:
            yield re.escape(text)
        elif directive == "%%":
            yield "%"
        elif directive[-1] in "aAbB":
            yield r"[^\s\d]+"
        elif directive[-1] in "zZp":
            yield r"[\w:+-]+"
        else:  # %e has a blank before one digit
            yield r" ?\d+" if directive[1] == "-" else r"\d+"
