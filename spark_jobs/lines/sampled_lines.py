"""What fields the sampled lines of a JSON source have, found by the tasks that have the lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from include.sources import Source
from include.stored_rows import arrow_schema
from include.tables import INGEST_ACCOUNTING
from spark_jobs.lines.credentials import without_credentials
from spark_jobs.lines.json_fields import LineShapes, SampledFields
from spark_jobs.lines.masked_addresses import address_mask


def sampled_schema(place: pa.Schema) -> pa.Schema:
    """Rows of ``SampledLines``: where the lines are, and two columns of the tables that keep them."""
    return pa.schema([*place, *arrow_schema(INGEST_ACCOUNTING, ["sampled_lines", "sampled_fields"])])


class SampledLines:
    """The sampled lines of one task, by their place: columns such as the log hour. Few of them are kept."""

    def __init__(self, source: Source, place: Sequence[str]) -> None:
        self._source, self._place = source, list(place)
        self._mask = address_mask(source) or str
        self._shapes: dict[tuple[Any, ...], LineShapes] = {}

    def add(self, arrivals: pa.Table) -> None:
        """Look at those of these arrivals."""
        sampled = arrivals.filter(pc.is_valid(arrivals["sampled"])).select([*self._place, "sampled"])
        for *place, line in zip(*(column.to_pylist() for column in sampled.columns), strict=True):
            self._shapes.setdefault(tuple(place), LineShapes()).add(self._mask(without_credentials(line)))

    def rows(self) -> list[dict[str, Any]]:
        """One row of ``sampled_schema`` per place that has some."""
        # Client addresses are kept in no table of good lines, so not as an example either, and others are masked.
        fields = self._source.fields
        addresses = fields.sampled_paths("client_address") if fields else {}
        rows = []
        for place, shapes in self._shapes.items():
            sampled = shapes.fields().less(left_out=self._source.unwatched_fields, without_example=addresses)
            where = dict(zip(self._place, place, strict=True))
            rows.append(where | {"sampled_lines": sampled.lines, "sampled_fields": sampled.as_rows()})
        return rows


def fields_of(row: Mapping[str, Any]) -> SampledFields:
    """What a row says that has the columns of ``sampled_schema``."""
    return SampledFields.of_rows(row["sampled_lines"], row["sampled_fields"])
