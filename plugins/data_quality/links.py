"""Where the pages on data quality are, and those of Airflow that they lead to."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, urlencode

from include.hours import HourRange
from include.quality_index import Result


@dataclass(frozen=True)
class Links:
    """Where things are: ``pages`` is the address of these pages, ``airflow`` that of Airflow's UI, no slash after."""

    pages: str
    airflow: str

    def hour(self, hour: str, source: str | None = None, anchor: str = "") -> str:
        """The page of an hour."""
        query = f"?{urlencode({'source': source})}" if source else ""
        return f"{self.pages}/hours/{quote(hour, safe='')}{query}{f'#{anchor}' if anchor else ''}"

    def days(self, hours: HourRange) -> str:
        """The overview of the days of these hours."""
        query = urlencode({"first": hours.start.day, "last": hours.end.plus(-1).day})
        return f"{self.pages}/?{query}#hours"

    def metric(self, result: Result) -> str:
        """The page of a check's values."""
        named = {"suite": result.suite, "check": result.check_id, "series": result.series}
        return f"{self.pages}/metric?{urlencode(named)}"

    def docs(self, link: str) -> str:
        """The page of Great Expectations; ``link`` is relative to reports/."""
        return f"{self.pages}/docs/{quote(link.removeprefix('data_docs/'))}"

    def run(self, dag_id: str, run_id: str) -> str:
        """A DAG run in Airflow's UI."""
        return f"{self.airflow}/dags/{quote(dag_id, safe='')}/runs/{quote(run_id, safe='')}"

    def runs(self, dag_id: str, hour: str) -> str:
        """The DAG's runs of this partition in Airflow's UI."""
        return f"{self.airflow}/dags/{quote(dag_id, safe='')}/runs?{urlencode({'partition_key_pattern': hour})}"

    @property
    def decisions(self) -> str:
        """Where Airflow asks for a decision on held hours."""
        return f"{self.airflow}/required_actions?response_received=false"
