"""What each task reads and writes, for OpenLineage: Airflow's provider asks, once it is told where to send events.

Airflow finds this class by ``AIRFLOW__OPENLINEAGE__EXTRACTORS`` (ops/services/environment.py).
"""

from __future__ import annotations

from pathlib import Path

from airflow.providers.openlineage.extractors.base import BaseExtractor, OperatorLineage
from openlineage.client.event_v2 import Dataset
from openlineage.client.facet_v2 import DatasetFacet, RunFacet, documentation_dataset, schema_dataset

from include.settings import Settings
from include.storage import is_on_disk, key_of, store_of
from include.tables import (
    AGGREGATES,
    CLICKS,
    COUNT_RELEASES,
    DRAWN_COUNTS,
    DUPLICATE_CLICKS,
    GROUPING_METRICS,
    INGEST_ACCOUNTING,
    JOURNAL,
    PUBLISHED,
    PUBLISHED_CLICKS_BY_COUNTRY_HOURLY,
    QUALITY_RESULTS,
    QUARANTINED_CLICKS,
    RELEASED_CLICKS_BY_COUNTRY_AND_URL_DAILY,
    RELEASED_CLICKS_BY_COUNTRY_DAILY,
    REPLAY_OUTCOMES,
    REPLAYED_LINES,
    STREAM_BATCHES,
    STREAM_PROGRESS,
    UNFINISHED_INGESTS,
    Table,
    daily_table,
)

#: Click logs as they arrive.
LANDING_ZONE = "landing zone"
Data = Table | str

_LINES = (CLICKS, DUPLICATE_CLICKS, QUARANTINED_CLICKS)
_ARRIVED = (*_LINES, INGEST_ACCOUNTING)
_COUNTS = (*AGGREGATES, *map(daily_table, AGGREGATES))
_PUBLISHED = (*PUBLISHED, *PUBLISHED.values())
_PUBLISH = ((*AGGREGATES, INGEST_ACCOUNTING, QUALITY_RESULTS, JOURNAL), (*_PUBLISHED, JOURNAL))
#: What a run over log hours writes.
_RUN = (*_ARRIVED, UNFINISHED_INGESTS, *_COUNTS, GROUPING_METRICS, *_PUBLISHED, QUALITY_RESULTS, JOURNAL)
#: Of each task that changes the lake, what it reads and what it writes.
READ_AND_WRITTEN: dict[str, tuple[tuple[Data, ...], tuple[Table, ...]]] = {
    "ingest_clicks": ((LANDING_ZONE, CLICKS, INGEST_ACCOUNTING, STREAM_BATCHES), (*_ARRIVED, UNFINISHED_INGESTS)),
    "aggregate_clicks": ((CLICKS, INGEST_ACCOUNTING), (*_COUNTS, GROUPING_METRICS)),
    "validate_clicks": ((*_ARRIVED, *_COUNTS, GROUPING_METRICS, QUALITY_RESULTS, JOURNAL), (QUALITY_RESULTS, JOURNAL)),
    "publish_clicks": _PUBLISH,
    "stream_clicks": ((LANDING_ZONE, CLICKS), (*_LINES, STREAM_BATCHES, STREAM_PROGRESS)),
    "decide_held": _PUBLISH,
    "run_chunk": ((LANDING_ZONE,), _RUN),
    "decide_backfill": _PUBLISH,
    "replay_quarantined": ((LANDING_ZONE, *_LINES), (*_RUN, REPLAYED_LINES, REPLAY_OUTCOMES)),
    "erase_visitor": ((LANDING_ZONE, *_LINES), (*_RUN, STREAM_BATCHES)),
    "undo_backfill": (tuple(PUBLISHED), (*_PUBLISHED, JOURNAL)),
    "release_counts": (
        (CLICKS, INGEST_ACCOUNTING, QUALITY_RESULTS, PUBLISHED_CLICKS_BY_COUNTRY_HOURLY),
        (DRAWN_COUNTS, COUNT_RELEASES, RELEASED_CLICKS_BY_COUNTRY_AND_URL_DAILY, RELEASED_CLICKS_BY_COUNTRY_DAILY),
    ),
}


class TaskLineage(BaseExtractor):
    """The datasets of one of Clickmill's tasks; none of a task that leaves the lake as it is."""

    @classmethod
    def get_operator_classnames(cls) -> list[str]:
        """The operator of all tasks that work on the lake."""
        return ["_PySparkDecoratedOperator"]

    def _execute_extraction(self) -> OperatorLineage[Dataset, RunFacet]:
        settings = Settings.from_environment()
        read, written = READ_AND_WRITTEN.get(self.operator.task_id, ((), ()))
        return OperatorLineage(
            inputs=[dataset(settings, data) for data in read], outputs=[dataset(settings, data) for data in written]
        )


def dataset(settings: Settings, data: Data) -> Dataset:
    """The landing zone or a table, with its columns, named by where it is.

    Names are as OpenLineage has them for files and object stores: https://openlineage.io/docs/spec/naming.
    """
    if isinstance(data, str):
        return Dataset(*_name(settings.landing))
    columns = [
        schema_dataset.SchemaDatasetFacetFields(column.name, column.type, column.comment) for column in data.columns
    ]
    facets: dict[str, DatasetFacet] = {
        "schema": schema_dataset.SchemaDatasetFacet(columns),
        "documentation": documentation_dataset.DocumentationDatasetFacet(f"One row is {data.grain}."),
    }
    return Dataset(*_name(settings.lake / data.name), facets=facets)


def _name(path: Path) -> tuple[str, str]:
    if is_on_disk(path):
        return "file", str(path)
    bucket, _, key = key_of(path).partition("/")
    return store_of(str(path)) + bucket, key
