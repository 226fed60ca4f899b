"""Every fault that the tests plant in a real small lake, and the checks that must then fail, and no others.

``python -m tests.support.planted_faults`` writes the tables in ``docs/reference/checks.md``; a test compares them with
this list.
"""

from __future__ import annotations

from expectations.checks import Check
from expectations.suites import click_hour_checks, grouping_checks, live, log_hour_checks, schema_drift, volume
from include.settings import REPOSITORY, PipelineSettings
from include.source_fields import LineFields
from include.sources import Source
from include.table_docs import fill_blocks, markdown_table
from tests.support.day_faults import DAY_FAULTS
from tests.support.history_faults import HISTORY_FAULTS
from tests.support.lake_faults import PLANTED, TABLE_WIDE
from tests.support.landed_faults import LANDED
from tests.support.live_faults import LIVE_FAULTS

PAGE = REPOSITORY / "docs" / "reference" / "checks.md"

FAULTS = [
    *LANDED,
    *PLANTED,
    *(fault for faults in TABLE_WIDE for fault in faults),
    *DAY_FAULTS,
    *HISTORY_FAULTS,
    *LIVE_FAULTS,
]


def all_checks() -> dict[str, tuple[str, Check]]:
    """Every built-in check by its name, with what it is of: ``log hour``, ``click hour`` or ``operator``."""
    source = Source(name="web", format="json", fields=LineFields(time="ts", url="url"))
    settings = PipelineSettings()
    by_kind = {
        "log hour": [
            *log_hour_checks(settings, source),
            *volume.log_hour_checks(settings.volume),
            *schema_drift.log_hour_checks(settings.schema_drift),
        ],
        "click hour": [
            *click_hour_checks(settings),
            *live.click_hour_checks(settings.counts),
            *volume.click_hour_checks(settings.volume),
        ],
        "operator": grouping_checks(settings),
    }
    return {f"{check.suite}.{check.name}": (kind, check) for kind, checks in by_kind.items() for check in checks}


def kind_of(name: str) -> str:
    """What a check is of; checks that a source adds are of its log hours."""
    return "log hour" if ".configured_" in name else all_checks()[name][0]


def list_faults() -> str:
    """A Markdown table with one row per fault."""
    rows = []
    for fault in FAULTS:
        also = ", ".join(f"`{name}`" for name in fault.also)
        rows.append((fault.description, kind_of(fault.check), f"`{fault.check}`", fault.severity, also))
    return markdown_table(("planted", "of", "check that fails", "severity", "and with it"), rows)


def list_checks() -> str:
    """A Markdown table with one row per built-in check, and its reason."""
    rows = [
        (f"`{name}`", kind, check.severity, check.holds, check.reason) for name, (kind, check) in all_checks().items()
    ]
    return markdown_table(("check", "of", "severity", "what must hold", "why, and what to do"), rows)


def page() -> str:
    """What ``docs/reference/checks.md`` should be."""
    return fill_blocks(PAGE.read_text(encoding="utf-8"), {"checks": list_checks(), "faults": list_faults()})


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
