"""Advise on how to partition clicks over parallel instances, from the keys of real clicks.

Partitions the clicks of the log hours by each grouping over each number of instances, and shows: clicks of the least
and the most loaded instance, skew (largest over mean), idle instances, keys on several instances (whose counts must
be merged), clicks out of order (those that an instance handles after a later click of the same key, by clicked_at, in
the order in which the rows reach it) and the expected speed-up (all clicks over the largest instance's). Names
the hot keys and recommends a grouping, a number of instances and a salt. Nothing is written but the page asked for.

Of a range with more than 1,500,000 clicks whole log hours are drawn, the same ones each time, with at most so many
together; --all looks at all.

By default no click moves: tasks count those that they read, and their counts are combined (grouping combine). The
advice is for counts that need a key's clicks in one place or order.

With --measure the clicks are counted by each of them too, and what that took is shown beside the expectation. With
--json the same figures are printed as JSON; their names are in spark_jobs/grouping/advice_values.py.
"""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console

from include.command import exit_with
from include.documents.page import render_document
from include.documents.terminal import print_document, print_line
from include.errors import UsageError
from include.job_arguments import JobArguments, job_parser
from include.pages.render import write_page
from include.settings import Settings
from include.sources import choose_sources
from spark_jobs.engine.session import spark_session
from spark_jobs.grouping.advice import GROUPINGS, KEYS
from spark_jobs.grouping.advice_document import advice_document
from spark_jobs.grouping.advice_values import as_json
from spark_jobs.grouping.job import MOST_CLICKS, AdviceRequest, give_advice


def _counts(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"--instances {text!r}: expected whole numbers above 0, such as 1,2,4,8,16") from None


def _require_writable(page: Path) -> None:
    if page.is_dir() or not page.absolute().parent.is_dir():
        raise UsageError(f"--html {page}: expected a file in a folder that is there")


def main() -> None:
    """The job from a shell."""
    parser = job_parser("spark_jobs.advise_grouping", __doc__)
    parser.add_argument("--key", required=True, help=f"the key to count by: {', '.join(KEYS)}")
    parser.add_argument("--instances", default="1,2,4,8,16", metavar="N,N…", help="how many; default: 1,2,4,8,16")
    parser.add_argument("--groupings", metavar="NAME,…", help=f"some of {', '.join(GROUPINGS)}; default: all")
    parser.add_argument("--expression", metavar="SQL", help="what grouping custom goes by; without it there is none")
    parser.add_argument(
        "--salt",
        type=int,
        metavar="N",
        help="split keys over N instances (over all where there are fewer); default: the recommended number. "
        "Split are the hot keys; every key where none is hot",
    )
    parser.add_argument("--measure", action="store_true", help="count the clicks by each too, four times, and time it")
    parser.add_argument("--all", action="store_true", help="look at all clicks, however many; none are drawn")
    parser.add_argument("--json", action="store_true", help="print JSON, not tables")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the tables and charts to this page too")
    given = parser.parse_args()
    arguments = JobArguments.of(given.source, given.start, given.end, given.hour)
    groupings = tuple(given.groupings.split(",")) if given.groupings is not None else ()
    most_clicks = None if given.all else MOST_CLICKS
    request = AdviceRequest(given.key, _counts(given.instances), groupings, given.expression, given.salt, most_clicks)
    settings = Settings.from_environment()
    choose_sources(settings, arguments.source)
    if given.html is not None:
        _require_writable(given.html)
    with spark_session(settings) as spark, Console(stderr=True).status("partitioning the clicks"):
        advice = give_advice(spark, settings, arguments, request, is_measured=given.measure)
    document = advice_document(advice)
    if given.html is not None:
        write_page(render_document(document), given.html)
    if given.json:
        print(json.dumps(as_json(advice), indent=2))
        return
    print_document(Console(), document)
    if given.html is not None:
        print_line(Console(), f"Page: {given.html}")


if __name__ == "__main__":
    exit_with(main)
