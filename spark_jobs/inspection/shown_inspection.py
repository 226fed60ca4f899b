"""An inspection as a document."""

from __future__ import annotations

from include.documents.model import Column, Document, Line, Table
from include.page_settings import PageSettings
from include.texts import as_count, as_share, as_size, crop_middle, plural
from spark_jobs.inspection.inspection import Inspection
from spark_jobs.inspection.readings import BASE_URL
from spark_jobs.inspection.source_toml import as_toml
from spark_jobs.lines.kept import reason_of_rule, rule_of_reason
from spark_jobs.lines.many_urls import described_causes, setting_against

_EXAMPLE_CHARACTERS = 200
_MOST_COUNTRIES = 8


def inspection_document(inspection: Inspection, name: str) -> Document:
    """What the file is, how its lines are read, and last the table ``[sources.NAME]`` to write, if it is new."""
    if inspection.refused:
        return Document((), verdict=(Line(inspection.refused, "failed"),))
    looked_at = f"{plural(inspection.lines, 'line')} looked at"
    if not inspection.is_whole:
        looked_at += f", {as_count(inspection.end)} of them at its end" if inspection.end else ", from its beginning"
    blocks: list[Line | Table] = [
        Line(f"{inspection.file}: {as_size(inspection.size)}, {inspection.content}; {looked_at}")
    ]
    if not inspection.settings:
        return Document((*blocks, *_examples(inspection)), verdict=_unknown(inspection))
    blocks += [*_rows(inspection), *_examples(inspection), *map(Line, _counts(inspection, name))]
    if not inspection.is_declared:
        toml = (Line(f"  {line}".rstrip(), "code") for line in as_toml(name, inspection.settings).splitlines())
        blocks += [Line("for config/sources.toml (--write adds it):", "strong"), *toml]
    return Document(tuple(blocks), title=_title(inspection), verdict=_doubt(inspection))


def _title(inspection: Inspection) -> str:
    clicks = round(inspection.share * inspection.lines)
    title = f"{inspection.title}: {as_share(clicks, inspection.lines)} of the lines fit"
    if inspection.others:
        others = ", ".join(f"{name} {share:.0%}" for name, share in inspection.others[:3])
        title += f"; others that fit: {others}"
    return title


def _doubt(inspection: Inspection) -> tuple[Line, ...]:
    """Why it is not sure, and is not written by ``--write``."""
    if inspection.is_sure:
        return ()
    return Line(f"not sure: {inspection.doubt}", "warned"), Line(
        "--write does not add it; if it is right, add it yourself"
    )


def _unknown(inspection: Inspection) -> tuple[Line, ...]:
    if not inspection.lines:
        return (Line(f"{inspection.file} is empty", "failed"),)
    return (
        Line("no format is known that reads these lines", "failed"),
        Line(inspection.look),
        Line("docs/guides/log-formats.md"),
    )


def _rows(inspection: Inspection) -> list[Line | Table]:
    if not inspection.rows:
        return []
    columns = (Column("Time, UTC", "name"), Column("Country", "name"), Column("Status"), Column("URL", "key"))
    rows = tuple(
        (
            f"{row['clicked_at']:%Y-%m-%d %H:%M:%S}",
            row["country_code"],
            "" if row["status"] is None else str(row["status"]),
            row["url"],
        )
        for row in inspection.rows
    )
    return [Table("As the first clicks would be read", columns, rows)]


def _examples(inspection: Inspection) -> list[Line | Table]:
    """Of lines that are no clicks, why, and the first of each kind."""
    others = [each for each in inspection.outcomes if each.reason not in (None, reason_of_rule("header"))]
    if not others:
        return []
    columns = (Column("Lines"), Column("Are", "name"), Column("First"), Column("Such as", "key"))
    rows = tuple(
        (
            as_count(outcome.lines),
            f"left out: {rule}" if (rule := rule_of_reason(outcome.reason or "")) else outcome.reason or "",
            as_count(outcome.number),
            crop_middle(outcome.example, _EXAMPLE_CHARACTERS),
        )
        for outcome in others
    )
    return [Table("Lines that would be no clicks", columns, rows)]


def _pages(inspection: Inspection, name: str) -> list[str]:
    """How many URLs there are, and what of them has many values."""
    pages = PageSettings.model_validate(inspection.pages)
    lines = [f"pages: {plural(inspection.urls, 'different URL')}"]
    if inspection.many_because is not None:
        lines[0] += f": nearly all are different, {described_causes(inspection.many_because, name, pages)}"
    others = [each for each in inspection.many_values if each not in (inspection.many_because or ())]
    lines += [f"  {many}" for many in others]
    if others:
        lines.append(f"  if one page has all of them: {setting_against(others, name, pages)}")
    return lines


def _counts(inspection: Inspection, name: str) -> list[str]:
    lines = []
    if inspection.first_hour:
        until = f" to {inspection.last_hour}" if inspection.hours > 1 else ""
        lines.append(f"{plural(inspection.hours, 'hour')}: {inspection.first_hour}{until}")
    countries = list(inspection.countries.items())[:_MOST_COUNTRIES]
    named = ", ".join(f"{code} {as_count(count)}" for code, count in countries)
    lines.append(f"countries: {named or 'none known'}; clicks of crawlers: {as_count(inspection.crawlers)}")
    lines += _pages(inspection, name)
    if inspection.has_local_times and not inspection.is_declared:
        lines.append("its times have no offset: if the zone below is wrong, --time-zone Europe/Berlin")
    if inspection.settings.get("base_url") == BASE_URL and not inspection.is_declared:
        are_alone = any(row["url"].startswith(f"{BASE_URL}/") for row in inspection.rows)
        lines.append(
            f"its lines have no host: put your site in place of {BASE_URL} (--base-url)"
            if are_alone
            else "its lines have hosts: base_url is for those that have none"
        )
    return lines
