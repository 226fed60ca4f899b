"""Suite ``clicks``: the rows of a log hour, accepted and quarantined, one by one and as shares."""

from __future__ import annotations

from expectations.checks import CRITICAL, WARNING, Check, at_most, below, between, percent, zero
from include.check_settings import QUARANTINED_SHARES, ConfiguredCheck
from include.settings import PipelineSettings
from include.sources import Source
from include.tables import CLICKS, QUARANTINE_REASONS, QUARANTINED_CLICKS

_SUITE, _CLICKS, _QUARANTINED = "clicks", CLICKS.name, QUARANTINED_CLICKS.name


def log_hour_checks(settings: PipelineSettings, source: Source) -> list[Check]:
    """Of each of the source's log hours."""
    configured = (_configured(check) for check in source.all_checks(settings))
    return [*_rows(source), *_shares(settings, source), *configured]


def _rows(source: Source) -> list[Check]:
    return [
        Check(
            _SUITE,
            "column_types",
            _CLICKS,
            zero("columns_of_other_types"),
            CRITICAL,
            "every column of clicks has its declared type",
            "Values of another type are compared and counted in another way. Move the table away and ingest all "
            "hours again.",
            finding="other_types",
        ),
        Check(
            _SUITE,
            "no_null_keys",
            _CLICKS,
            zero("null_keys"),
            CRITICAL,
            "no required column of clicks is null",
            "Rows without time, URL or country fall out of the counts. See the source's field mapping.",
            rows="null_keys",
        ),
        Check(
            _SUITE,
            "no_event_id_twice",
            _CLICKS,
            zero("duplicate_event_ids"),
            CRITICAL,
            "no event id is accepted twice within the lateness window",
            "A click would be counted twice. Ingest the log hours again, the earlier one first.",
            rows="duplicate_event_ids",
        ),
        Check(
            _SUITE,
            "event_ids_are_ids",
            _CLICKS,
            zero("ids_that_are_none"),
            WARNING,
            "no event id is a word that stands for none, such as 'undefined' or 0",
            "All clicks of such an id but the first are dropped as duplicates. Fix the tracker; until "
            "then take event_id out of the source's fields.",
            rows="ids_that_are_none",
        ),
        Check(
            _SUITE,
            "click_hour_is_of_its_time",
            _CLICKS,
            zero("click_hours_not_of_their_times"),
            CRITICAL,
            "click_date and click_hour are those of clicked_at",
            "The click would be counted in an hour in which it did not happen. Ingest the log hour again.",
            rows="click_hours_not_of_their_times",
        ),
        Check(
            _SUITE,
            "not_too_old",
            _CLICKS,
            between("oldest_click_hours_before", None, source.oldest_hours),
            CRITICAL,
            f"no click is more than {source.oldest_hours} hours older than its log hour",
            "It would change an hour long past. oldest_hours of the source may be less than when the hour was "
            "ingested: ingest the log hour again.",
        ),
        Check(
            _SUITE,
            "not_too_new",
            _CLICKS,
            below("newest_click_minutes_after", source.newest_minutes),
            CRITICAL,
            f"no click is {source.newest_minutes} minutes or more newer than its log hour",
            "It did not happen yet. newest_minutes of the source may be less than when the hour was ingested: "
            "ingest the log hour again.",
        ),
        Check(
            _SUITE,
            "known_countries",
            _CLICKS,
            zero("invalid_country_codes"),
            CRITICAL,
            "every country code is ISO 3166-1 alpha-2 or 'unknown'",
            "Counts per country would have rows that no country has. Ingest the log hour again.",
            rows="invalid_country_codes",
        ),
        Check(
            _SUITE,
            "urls_have_a_shape",
            _CLICKS,
            zero("malformed_urls"),
            CRITICAL,
            "every URL starts with http:// or https://, has a host, and has neither blank nor fragment",
            "One page would be counted under several keys. Ingest the log hour again.",
            rows="malformed_urls",
        ),
    ]


def _shares(settings: PipelineSettings, source: Source) -> list[Check]:
    def share(metric: str, table: str, of_what: str, reason: str) -> list[Check]:
        return at_most(
            source.threshold(metric, settings),
            _SUITE,
            metric,
            table,
            metric,
            lambda bound: f"at most {percent(bound)} of {of_what}",
            reason,
            _ROWS_OF[metric],
        )

    checks = [
        *share(
            "quarantined_share",
            _QUARANTINED,
            "the lines are in quarantine",
            "A source may have changed its format. See quarantined_clicks for the reasons.",
        ),
        *share(
            "late_share",
            _CLICKS,
            "the clicks are of an earlier hour",
            "The uploader may be behind, or a clock wrong. The hours in which they happened are counted again.",
        ),
        *share(
            "unknown_country_share",
            _CLICKS,
            "the clicks have an unknown country",
            "The country field or the country database may be out of date.",
        ),
        *share(
            "bot_share",
            _CLICKS,
            "the clicks are by crawlers",
            "They count as clicks, and apart in bot_click_count. A crawler may be out of bounds; see the user agents.",
        ),
        *share(
            "invalid_status_share",
            _CLICKS,
            "the clicks have a status that is no HTTP status (100 to 599)",
            "The status field may be mapped to another field. Clicks without a status are fine.",
        ),
    ]
    for metric, reason in QUARANTINED_SHARES.items():
        checks += share(
            metric,
            _QUARANTINED,
            f"the lines are in quarantine as {reason}",
            f"{reason}: {QUARANTINE_REASONS[reason]}. See the lines in quarantined_clicks, and the source's settings.",
        )
    return checks


#: The rule that rows counted by a metric break.
_ROWS_OF = {
    "quarantined_share": "quarantined",
    **{metric: f"quarantined_{reason}" for metric, reason in QUARANTINED_SHARES.items()},
    "late_share": "late",
    "unknown_country_share": "unknown_country",
    "bot_share": "bots",
    "invalid_status_share": "invalid_statuses",
}


def _configured(check: ConfiguredCheck) -> Check:
    bounds = [
        f"{words} {bound:g}"
        for words, bound in (("at least", check.lowest), ("at most", check.highest))
        if bound is not None
    ]
    return Check(
        _SUITE,
        f"configured_{check.name}",
        _QUARANTINED if check.metric.startswith("quarantined") else _CLICKS,
        between(check.measured, check.lowest, check.highest),
        check.severity,
        f"{check.measured} is {' and '.join(bounds)}",
        check.reason,
        _rows_of(check),
    )


def _rows_of(check: ConfiguredCheck) -> str | None:
    """The rows to blame where one bound is to be broken: those that are counted, or those that are not."""
    if check.lowest is None:
        return check.measured if check.column else _ROWS_OF.get(check.metric)
    return f"not {check.measured}" if check.column and check.highest is None else None
