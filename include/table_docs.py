"""The parts of the reference that are generated from ``include/tables/``.

These are the tables, the quarantine reasons and the contract of the published tables.

``python -m include.table_docs`` writes them; a test compares them with the declarations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from include.command import OneLineParser, exit_with
from include.errors import ClickmillError
from include.home import REPOSITORY
from include.published_contract import contract, renewed
from include.tables import QUARANTINE_REASONS, TABLES, Column, Table

REFERENCE = REPOSITORY / "docs" / "reference"
TABLES_PAGE = REFERENCE / "tables.md"
READING_PAGE = REFERENCE / "reading.md"
PUBLISHED_CONTRACT = REFERENCE / "published.json"
#: Says where a made page comes from, so that nobody edits it by hand.
MADE_FROM = "<!-- Made from include/tables/ by: .venv/bin/python -m include.table_docs -->"


def list_tables(tables: Iterable[Table]) -> str:
    """A Markdown table with one row per table; each name links to its section of the page."""
    rows = [(f"[`{table.name}`](#{table.name})", table.grain, _names(table.partitioned_by)) for table in tables]
    return markdown_table(("table", "one row is", "partitioned by"), rows)


def list_reasons(reasons: Mapping[str, str]) -> str:
    """A Markdown table with one row per quarantine reason, in the order in which they are looked for."""
    return markdown_table(("reason", "meaning"), [(f"`{name}`", meaning) for name, meaning in reasons.items()])


def describe_table(table: Table) -> str:
    """A section: the grain, the key, the partitions, and one row per column."""
    facts = [f"One row is {table.grain}.", f"Key: {_names(table.key)}."]
    if table.partitioned_by:
        facts.append(f"Partitioned by {_names(table.partitioned_by)}.")
    if table.bucket_key:
        facts.append(f"Co-partitioned by `{table.bucket_key}`.")
    columns = markdown_table(("column", "type", "null", "what it is"), [_column_row(c) for c in table.columns])
    return f"## {table.name}\n\n{' '.join(facts)}\n\n{columns}"


def describe_tables() -> str:
    """The whole of ``docs/reference/tables.md``."""
    return (
        "\n\n".join(
            [
                "# Tables",
                MADE_FROM,
                "Delta tables, each in `$CLICKMILL_HOME/lake/<name>`, or in `lake/` of `CLICKMILL_DATA`. All hours are "
                "UTC, and days too, but in the daily tables. The log hour is the hour in which a line arrived, the "
                "click hour the hour in which the click happened. The tables themselves carry the same comments. "
                "`published_*` are for other readers: they change only with the version in "
                "[published.json](published.json); see [reading the results](../guides/reading-results.md).",
                list_tables(TABLES.values()),
                *map(describe_table, TABLES.values()),
            ]
        )
        + "\n"
    )


def fill_blocks(text: str, blocks: Mapping[str, str]) -> str:
    """The text with what stands between ``<!-- NAME: begin -->`` and ``<!-- NAME: end -->`` replaced.

    Raises:
        ClickmillError: if a mark is not there exactly once.
    """
    for name, block in blocks.items():
        begin, end = (f"<!-- {name}: {which} -->" for which in ("begin", "end"))
        if text.count(begin) != 1 or text.count(end) != 1 or text.index(end) < text.index(begin):
            raise ClickmillError(
                f"cannot place the block {name!r}: expected one line {begin} and after it one line {end}"
            )
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}\n{block}\n{end}{rest.partition(end)[2]}"
    return text


def made_pages() -> dict[Path, str]:
    """Each page that is generated, in whole or in part, with what it should hold.

    Raises:
        ClickmillError: if the published tables have changed, and their version has not.
    """
    reading = fill_blocks(READING_PAGE.read_text(encoding="utf-8"), {"reasons": list_reasons(QUARANTINE_REASONS)})
    published = renewed(PUBLISHED_CONTRACT.read_text(encoding="utf-8"), contract())
    return {TABLES_PAGE: describe_tables(), READING_PAGE: reading, PUBLISHED_CONTRACT: published}


def _column_row(column: Column) -> tuple[str, str, str, str]:
    return f"`{column.name}`", f"`{column.type}`", "" if column.required else "yes", column.comment


def _names(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def markdown_table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """The rows as a table of Markdown; a bar in a cell stays one."""
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def main() -> None:
    """Write the pages."""
    OneLineParser(prog="python -m include.table_docs", description=__doc__).parse_args()
    for page, text in made_pages().items():
        page.write_text(text, encoding="utf-8")
        print(page)


if __name__ == "__main__":
    exit_with(main)
