"""What makes a site's URLs many: query parameters, path parameters, or ids in paths. From some of its clicks' URLs."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import parse_qsl, unquote

from include.page_settings import HOLE_TYPES, PageSettings
from include.texts import as_printable, crop_middle, plural
from spark_jobs.lines.urls import Tracking

#: A part of URLs has many values if there are so many, in so large a share of the clicks that have it.
_MANY_VALUES, _MANY_SHARE = 20, 0.5
#: URLs are few without some parts if so small a share is left; and of the parts with the most values so many are tried.
_FEW_SHARE, _MOST_PARTS = 0.5, 12
#: Of a sample's n clicks hardly any two are of the same of more than n * n / 20 URLs.
_PAIRS = 20
_MOST_CHARACTERS = 100
#: Ids are looked for in so many segments of a path, and no more.
_MOST_SEGMENTS = 20
#: Letters and digits, too many for a word, such as a key in base 62: an id of none of the types of holes.
_TOKEN = re.compile(r"(?=[^/]*[0-9])[0-9A-Za-z]{16,}")
_TYPES = {name: re.compile(expression) for name, expression in HOLE_TYPES.items() if name}
#: No pattern of paths has one of these but in its holes.
_IN_NO_PATTERN = re.compile(r"[*{}\s\\]")


@dataclass(frozen=True, order=True)
class Part:
    """What differs between URLs; ``name`` is the parameter's, or the pattern of paths that have ids in its holes."""

    kind: Literal["parameter", "path parameter", "path"]
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {crop_middle(as_printable(self.name), _MOST_CHARACTERS)}"


@dataclass(frozen=True)
class ManyValues(Part):
    """A part with many values, in the ``lines`` of the sample that have it."""

    values: int
    lines: int

    @property
    def part(self) -> Part:
        """Which one."""
        return Part(self.kind, self.name)

    def __str__(self) -> str:
        return f"{self.part}: {plural(self.values, 'value')} in {plural(self.lines, 'line')}"


@dataclass(frozen=True)
class _Url:
    """A URL: the values of its parts, and the rest, which is in no part."""

    rest: str
    values: tuple[tuple[Part, str], ...]

    def without(self, parts: Collection[Part]) -> tuple[str, tuple[tuple[Part, str], ...]]:
        return self.rest, tuple(value for value in self.values if value[0] not in parts)


