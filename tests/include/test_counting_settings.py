"""What config/pipeline.toml may say of the counting operators."""

from __future__ import annotations

from pathlib import Path

import pytest

from include.counting import count_table
from include.errors import UsageError
from include.settings import PipelineSettings, Settings, read_toml
from include.tables import CLICKS_BY_URL_HOURLY


def _read(tmp_path: Path, text: str) -> PipelineSettings:
    file = tmp_path / "pipeline.toml"
    file.write_text(text, encoding="utf-8")
    return read_toml(file, PipelineSettings)


def test_url_and_country_are_always_counted(tmp_path: Path) -> None:
    assert list(_read(tmp_path, "").counts) == ["url", "country_code"]
    assert list(_read(tmp_path, "[counts.referrer]\n").counts) == ["url", "country_code", "referrer"]
    assert list(Settings.from_environment({}).pipeline.counts) == ["url", "country_code"]


def test_a_further_key_has_a_table_of_its_own() -> None:
    assert count_table("url") is CLICKS_BY_URL_HOURLY
    table = count_table("referrer")
    assert (table.name, table.bucket_key, table.key[-1]) == ("clicks_by_referrer_hourly", "referrer", "referrer")
    assert "referrer" not in table.required_columns


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[counts.nowhere]", "nowhere"),
        ('[counts.url]\ngrouping = "broadcast"', "grouping"),
        ("[counts.url]\ninstances = 0", "greater than or equal to 1"),
        ('[counts.url]\ngrouping = "custom"', "needs one"),
        ('[counts.url]\nexpression = "url"', "belongs to grouping custom"),
        ('[counts.url]\ngrouping = "salted_fields"', "needs a number"),
        ('[counts.url]\nhot_keys = ["a"]', "belongs to grouping salted_fields"),
        ('[counts.url]\ngrouping = "salted_fields"\nsalts = 2\nmerge = false', "without a merge"),
        ('[counts.url]\ngrouping = "global"\ninstances = 2', "leave instances out"),
    ],
)
def test_wrong_settings_are_one_clear_error(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as error:
        _read(tmp_path, text)
    assert "\n" not in str(error.value)
