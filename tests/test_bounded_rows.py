"""Rows that jobs take into their process: each place is listed with what bounds them.

What grows with clicks or keys is written by tasks, or read in batches (docs/adr/0055-counts-are-written-by-tasks.md). A
new place is to be on the list with its reason, or to do that.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from include.home import REPOSITORY

#: By these, all rows of a query, a file, a reader or a batch are in memory at once.
FETCHING = {
    "collect", "read_all", "read_rows", "read_table", "to_arrow_table", "to_pandas", "to_pyarrow_table", "to_pylist",
    "to_table", "toArrow", "toLocalIterator", "toPandas",
}  # fmt: skip
#: Rooms whose functions are given pieces of some megabytes, or a sample.
OF_PIECES = {"lines", "inspection"}

#: What bounds the rows, and where they are taken: a module below spark_jobs, and in it a function.
BOUNDED = {
    "log hours or click hours, their checks, events or sums: so many for each hour that is asked for": [
        "backfill/compare.py _changes",
        "backfill/plan.py _landed",
        "backfill/undo.py _published_by_others",
        "erasure/accounts.py _first_hours",
        "aggregate/days.py _lacking",
        "engine/fact_frames.py _rows",
        "erasure/tables.py _add",
        "hours/finalise.py _streamed",
        "hours/held_hours.py published_at",
        "hours/held_hours.py results_of",
        "hours/held_hours.py states_between",
        "hours/stream_batches.py _sum_up",
        "hours/touched_hours.py UnfinishedIngests.of",
        "hours/touched_hours.py _accounting_around",
        "ids/repeated_ids.py changed_hours",
        "ids/repeated_ids.py count_repeated",
        "ingest/source_ingest.py SourceIngest.planned",
        "publish/periods.py _days",
        "publish/periods.py _hours",
        "publish/releases.py _clicks_per_hour",
        "publish/releases.py _had_clicks",
        "publish/report_data.py _accounting",
        "publish/report_data.py _clicks_per_hour",
        "publish/report_data.py _loads",
        "publish/shown_hold.py _clicks",
        "publish/shown_hold.py numbers_of_hold",
        "quality/facts.py _stored_facts",
        "quality/facts.py live_progress",
        "quality/many_urls.py url_facts",
        "replay/streamed_replay.py _counted",
        "replay/streamed_replay.py _counted_clicks",
        "replay/withdrawals.py counted_by_outcome",
        "retention/old_clicks.py _accounts",
        "retention/old_counts.py _open_click_hours",
        "stream/resume.py StreamStart.earlier_batches",
    ],
    "those of a visitor, and others of the same moments": [
        "erasure/joined.py _Marked.alike",
        "erasure/tables.py find_joined",
    ],
    "drawings of noise for a day": ["publish/releases.py drawings"],
    "files, or what tasks say of those that they have written": [
        "engine/worker_tasks.py run_tasks",
        "engine/worker_tasks.py run_tasks.run",
        "erasure/erase.py Erasure._files_ingested",
        "ingest/spark_arrivals.py _listed",
        "lake/data_files.py TableVersion.chosen",
        "lake/data_files.py TableVersion.not_chosen",
        "lake/new_files.py write_files",
        "stream/files.py FilesInput._files_in_lake",
        "stream/ids_of_clicks.py _still_known",
        "stream/ids_of_clicks.py with_ids_of_clicks",
        "stream/written_rows.py _read",
        "stream/written_rows.py write_rows",
    ],
    "those whose files, and those of their hours, have 16 MiB or less": [
        "lake/lake.py Lake.merge_click_hours",
        "lake/new_files.py write_files",
    ],
    "the first so many, or a fixed number": [
        "aggregate/co_partitioning.py row_differences",
        "engine/spark_status.py SparkStatus.catch_up",
        "grouping/job.py _repartition",
        "grouping/job.py give_advice",
        "ingest/out_of_order_keys.py log_out_of_order_keys",
        "publish/busiest_keys.py busiest_keys",
        "publish/shown_movers.py read_movers",
        "quality/examples.py with_examples",
    ],
    "a piece of a file, or in a task a micro-batch's outcomes": [
        "erasure/accounts.py _add",
        "erasure/joined.py _Marked.add",
        "erasure/kept_rows.py are_at",
        "erasure/matches.py Words.of_texts",
        "erasure/tables.py _names",
        "erasure/tables.py _redacted_rows",
        "erasure/tables.py _select",
        "ids/duplicates.py _accepted_hours",
        "ingest/decided_files.py _duplicates",
        "landing/land.py _lines",
        "publish/releases.py draw.with_noise",
        "publish/releases.py sums",
        "stream/written_rows.py rows_written",
    ],
    "countries": ["publish/releases.py _published_per_hour", "publish/releases.py bounded_day"],
}


def test_rows_that_a_job_takes_into_its_process_are_bounded() -> None:
    listed = {place for places in BOUNDED.values() for place in places}
    code_places = set(fetching_places())
    assert code_places - listed == set(), "write these rows by tasks or read them in batches, or say what bounds them"
    assert listed - code_places == set(), "these take no rows any more: take them off the list"


def fetching_places() -> Iterator[str]:
    rooms = REPOSITORY / "spark_jobs"
    for module in rooms.rglob("*.py"):
        name = module.relative_to(rooms)
        if name.parts[0] not in OF_PIECES:
            for function in _functions(ast.parse(module.read_text(encoding="utf-8")), ()):
                yield f"{name} {function}"


def _functions(node: ast.AST, within: tuple[str, ...]) -> Iterator[str]:
    """The functions that call one of ``FETCHING``, each with the classes and functions around it."""
    for child in ast.iter_child_nodes(node):
        names = (*within, child.name) if isinstance(child, ast.FunctionDef | ast.ClassDef) else within
        if isinstance(child, ast.Call) and _name(child.func) in FETCHING:
            yield ".".join(names)
        yield from _functions(child, names)


def _name(function: ast.expr) -> str | None:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else None
