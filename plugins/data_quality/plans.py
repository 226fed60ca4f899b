"""The page of a backfill before it begins: what it would do, for each source, and the form that starts it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from include.errors import ClickmillError, UsageError
from include.home import REPOSITORY
from include.hours import Hour, HourRange
from plugins.data_quality.links import Links
from plugins.data_quality.rendering import render_page

#: A plan reads the journal and lists the landing zone: seconds, of a year in an object store minutes.
MOST_SECONDS = 300
DEFAULT_CHUNK = 168


@dataclass(frozen=True)
class PlanRequest:
    """What a backfill is asked to be of; ``sources`` are names."""

    sources: tuple[str, ...]
    log_hours: HourRange
    is_staged: bool
    chunk_hours: int

    @classmethod
    def of(cls, sources: Sequence[str], source: str, start: str, end: str, staged: str, chunk: int) -> PlanRequest:
        """From the form's texts; ``sources`` are those that there are, of which ``all`` chooses each.

        Raises:
            UsageError: if there is no such source, or the hours are none.
        """
        if source != "all" and source not in sources:
            raise UsageError(f"source is {source[:40]!r}; expected all, or one of {', '.join(sources)}")
        log_hours = HourRange(Hour.parse(start), Hour.parse(end))
        return cls(tuple(sources) if source == "all" else (source,), log_hours, bool(staged), chunk)


@dataclass(frozen=True)
class Plan:
    """What the backfill of a source would do, as ``clickmill backfill --dry-run`` says it: name and text of each row.

    ``name`` is the source. ``run_id`` is that of the run that it becomes: the same for all who look before one is
    started, so that it is begun once. ``blocks`` is why it cannot be; ``chunks`` how many there are to run.
    """

    name: str
    rows: tuple[tuple[str, str], ...]
    blocks: tuple[str, ...]
    chunks: int
    run_id: str
    conf: dict[str, object]


def make_plans(request: PlanRequest, newest_run: int) -> list[Plan]:
    """A plan for each source; ``newest_run`` is Airflow's number of the DAG's newest run, 0 before the first.

    Each is made by a process of its own: it needs what this one does not import.

    Raises:
        ClickmillError: if one cannot be made.
    """
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda source: _plan(request, source, newest_run), request.sources))


def _plan(request: PlanRequest, source: str, newest_run: int) -> Plan:
    hours = request.log_hours
    command = [
        sys.executable, "-m", "clickmill", "backfill", "--dry-run", "--json", "--source", source,
        "--from", str(hours.start), "--to", str(hours.end), "--chunk", str(request.chunk_hours),
        *(["--staged"] if request.is_staged else []),
    ]  # fmt: skip
    try:
        done = subprocess.run(
            command, cwd=REPOSITORY, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=MOST_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise ClickmillError(f"the plan of {source} {hours} took over {MOST_SECONDS} s; choose fewer hours") from None
    if done.returncode:
        raise ClickmillError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"no plan of {source}")
    plan = json.loads(done.stdout)
    return Plan(
        name=source,
        rows=tuple((name, text) for name, text in plan["in_words"] if name != "blocked"),
        blocks=tuple(plan["blocks"]),
        chunks=len(plan["chunks"]),
        run_id=f"{source}_{hours.start}_to_{hours.end}{'_staged' if request.is_staged else ''}_after_{newest_run}",
        conf={
            "source": source,
            "from": hours.start.start.isoformat(),
            "to": hours.end.start.isoformat(),
            "chunk": request.chunk_hours,
            "staged": request.is_staged,
        },
    )


def render_plans(request: PlanRequest, plans: Sequence[Plan], sources: Sequence[str], links: Links) -> tuple[str, str]:
    """The page, and its policy."""
    ready = [plan for plan in plans if plan.chunks and not plan.blocks]
    plans = ready + [plan for plan in plans if plan not in ready]
    return render_page(
        "quality_plan.html",
        links,
        title="Plan of a backfill",
        request=request,
        plans=plans,
        ready=ready,
        sources=sources,
        may_act=True,
    )
