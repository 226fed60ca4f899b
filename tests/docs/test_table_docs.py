"""The reference says of the tables and the quarantine reasons what ``include/tables/`` declares."""

from __future__ import annotations

import json

import pytest

from include.errors import ClickmillError
from include.published_contract import contract, renewed
from include.settings import REPOSITORY
from include.table_docs import (
    PUBLISHED_CONTRACT,
    READING_PAGE,
    TABLES_PAGE,
    describe_table,
    describe_tables,
    fill_blocks,
    list_reasons,
    list_tables,
    made_pages,
)
from include.tables import CLICKS_BY_URL_HOURLY, QUARANTINE_REASONS, TABLES, Column, Table

TINY = Table(
    name="tiny",
    grain="one a|b",
    columns=(
        Column("a", "MAP<STRING, BIGINT>", "The first."),
        Column("b", "INT", "The other; null when absent.", required=False),
    ),
    key=("a", "b"),
)


@pytest.mark.parametrize("page", [TABLES_PAGE, READING_PAGE, PUBLISHED_CONTRACT], ids=lambda page: page.name)
def test_page_is_what_the_declarations_make_of_it(page):
    assert page.read_text(encoding="utf-8") == made_pages()[page], (
        f"{page.name} differs from include/tables/; run: .venv/bin/python -m include.table_docs"
    )


@pytest.mark.parametrize(
    ("attribute", "value"), [("type", "INT"), ("may be null", True), ("meaning", "Clicks, without crawlers.")]
)
def test_a_published_column_changes_only_with_the_version(attribute, value):
    written = PUBLISHED_CONTRACT.read_text(encoding="utf-8")
    changed = contract()
    table = changed["tables"]["published_clicks_by_url_daily"]
    table["columns"]["click_count"] = table["columns"]["click_count"] | {attribute: value}
    with pytest.raises(ClickmillError, match=r"published_clicks_by_url_daily has changed.*Raise PUBLISHED_VERSION"):
        renewed(written, changed)
    changed["version"] += 1
    assert json.loads(renewed(written, changed)) == changed


def test_a_published_table_goes_only_with_the_version():
    changed = contract()
    del changed["tables"]["published_clicks_by_country_daily"]
    with pytest.raises(ClickmillError, match="published_clicks_by_country_daily has changed"):
        renewed(PUBLISHED_CONTRACT.read_text(encoding="utf-8"), changed)


def test_every_table_column_and_reason_is_described_with_its_comment():
    tables, reading = (page.read_text(encoding="utf-8") for page in (TABLES_PAGE, READING_PAGE))
    for table in TABLES.values():
        section = tables.partition(f"## {table.name}\n")[2].partition("\n## ")[0]
        for column in table.columns:
            null = "" if column.required else "yes"
            assert f"| `{column.name}` | `{column.type}` | {null} | {column.comment} |" in section
    for reason, meaning in QUARANTINE_REASONS.items():
        assert f"| `{reason}` | {meaning} |" in reading


def test_the_list_links_each_table_to_its_section_and_the_readme_links_the_list():
    page = describe_tables()
    for name in TABLES:
        assert f"| [`{name}`](#{name}) | " in page
        assert f"\n## {name}\n" in page
    assert "](docs/reference/tables.md)" in (REPOSITORY / "README.md").read_text(encoding="utf-8")


def test_table_is_described_by_grain_key_and_columns():
    assert describe_table(TINY) == (
        "## tiny\n\n"
        "One row is one a|b. Key: `a`, `b`.\n\n"
        "| column | type | null | what it is |\n"
        "| --- | --- | --- | --- |\n"
        "| `a` | `MAP<STRING, BIGINT>` |  | The first. |\n"
        "| `b` | `INT` | yes | The other; null when absent. |"
    )


def test_partitions_and_buckets_are_named_where_there_are_any():
    section = describe_table(CLICKS_BY_URL_HOURLY)
    assert "Partitioned by `click_date`, `click_hour`." in section
    assert "Co-partitioned by `url`" in section
    assert "artitioned" not in describe_table(TINY)


def test_a_bar_inside_a_cell_does_not_end_it():
    assert list_tables([TINY]).splitlines()[-1] == "| [`tiny`](#tiny) | one a\\|b |  |"
    assert list_reasons({"odd": "a|b"}).splitlines()[-1] == "| `odd` | a\\|b |"


def test_only_what_stands_between_the_marks_is_replaced():
    text = "before\n<!-- tables: begin -->\nold\n<!-- tables: end -->\nafter\n"
    filled = fill_blocks(text, {"tables": "new"})
    assert filled == "before\n<!-- tables: begin -->\nnew\n<!-- tables: end -->\nafter\n"
    assert fill_blocks(filled, {"tables": "new"}) == filled


@pytest.mark.parametrize(
    "text",
    [
        "no marks",
        "<!-- tables: begin -->",
        "<!-- tables: end -->\n<!-- tables: begin -->",
        "<!-- tables: begin --><!-- tables: begin --><!-- tables: end -->",
    ],
)
def test_marks_that_are_not_there_once_and_in_order_are_an_error(text):
    with pytest.raises(ClickmillError, match=r"expected one line <!-- tables: begin -->"):
        fill_blocks(text, {"tables": "new"})
