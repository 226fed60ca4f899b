"""What of a source's lines is counted: ``count``, ``keep`` and ``drop`` of a source in ``config/sources.toml``.

A rule has conditions, all of which a line must fit; a condition has values, one of which must fit, and none of those
with ``!`` before it. ``spark_jobs/lines/kept.py`` judges lines by them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from ipaddress import ip_network
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

#: Lines that fit no ``keep`` are left out by this name.
NOT_KEPT = "not_kept"
#: Names that are taken: lines that name the columns of others are left out as ``header``.
_TAKEN = (NOT_KEPT, "header")
_MOST_RULES = 100
#: Before a value that a line must not fit.
NOT = "!"

_HTTP_METHOD = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_STATUS = re.compile(r"[1-5](?:\d\d|xx)")
_HOST = re.compile(r"\[[0-9A-Fa-f:.]+\]|[^\s/:?#@\[\]]+")
_ENDING = re.compile(r"\.[^\s/?#*]+")


def _as_texts(value: Any) -> Any:
    values = value if isinstance(value, list | tuple) else [value]
    # As JSON has them: what is no text of a line is read so.
    return tuple(json.dumps(value) if isinstance(value, bool | int | float) else value for value in values)


def _expected(is_expected: Callable[[str], object], expected: str) -> AfterValidator:
    def checked(texts: tuple[str, ...]) -> tuple[str, ...]:
        wrong = [text for text in texts if not is_expected(text.removeprefix(NOT))]
        if wrong or not texts:
            raise ValueError(f"{', '.join(map(repr, wrong)) or 'no value'}: expected {expected}")
        return texts

    return AfterValidator(checked)


def is_network(text: str) -> bool:
    """Whether a text is an address or a network of them, without bits beyond its own."""
    try:
        ip_network(text)
    except ValueError:
        return False
    return True


def _is_path(text: str) -> bool:
    return text[:1] in ("/", "*") and not set(text) & set("?# ")


#: The values of a condition: a text, or several.
_Some = Annotated[tuple[str, ...], BeforeValidator(_as_texts)]
_Texts = Annotated[_Some, _expected(bool, 'a text, such as "page", or one with * for any characters: "*Pingdom*"')]
_Methods = Annotated[_Some, _expected(_HTTP_METHOD.fullmatch, 'a method, such as "GET" or "!GET"')]
_Statuses = Annotated[_Some, _expected(_STATUS.fullmatch, 'a status, such as 404, "2xx" or "!304"')]
_Hosts = Annotated[_Some, _expected(_HOST.fullmatch, 'a host, such as "shop.example.com" or "*.example.com"')]
_Paths = Annotated[_Some, _expected(_is_path, 'a path without a query, such as "/shop/*" or "*/health"')]
_Endings = Annotated[_Some, _expected(_ENDING.fullmatch, 'an ending of paths, such as ".png"')]
_Clients = Annotated[
    _Some, _expected(is_network, 'an address or a network: "192.0.2.7", "10.0.0.0/8", "2001:db8::/32"')
]


class LineRule(BaseModel):
    """Which lines a rule fits; commented in ``config/sources.toml``. A condition that is left out is no condition."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    method: _Methods | None = None
    status: _Statuses | None = None
    host: _Hosts | None = None
    path: _Paths | None = None
    ending: _Endings | None = None
    url: _Texts | None = None
    client: _Clients | None = None
    user_agent: _Texts | None = None
    referrer: _Texts | None = None
    crawler: bool | None = None
    field: dict[str, _Texts] = Field(default_factory=dict)

    @model_validator(mode="after")
    def has_a_condition(self) -> LineRule:
        """A rule that fits every line, or none, is a mistake."""
        if not self.conditions() and self.crawler is None:
            raise ValueError(
                'a rule without a condition: expected one, such as ending = [".png", ".css"], path = "/admin/*", '
                'client = ["10.0.0.0/8"] or field = { type = "page" }'
            )
        return self

    def conditions(self) -> dict[str, tuple[str, ...]]:
        """The values of each condition but ``crawler``; those of a field of the line as ``field NAME``."""
        texts = self.model_dump(exclude={"name", "crawler", "field"}, exclude_none=True)
        return texts | {field_condition(name): values for name, values in self.field.items()}

    def tested(self) -> set[str]:
        """The roles of a line that it looks at, its own fields and the URL left out."""
        roles = {_ROLES.get(condition, condition) for condition in self.conditions()} - {"url"}
        roles -= {field_condition(name) for name in self.field}
        return roles | ({"user_agent"} if self.crawler is not None else set())


