"""Publish the validated click hours that the given log hours touch: tables, files and the report.

A click hour is published when it was validated since it was counted, and so were the log hours that touch it since
they were ingested. If one of them failed a critical check the click hour is held: it stays as it was last published,
until the checks pass or a person decides (see decide_held); the others are published all the same. A decision stands
for counts that come later, while the checks find nothing worse. Replaces exactly
these click hours in the published tables, and their days. Writes both as Parquet and CSV under reports/exports/, and
reports/report.html. Copies them to the results database, if there is one.
"""

from __future__ import annotations

from include.command import exit_with
from spark_jobs.engine.command import run_from_shell
from spark_jobs.publish.job import publish

if __name__ == "__main__":
    exit_with(lambda: run_from_shell("spark_jobs.publish_clicks", __doc__, lambda *given: publish(*given).lines))
