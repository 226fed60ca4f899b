"""``clickmill validate`` from a shell: a summary or JSON, and an exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from include.hours import Hour
from include.quality_index import open_index
from include.settings import REPOSITORY
from include.tables import QUALITY_RESULTS, QUARANTINED_CLICKS
from tests.support.landed_faults import START, fine_lines
from tests.support.temporary_lake import TemporaryLake

pytestmark = [pytest.mark.spark, pytest.mark.slow]

BAD = START.plus(1)


def _validate(
    lake: TemporaryLake, remote: str, start: Hour, end: Hour, *options: str
) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {
        "CLICKMILL_HOME": str(lake.settings.home),
        "CLICKMILL_SOURCES": str(lake.settings.sources_file),
        "CLICKMILL_PIPELINE": str(lake.settings.pipeline_file),
        "SPARK_REMOTE": remote,
    }
    hours = ["--source", "web", "--from", str(start), "--to", str(end)]
    command = [sys.executable, "-m", "clickmill", "validate", *hours, *options]
    return subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)


def test_summary_json_and_exit_codes(lake: TemporaryLake, spark_remote: str) -> None:
    lake.land(str(START), {"a.json": b"".join(fine_lines(START))})
    lake.land(str(BAD), {"a.json": b"".join(fine_lines(BAD)[:30]) + 70 * b"\x1b[2Jnonsense of 203.0.113.77\n"})
    lake.run("ingest", str(START), str(BAD.plus(1)))
    lake.run("aggregate", str(START), str(BAD.plus(1)))

    fine = _validate(lake, spark_remote, START, BAD)
    assert (fine.returncode, fine.stderr) == (0, "")
    assert fine.stdout.rstrip().endswith(f"PASSED: source web, log hours {START}")
    assert "reconciliation" in fine.stdout

    # Beyond the range that was ingested: a warning.
    bad = _validate(lake, spark_remote, START, BAD.plus(2))
    assert bad.returncode == 3
    assert bad.stderr == "failed: 1 critical check failures, as shown; the hours are not published\n"
    assert f"critical: clicks.quarantined_share_critical\n  in       web {BAD}\n" in bad.stdout
    assert "  found    quarantined_share = 0.7\n" in bad.stdout
    assert '  such as  {"reason":"not_json","file":"a.json","line":' in bad.stdout
    assert "\x1b" not in bad.stdout
    assert f"warning: reconciliation.hour_is_there\n  in       web {BAD.plus(1)}\n" in bad.stdout
    assert bad.stdout.rstrip().endswith(f"FAILED: source web, log hours {START}..{BAD.plus(2)}")

    as_json = _validate(lake, spark_remote, BAD, BAD.plus(1), "--json")
    assert as_json.returncode == 3
    summary = json.loads(as_json.stdout)
    assert (summary["verdict"], summary["critical_failures"], summary["from"]) == ("failed", 1, str(BAD))
    (critical,) = [failure for failure in summary["failures"] if failure["severity"] == "critical"]
    assert (critical["suite"], critical["check_id"], critical["partition"]) == (
        "clicks", "quarantined_share_critical", f"web {BAD}",
    )  # fmt: skip
    assert (critical["observed_value"], critical["lowest"], critical["highest"]) == (0.7, None, 0.5)
    assert len(critical["examples"]) == 20
    rows = [row for row in lake.rows(QUALITY_RESULTS) if row["run_id"] == summary["run_id"]]
    assert len(rows) == summary["checks"]
    assert [row["examples"] for row in rows if row["check_id"] == critical["check_id"]] == [critical["examples"]]

    # Each example leads to its line, and none has the text of it, in whatever is kept of a validation.
    quarantined = {(row["reason"], row["file"], row["line"]): row["raw"] for row in lake.rows(QUARANTINED_CLICKS)}
    places = [tuple(json.loads(example).values()) for example in critical["examples"]]
    assert all("203.0.113.77" in quarantined[place] for place in places)
    with open_index(lake.settings):
        kept = [*lake.settings.home.glob("quality_index.sqlite*"), *lake.settings.reports.rglob("*.*")]
    texts = [file.read_bytes().decode(errors="replace") for file in kept if file.is_file()]
    assert any("quarantined_share_critical" in text for text in texts)
    assert not any("203.0.113.77" in text for text in texts)
    assert "203.0.113.77" not in f"{lake.rows(QUALITY_RESULTS)}{bad.stdout}{as_json.stdout}"