#: The role of which a condition is, where it has another name.
_ROLES = {"client": "client_address", "host": "url", "path": "url", "ending": "url"}


class DropRule(LineRule):
    """Lines that are left out, by the rule's name."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=60)


def field_condition(name: str) -> str:
    """What a condition on a field of the line is called among the others."""
    return f"field {name}"


#: Neither pages nor what a page asks for: pictures, styles, scripts, fonts, sound and films, documents, archives.
STATIC_ENDINGS = tuple(
    f".{ending}"
    for ending in (
        "avif bmp gif ico jpeg jpg png svg svgz tif tiff webp css js map mjs eot otf ttf woff woff2 aac avi flac flv "
        "m4a m4v mkv mov mp3 mp4 mpeg mpg ogg ogv swf wav webm wmv class json txt wasm webmanifest xml csv doc docx "
        "odp ods odt pdf ppt pptx rtf xls xlsx 7z apk bin bz2 deb dmg exe gz iso jar msi pkg rar rpm tar tgz xz zip zst"
    ).split()
)

Count = Literal["lines", "page_views"]
#: By what is counted, which lines are left out for it.
PRESETS: dict[Count, tuple[DropRule, ...]] = {
    "lines": (),
    "page_views": (
        DropRule(name="other_method", method=("!GET",)),
        DropRule(name="other_status", status=("!2xx", "!304")),
        DropRule(name="static_file", ending=STATIC_ENDINGS),
    ),
}


class CountedLines(BaseModel):
    """What of a source's lines is counted: its settings for that."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    count: Count = "lines"
    keep: tuple[LineRule, ...] = Field((), max_length=_MOST_RULES)
    drop: tuple[DropRule, ...] = Field((), max_length=_MOST_RULES)

    @field_validator("drop")
    @classmethod
    def rules_have_names_of_their_own(cls, rules: tuple[DropRule, ...]) -> tuple[DropRule, ...]:
        """What a rule leaves out is counted by its name."""
        names = [rule.name for rule in rules]
        taken = {*_TAKEN, *(rule.name for preset in PRESETS.values() for rule in preset)}
        if wrong := sorted({name for name in names if names.count(name) > 1 or name in taken}):
            raise ValueError(
                f"the name {wrong[0]!r} is taken: expected one that no other rule has, and none of "
                f"{', '.join(sorted(taken))}"
            )
        return rules

    @property
    def drops(self) -> tuple[DropRule, ...]:
        """All rules that leave lines out, the first that fits first: the source's own, and those of what is counted."""
        return (*self.drop, *PRESETS[self.count])

    @property
    def has_rules(self) -> bool:
        """Whether any line may be left out by a rule."""
        return bool(self.drops or self.keep)

    @property
    def tested_fields(self) -> dict[str, str]:
        """The fields that rules look at: the role by which lines have each, such as ``field_0``, to its name."""
        names = sorted({name for rule in (*self.drops, *self.keep) for name in rule.field})
        return {f"field_{number}": name for number, name in enumerate(names)}

    def tests(self, role: str) -> bool:
        """Whether a rule looks at this role of a line."""
        return any(role in rule.tested() for rule in (*self.drops, *self.keep))

    def without_rules(self) -> Self:
        """The same for who looks at every line, counted or not."""
        return self.model_copy(update={"count": "lines", "keep": (), "drop": ()})

    def require_tested(self, roles: Iterable[str]) -> None:
        """See to it that lines have what rules look at; ``roles`` are those that they have.

        Raises:
            ValueError: naming each rule that looks at something else.
        """
        known = {*roles}
        known |= {"method"} if "request" in known else set()
        known |= {"client_address"} if "forwarded_for" in known else set()
        named: list[tuple[str, LineRule]] = [(f"drop {rule.name}", rule) for rule in self.drop]
        named += [(f"count = {self.count}", rule) for rule in PRESETS[self.count]]
        named += [(f"keep {number}", rule) for number, rule in enumerate(self.keep, 1)]
        wrong = [f"{name}: {', '.join(sorted(missing))}" for name, rule in named if (missing := rule.tested() - known)]
        if wrong:
            raise ValueError(
                f"rules look at what the source's lines do not have ({'; '.join(wrong)}); they have "
                f"{', '.join(sorted(known))}: expected it in [fields], or rules of something else"
            )
