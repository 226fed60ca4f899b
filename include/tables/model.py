"""What a table and a column are, and the columns that several tables have."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """One column of a table; ``required`` means never null."""

    name: str
    type: str
    comment: str
    required: bool = True


@dataclass(frozen=True)
class Table:
    """One Delta table under ``lake/<name>``.

    ``statistics`` are the columns whose smallest and largest value Delta keeps per file: few, because they cost
    a fifth of a write; ``bucket_key`` is the column whose hash gives ``bucket``: with it the
    table has a column ``buckets`` too. ``distinct`` are those of which nearly every row has a value of its own: a
    dictionary of them would only cost time and room.
    """

    name: str
    grain: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    partitioned_by: tuple[str, ...] = ()
    statistics: tuple[str, ...] = ()
    distinct: tuple[str, ...] = ()
    bucket_key: str | None = None

    @property
    def column_names(self) -> list[str]:
        """The columns, in order."""
        return [column.name for column in self.columns]

    @property
    def key_type(self) -> str | None:
        """The type of the bucket key's column."""
        return next((column.type for column in self.columns if column.name == self.bucket_key), None)

    @property
    def required_columns(self) -> list[str]:
        """The columns that are never null."""
        return [column.name for column in self.columns if column.required]


SOURCE = Column("source", "STRING", "Name of the source, as in config/sources.toml.")
LOG_HOUR = (
    Column("log_date", "DATE", "Day, UTC, of the landing partition that held the line."),
    Column("log_hour", "INT", "Hour, UTC, 0 to 23, of the landing partition that held the line."),
)
CLICK_HOUR = (
    Column("click_date", "DATE", "Day, UTC, on which the click happened."),
    Column("click_hour", "INT", "Hour, UTC, 0 to 23, in which the click happened."),
)
BY_LOG_HOUR = ("source", "log_date", "log_hour")
BY_CLICK_HOUR = ("click_date", "click_hour")