class UrlSample:
    """The URLs of some clicks of a site, one for each click; ``kept`` are parameters that its pages are known to have.

    A name in ``kept`` that ends in ``*`` stands for all that start so.
    """

    def __init__(self, urls: Iterable[str], kept: Collection[str] = ()) -> None:
        texts = Counter(urls)
        holes, is_kept = _holes(texts), Tracking(tuple(kept))
        self._urls = {_parsed(text, holes, is_kept): clicks for text, clicks in texts.items()}
        self._clicks = texts.total()

    def many_values(self) -> list[ManyValues]:
        """The parts with many values, those with the most first."""
        return [
            each
            for each in self._by_values()
            if each.values >= _MANY_VALUES and each.values >= _MANY_SHARE * each.lines
        ]

    def causes(self, urls: int | None = None) -> list[ManyValues]:
        """The parts without all of which the URLs would be few, less than half as many; none if no parts are that.

        ``urls`` is the number of different URLs of all clicks, if the sample has only a few of those.
        """
        most = min(urls or len(self._urls), max(self._clicks**2 // _PAIRS, len(self._urls)))

        def are_few_without(parts: Collection[Part]) -> bool:
            return self._number_without(parts) <= _FEW_SHARE * most

        causes: list[ManyValues] = []
        for part in self._by_values()[:_MOST_PARTS]:
            if are_few_without([each.part for each in causes]):
                break
            causes.append(part)
        if not causes or not are_few_without([each.part for each in causes]):
            return []
        for part in list(causes):
            others = [each for each in causes if each != part]
            if are_few_without([each.part for each in others]):
                causes = others
        return causes

    def _by_values(self) -> list[ManyValues]:
        values: dict[Part, set[str]] = {}
        lines: Counter[Part] = Counter()
        for url, clicks in self._urls.items():
            for part, value in url.values:
                values.setdefault(part, set()).add(value)
                lines[part] += clicks
        many_values = [ManyValues(part.kind, part.name, len(of_part), lines[part]) for part, of_part in values.items()]
        return sorted(many_values, key=lambda each: (-each.values, each.part))

    def _number_without(self, parts: Collection[Part]) -> float:
        """How many URLs the site would have: Chao's lower bound, from those that are in the sample once and twice."""
        clicks: Counter[object] = Counter()
        for url, number in self._urls.items():
            clicks[url.without(parts)] += number
        frequencies = Counter(clicks.values())
        once, twice = frequencies[1], frequencies[2]
        return len(clicks) + once * (once - 1) / (2 * (twice + 1))


def kept_parameters(pages: PageSettings | None) -> tuple[str, ...]:
    """Parameters that a person has said a source's pages have."""
    return (pages and pages.keep_parameters) or ()


def setting_against(parts: Sequence[Part], source: str, pages: PageSettings | None) -> str:
    """What is to be written, so that one page is counted under one URL, whatever is in these parts."""
    pages = pages or PageSettings()
    drop = [*pages.drop_parameters, *(part.name for part in parts if part.kind == "parameter")]
    paths = [*pages.paths, *(part.name for part in parts if part.kind == "path")]
    of_all = [part.name for part in parts if part.kind == "path parameter"]
    entries = [
        f"{name} = {json.dumps(values, ensure_ascii=False)}"
        for name, values in (("drop_parameters", drop), ("paths", paths))
        if len(values) > len(getattr(pages, name))
    ]
    settings = [f"[sources.{source}.pages] {', '.join(entries)}"] if entries else []
    if of_all:
        settings.append(f"tracking_parameters = {json.dumps(of_all, ensure_ascii=False)} in config/pipeline.toml")
    return as_printable("; ".join(settings))


def described_causes(causes: Sequence[ManyValues], source: str, pages: PageSettings | None) -> str:
    """``because of the parameter session (1,983 values in 2,000 lines): …``, what to set; and if there are none."""
    if not causes:
        return "because of no parameter, nor ids in their paths, that could be left out"
    parts = " and ".join(
        f"the {each.part} ({plural(each.values, 'value')} in {plural(each.lines, 'line')})" for each in causes
    )
    return f"because of {parts}: {setting_against(causes, source, pages)}"


def _site_path_query(url: str) -> tuple[str, str, str]:
    """Scheme and host, path and query."""
    page, _, query = url.partition("?")
    start = page.find("/", page.find("://") + 3)
    return (page[:start], page[start:], query) if start >= 0 else (page, "", query)


def _segments(path: str) -> tuple[list[str], list[tuple[Part, str]]]:
    """The segments of a path without their parameters, and these."""
    segments, parameters = [], []
    for text in path.split("/")[1:]:
        segment, *others = text.split(";")
        segments.append(segment)
        for other in others:
            name, _, value = other.partition("=")
            parameters.append((Part("path parameter", unquote(name)), value))
    return segments, parameters


def _type_of(segment: str) -> str | None:
    """The type of the hole that an id fits; "" if none does, None of what is no id."""
    for name, expression in _TYPES.items():
        if expression.fullmatch(segment):
            return name
    return "" if _TOKEN.fullmatch(segment) else None


def _holes(urls: Iterable[str]) -> Mapping[tuple[str, ...], str]:
    """The places in paths that have ids of many things, and not just years or versions, each with its holes' type.

    A place is the segments before it, those with ids as "*".
    """
    ids: dict[tuple[str, ...], set[str]] = {}
    for url in urls:
        before: tuple[str, ...] = ()
        for segment in _segments(_site_path_query(url)[1])[0][:_MOST_SEGMENTS]:
            if (type_ := _type_of(segment)) is not None:
                ids.setdefault(before, set()).add(segment)
            before = (*before, segment if type_ is None else "*")
    return {
        place: types.pop() if len(types := {_type_of(id_) or "" for id_ in of_place}) == 1 else ""
        for place, of_place in ids.items()
        if len(of_place) >= _MANY_VALUES
    }


def _parsed(url: str, holes: Mapping[tuple[str, ...], str], is_kept: Tracking) -> _Url:
    site, path, query = _site_path_query(url)
    segments, values = _segments(path)
    rest = segments
    if not _IN_NO_PATTERN.search(path) and (places := list(_places(segments, holes))):
        end = places[-1][0] + 1
        written = list(segments)
        for number, (place, type_) in enumerate(places, start=1):
            name = "id" if number == 1 else f"id{number}"
            written[place] = f"{{{name}:{type_}}}" if type_ else f"{{{name}}}"
        pattern = "/" + "/".join(written[:end]) + ("/*" if segments[end:] else "")
        values.append((Part("path", pattern), "/".join(segments[place] for place, _ in places)))
        rest = [pattern, *segments[end:]]
    of_pages = []
    for name, value in parse_qsl(query, keep_blank_values=True):
        if is_kept[name]:
            of_pages.append(f"{name}={value}")
        else:
            values.append((Part("parameter", name), value))
    return _Url("/".join((site, *rest, *of_pages)), tuple(values))


def _places(segments: Sequence[str], holes: Mapping[tuple[str, ...], str]) -> Iterator[tuple[int, str]]:
    """Where a path has ids of many things, and the type of such a hole."""
    before: tuple[str, ...] = ()
    for number, segment in enumerate(segments[:_MOST_SEGMENTS]):
        is_id = _type_of(segment) is not None
        if is_id and before in holes:
            yield number, holes[before]
        before = (*before, "*" if is_id else segment)
