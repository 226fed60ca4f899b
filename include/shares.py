"""The shares by which each log hour is judged: settings, checks and what is measured follow from ``SHARES``."""

from __future__ import annotations

from dataclasses import dataclass

from include.tables import CLICKS, QUARANTINE_REASONS, QUARANTINED_CLICKS, UNKNOWN_COUNTRY
from include.texts import as_literal


@dataclass(frozen=True)
class Share:
    """A part of a log hour's lines or clicks: ``rows``, in Spark's SQL, is true of its rows in ``table``.

    It is null where no single rows are to blame. ``holds`` is what is said of it after "at most 5% of". Above
    ``warning`` an hour is published and shown, above ``critical`` it is held, unless source or pipeline say otherwise.
    The rows are counted in the one pass over all clicks; those of the quarantine, and late ones, are counted by hours
    (``expectations/frames.py``). ``finding`` is the frame's column that says more of what was found.
    """

    rows: str | None
    holds: str
    reason: str
    warning: float
    critical: float | None = None
    table: str = CLICKS.name
    is_counted: bool = True
    finding: str | None = None


#: Shares of the lines that are in quarantine, by reason: the metric and the reason.
QUARANTINED_SHARES = {f"quarantined_{reason}_share": reason for reason in QUARANTINE_REASONS}

#: By the metric, which is the name of the check too.
SHARES = {
    "quarantined_share": Share(
        "true",
        "the lines are in quarantine",
        "A source may have changed its format. See quarantined_clicks for the reasons.",
        warning=0.05,
        critical=0.5,
        table=QUARANTINED_CLICKS.name,
        is_counted=False,
    ),
    "late_share": Share(
        "unix_date(click_date) * 24 + click_hour < unix_date(log_date) * 24 + log_hour",
        "the clicks are of an earlier hour",
        "The uploader may be behind, or a clock wrong. The hours in which they happened are counted again.",
        warning=0.25,
        is_counted=False,
    ),
    "unknown_country_share": Share(
        f"country_code = {as_literal(UNKNOWN_COUNTRY)}",
        "the clicks have an unknown country",
        "The country field or the country database may be out of date.",
        warning=0.5,
    ),
    "bot_share": Share(
        "is_bot",
        "the clicks are by crawlers",
        "They count as clicks, and apart in bot_click_count. A crawler may be out of bounds; see the user agents.",
        warning=0.5,
    ),
    "invalid_status_share": Share(
        "status NOT BETWEEN 100 AND 599",
        "the clicks have a status that is no HTTP status (100 to 599)",
        "The status field may be mapped to another field. Clicks without a status are fine.",
        warning=0.01,
    ),
    "distinct_url_share": Share(
        None,
        "the clicks are the first of their hour on their URL",
        "Counts per URL are then as many as clicks, say little of pages, and take as much time, memory and disk. Write "
        "the setting that is named into config/sources.toml, and run the hours again; if these are pages, a higher "
        "bound of distinct_url_share for the source.",
        warning=0.8,
        is_counted=False,
        finding="because",
    ),
    **{
        metric: Share(
            f"reason = {as_literal(reason)}",
            f"the lines are in quarantine as {reason}",
            f"{reason}: {QUARANTINE_REASONS[reason]}. See the lines in quarantined_clicks, and the source's settings.",
            warning=0.03,
            table=QUARANTINED_CLICKS.name,
            is_counted=False,
        )
        for metric, reason in QUARANTINED_SHARES.items()
    },
}
