"""Conditions of checks on single rows, as Spark evaluates them; each built-in one has a planted fault as well."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from expectations.checks import counted_rows
from expectations.suites import log_hour_checks
from include.check_settings import ConfiguredCheck
from include.settings import PipelineSettings
from include.source_fields import LineFields
from include.sources import Source
from include.tables import CLICKS
from include.texts import as_literal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

WEB = Source(name="web", format="json", fields=LineFields(time="ts", url="url"))
ODD_TEXTS = ["it's", "a\\b", "\\'", "'; DROP TABLE clicks; --", "\\u0041", "%s {x} :a ?", 'ß\n\t"', "", None]
PATTERNS = [r"^it's$", r"^a\\b$", r"\\'", r"^\\u\d{4}$", "^$", r"[\"'{]"]


@pytest.mark.parametrize("text", [text for text in ODD_TEXTS if text is not None])
def test_a_literal_is_the_text(spark: SparkSession, text: str) -> None:
    assert spark.sql(f"SELECT {as_literal(text)}").collect() == [(text,)]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_configured_pattern_counts_and_shows_what_python_finds(spark: SparkSession, pattern: str) -> None:
    fits = {text for text in ODD_TEXTS if text is not None and re.search(pattern, text)}
    assert fits
    frame = spark.createDataFrame([(text,) for text in ODD_TEXTS], "referrer STRING")
    for bound, blamed in (("highest", fits), ("lowest", {*ODD_TEXTS} - fits)):
        check = ConfiguredCheck(
            name="x", metric="matching_share", column="referrer", pattern=pattern, reason="why", **{bound: 0.5}
        )
        checks = log_hour_checks(PipelineSettings(checks=(check,)), WEB)
        (rule,) = (rule for rule in counted_rows(checks, CLICKS.name) if rule.name == check.measured)
        assert rule.as_share
        assert rule.counted is not None
        assert rule.shown is not None
        assert {row[0] for row in frame.where(rule.counted).collect()} == fits
        assert {row[0] for row in frame.where(rule.shown).collect()} == blamed
