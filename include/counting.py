"""Which keys clicks are counted by, and how the clicks are sent to the instances that count them."""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from include.tables import AGGREGATES, CLICKS, Column, Table, arrivals, hourly_table, live_table

CountKey = arrivals.CountKey

#: The grouping by which no click moves before it is counted.
COMBINE = "combine"
#: Groupings that put rows of one key on several instances, whose counts are parts.
_SPLITTING = ("fifo", "shuffle", "custom", "salted_fields")


class CountSettings(BaseModel):
    """One counting operator; what each setting means is commented in ``config/pipeline.toml``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    grouping: Literal["combine", "fifo", "shuffle", "fields", "range", "custom", "salted_fields", "global"] = "combine"
    instances: int | None = Field(None, ge=1, le=128)
    expression: str | None = None
    salts: int | None = Field(None, ge=1)
    hot_keys: tuple[str, ...] = ()
    merge: bool = True

    @model_validator(mode="after")
    def fits_its_grouping(self) -> CountSettings:
        """Each grouping takes its own parameters and no other's."""
        if (self.grouping == "custom") != (self.expression is not None):
            raise ValueError("expression belongs to grouping custom, and it needs one")
        if (self.grouping == "salted_fields") != (self.salts is not None):
            raise ValueError("salts belongs to grouping salted_fields, and it needs a number of them")
        if self.hot_keys and self.grouping != "salted_fields":
            raise ValueError("hot_keys belongs to grouping salted_fields")
        if self.grouping in ("combine", "fifo", "global") and self.instances is not None:
            raise ValueError(f"grouping {self.grouping} has its own number of instances; leave instances out")
        if not self.merge and self.grouping in _SPLITTING:
            raise ValueError(
                f"grouping {self.grouping} splits a key's clicks over instances; without a merge their counts "
                "would be parts; leave merge out, or choose fields, range or global"
            )
        return self


def counts_by_key(configured: dict[CountKey, CountSettings]) -> dict[CountKey, CountSettings]:
    """The operators, those of what is published always among them."""
    return {key: CountSettings() for key in get_args(CountKey) if count_table(key) in AGGREGATES} | configured


def key_label(key: str) -> str:
    """What clicks counted by this key are per, in words and names: ``url``, ``country``, and the further keys."""
    return key.removesuffix("_code")


def counted_tables(counts: dict[CountKey, CountSettings]) -> dict[str, Table]:
    """The tables of hourly counts by what they are per: ``url``, ``country``, and the further keys."""
    return {key_label(key): count_table(key) for key in counts}


def count_table(key: CountKey) -> Table:
    """The table of hourly counts by this key: a declared one, or for another key ``clicks_by_<key>_hourly``."""
    declared = {table.bucket_key: table for table in AGGREGATES}
    if key in declared:
        return declared[key]
    return hourly_table(f"clicks_by_{key}_hourly", _column(key), f"with this {key}")


def live_count_table(key: CountKey) -> Table:
    """The table of live counts of streamed clicks by this key."""
    return live_table(_column(key))


def _column(key: CountKey) -> Column:
    (column,) = (column for column in CLICKS.columns if column.name == key)
    return column
