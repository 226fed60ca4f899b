"""Where the pages on data quality are, and those of Airflow that they lead to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from urllib.parse import quote, urlencode

from include.hours import Hour, HourRange
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

    def day(self, day: date, source: str | None = None, table: str | None = None) -> str:
        """The overview of a day, of one source or table or of all."""
        asked = {"first": str(day), "last": str(day), "source": source, "table": table}
        return f"{self.pages}/?{urlencode({name: value for name, value in asked.items() if value})}#hours"

    def incidents(self, cause: str) -> str:
        """The incidents of a cause."""
        return f"{self.pages}/incidents?{urlencode({'cause': cause})}"

    def plan(self, source: str, hours: HourRange, *, staged: bool = False, chunk: int | None = None) -> str:
        """The plan of a backfill of these log hours of a source, or of ``all``."""
        more = {"staged": "on"} if staged else {}
        more |= {"chunk": str(chunk)} if chunk else {}
        query = urlencode({"source": source, "from": str(hours.start), "to": str(hours.end)} | more)
        return f"{self.pages}/plan?{query}"

    def plan_hour(self, source: str, hour: Hour) -> str:
        """The same of one log hour."""
        return self.plan(source, HourRange.single(hour))

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
