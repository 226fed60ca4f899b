"""What `make stream` refuses before it starts anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from clickmill.app import run
from include.errors import UsageError
from tests.support.temporary_lake import SOURCES

STREAMS = f"""{SOURCES}
[sources.shop]
format = "common"
base_url = "http://shop.test"
[sources.shop.kafka]
topic = "shop"
bootstrap_servers = "192.0.2.1:9092"
[sources.landed]
format = "common"
base_url = "http://shop.test"
[sources.landed.files]
"""


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--source", "shop", "--rate", "10"], "RATE=10: shop is streamed as it is"),
        (["--source", "landed", "--rate", "10"], "RATE=10: landed is streamed as it is"),
        (["--source", "landed", "--rate", "-1"], "RATE=-1: expected clicks a second"),
        (["--source", "landed", "--rate", "nan"], "RATE=nan: expected clicks a second"),
        (["--source", "web"], "source web is not streamed"),
    ],
)
def test_what_cannot_be_shown_is_refused(
    arguments: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sources.toml").write_text(STREAMS)
    monkeypatch.setenv("CLICKMILL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CLICKMILL_SOURCES", str(tmp_path / "sources.toml"))
    monkeypatch.delenv("CLICKMILL_KAFKA", raising=False)
    with pytest.raises(UsageError, match=told):
        run(["show-stream", *arguments])


def test_makes_variables_are_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sources.toml").write_text(STREAMS)
    monkeypatch.setenv("CLICKMILL_SOURCES", str(tmp_path / "sources.toml"))
    monkeypatch.setenv("SOURCE", " shop ")
    monkeypatch.setenv("RATE", "10")
    with pytest.raises(UsageError, match="RATE=10: shop is streamed as it is"):
        run(["show-stream"])
    # As make hands over what was not given.
    monkeypatch.setenv("SOURCE", "")
    monkeypatch.setenv("RATE", "")
    with pytest.raises(UsageError, match="no source 'web_stream' in"):
        run(["show-stream"])
