"""Suite ``clicks``: the rows of a log hour, accepted and quarantined, one by one and as shares."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from expectations.checks import CRITICAL, WARNING, Check, RowRule, at_most, below, between, percent, row_check, zero
from include.check_settings import ConfiguredCheck
from include.countries import COUNTRY_CODES
from include.field_roles import NO_IDS
from include.settings import PipelineSettings
from include.shares import SHARES, Share
from include.sources import Source
from include.tables import CLICKS, QUARANTINED_CLICKS, UNKNOWN_COUNTRY
from include.texts import as_literal

_SUITE, _CLICKS, _QUARANTINED = "clicks", CLICKS.name, QUARANTINED_CLICKS.name
_check = partial(Check, suite=_SUITE, table=_CLICKS)
_row_check = partial(row_check, suite=_SUITE, table=_CLICKS)
#: No event's ids either; a visitor may have these.
_NO_EVENT_IDS = (*NO_IDS, "0", "-1", "true", "false")
#: No full parse: what ingest makes of a URL has none of these.
MALFORMED_URL = (
    "NOT (startswith(url, 'https://') OR startswith(url, 'http://')) OR url IN ('https://', 'http://') "
    "OR startswith(url, 'https:///') OR startswith(url, 'http:///') OR contains(url, ' ') OR contains(url, '#')"
)


def log_hour_checks(settings: PipelineSettings, source: Source) -> list[Check]:
    """Of each of the source's log hours."""
    configured = (_configured(check) for check in source.all_checks(settings))
    return [*_columns_and_ids(), *_times(source), *_keys(), *_shares(settings, source), *configured]


def _columns_and_ids() -> list[Check]:
    return [
        _check(
            name="column_types",
            expectation=zero("columns_of_other_types"),
            severity=CRITICAL,
            holds="every column of clicks has its declared type",
            reason="Values of another type are compared and counted in another way. Move the table away and ingest all "
            "hours again.",
            finding="other_types",
        ),
        _row_check(
            name="no_null_keys",
            counted_as="null_keys",
            broken=" OR ".join(f"{column} IS NULL" for column in CLICKS.required_columns),
            severity=CRITICAL,
            holds="no required column of clicks is null",
            reason="Rows without time, URL or country fall out of the counts. See the source's field mapping.",
        ),
        _check(
            name="no_event_id_twice",
            expectation=zero("duplicate_event_ids"),
            severity=CRITICAL,
            holds="no event id is accepted twice within the lateness window",
            reason="A click would be counted twice. Ingest the log hours again, the earlier one first.",
            rows=RowRule("duplicate_event_ids", same=("source", "event_id")),
        ),
        _row_check(
            name="event_ids_are_ids",
            counted_as="ids_that_are_none",
            broken=f"trim(event_id) IN ({_listed(_NO_EVENT_IDS)})",
            severity=WARNING,
            holds="no event id is a word that stands for none, such as 'undefined' or 0",
            reason="All clicks of such an id but the first are dropped as duplicates. Fix the tracker; until "
            "then take event_id out of the source's fields.",
        ),
    ]


def _times(source: Source) -> list[Check]:
    return [
        _check(
            name="click_hour_is_of_its_time",
            expectation=zero("click_hours_not_of_their_times"),
            severity=CRITICAL,
            holds="click_date and click_hour are those of clicked_at",
            reason="The click would be counted in an hour in which it did not happen. Ingest the log hour again.",
            rows=RowRule(
                "click_hours_not_of_their_times",
                shown="click_date <> to_date(clicked_at) OR click_hour <> hour(clicked_at)",
            ),
        ),
        _check(
            name="not_too_old",
            expectation=between("oldest_click_hours_before", None, source.oldest_hours),
            severity=CRITICAL,
            holds=f"no click is more than {source.oldest_hours} hours older than its log hour",
            reason="It would change an hour long past. oldest_hours of the source may be less than when the hour was "
            "ingested: ingest the log hour again.",
        ),
        _check(
            name="not_too_new",
            expectation=below("newest_click_minutes_after", source.newest_minutes),
            severity=CRITICAL,
            holds=f"no click is {source.newest_minutes} minutes or more newer than its log hour",
            reason="It did not happen yet. newest_minutes of the source may be less than when the hour was ingested: "
            "ingest the log hour again.",
        ),
    ]


def _keys() -> list[Check]:
    return [
        _row_check(
            name="known_countries",
            counted_as="invalid_country_codes",
            broken=f"country_code NOT IN ({_listed([*sorted(COUNTRY_CODES), UNKNOWN_COUNTRY])})",
            severity=CRITICAL,
            holds="every country code is ISO 3166-1 alpha-2, XK (Kosovo) or 'unknown'",
            reason="Counts per country would have rows that no country has. Ingest the log hour again.",
        ),
        _row_check(
            name="urls_have_a_shape",
            counted_as="malformed_urls",
            broken=MALFORMED_URL,
            severity=CRITICAL,
            holds="every URL starts with http:// or https://, has a host, and has neither blank nor fragment",
            reason="One page would be counted under several keys. Ingest the log hour again.",
        ),
    ]


def _shares(settings: PipelineSettings, source: Source) -> list[Check]:
    def of_share(metric: str, share: Share) -> list[Check]:
        return at_most(
            source.threshold(metric, settings),
            suite=_SUITE,
            name=metric,
            table=share.table,
            column=metric,
            holds=lambda bound: f"at most {percent(bound)} of {share.holds}",
            reason=share.reason,
            rows=_rows_of_share(metric),
            finding=share.finding,
        )

    return [check for metric, share in SHARES.items() for check in of_share(metric, share)]


def _rows_of_share(metric: str) -> RowRule | None:
    """None of what is no share of rows."""
    share = SHARES.get(metric)
    if share is None or share.rows is None:
        return None
    return RowRule(metric, share.rows if share.is_counted else None, shown=share.rows, as_share=share.is_counted)


def _configured(check: ConfiguredCheck) -> Check:
    bounds = [
        f"{words} {bound:g}"
        for words, bound in (("at least", check.lowest), ("at most", check.highest))
        if bound is not None
    ]
    return _check(
        name=f"configured_{check.name}",
        table=_QUARANTINED if check.metric.startswith("quarantined") else _CLICKS,
        expectation=between(check.measured, check.lowest, check.highest),
        severity=check.severity,
        holds=f"{check.measured} is {' and '.join(bounds)}",
        reason=check.reason,
        rows=_rows_of(check),
    )


def _rows_of(check: ConfiguredCheck) -> RowRule | None:
    """Where one bound is to be broken, the rows to blame are those that are counted, or those that are not."""
    if check.column is None:
        return _rows_of_share(check.metric) if check.lowest is None else None
    counted = f"{check.column} IS NULL"
    if check.pattern is not None:
        counted = f"CAST({check.column} AS STRING) RLIKE {as_literal(check.pattern)}"
    others = f"NOT coalesce({counted}, false)" if check.highest is None else None
    return RowRule(check.measured, counted=counted, shown=counted if check.lowest is None else others, as_share=True)


def _listed(texts: Iterable[str]) -> str:
    return ", ".join(map(as_literal, texts))
