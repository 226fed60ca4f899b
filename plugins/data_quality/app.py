"""The pages on data quality as a FastAPI app inside Airflow's API server, behind its login and permissions.

A plugin's app is open to anyone unless it asks: here every route does, also those that do not exist. Who may read the
runs of clicks_hourly may read what became of them.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import filelock
from airflow.api_fastapi.auth.managers.models.resource_details import AccessView, DagAccessEntity
from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import requires_access_dag, requires_access_view
from airflow.models.dagrun import DagRun
from fastapi import APIRouter, Depends, FastAPI, HTTPException, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from sqlalchemy import func, select
from starlette.exceptions import HTTPException as StarletteHTTPException

from include.errors import ClickmillError
from include.hours import Hour
from include.locks import locks_of
from include.quality_index import QualityIndex, open_index
from include.settings import Settings
from include.sources import load_sources
from include.storage import is_on_disk
from plugins.data_quality.backfills import render_backfills, shown_backfills
from plugins.data_quality.hour import ShownRun, render_hour
from plugins.data_quality.incidents import render_incidents
from plugins.data_quality.left_out import read_left_out
from plugins.data_quality.links import Links
from plugins.data_quality.listings import LISTINGS, render_listing
from plugins.data_quality.metric import METRIC_DAYS, render_metric
from plugins.data_quality.overview import Filters, Wait, late_files, render_overview
from plugins.data_quality.plans import DEFAULT_CHUNK, PlanRequest, make_plans, render_plans
from plugins.data_quality.quarantine import read_quarantine
from plugins.data_quality.questions import OpenQuestions, asked_of
from plugins.data_quality.rendering import render_message
from plugins.data_quality.rights import (
    BACKFILL_CLICKS,
    REPLAY_QUARANTINED,
    UNDO_BACKFILL,
    UserRights,
    may_start_backfills,
)

log = logging.getLogger("clickmill.data_quality")

CLICKS_HOURLY = "clicks_hourly"
MOST_RUNS = 3
Page = tuple[str, str]

may_see_airflow = requires_access_view(AccessView.WEBSITE)
may_read_clicks_hourly = requires_access_dag("GET", DagAccessEntity.RUN, CLICKS_HOURLY)
#: Of the DAG that the query names.
may_read_the_run = requires_access_dag("GET", DagAccessEntity.RUN)

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    # Of what is no page; pages bring their own.
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'self'",
}
#: Great Expectations' pages are another's: no script runs, no other host is asked, no form or cookie works in them.
DOCS_POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"

#: Written by a job with a stricter policy of its own.
COMPARISON_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'"


def read_index(request: Request) -> Iterator[QualityIndex]:
    """The index of the home that the app shows, as of this request."""
    with open_index(_settings(request)) as index:
        yield index


def waits(request: Request) -> Sequence[Wait]:
    """Which jobs wait for others now; none if the database of the locks does not say."""
    with suppress(ClickmillError, OSError):
        locks = locks_of(_settings(request))
        if waiters := locks.waiters():
            holders = {holder.name: holder for holder in locks.holders()}
            return [Wait(str(waiter), str(holders.get(waiter.name, "another job"))) for waiter in waiters]
    return []


def runs_of_hour(session: SessionDep, hour: str) -> Sequence[ShownRun]:
    """The newest runs of clicks_hourly over this log hour's partition."""
    runs = session.scalars(
        select(DagRun)
        .where(DagRun.dag_id == CLICKS_HOURLY, DagRun.partition_key == str(Hour.parse(hour)))
        .order_by(DagRun.run_after.desc(), DagRun.id.desc())
        .limit(MOST_RUNS)
    )
    return [ShownRun(run.dag_id, run.run_id, str(run.state)) for run in runs]


def newest_run(dag_id: str) -> Callable[[SessionDep], int]:
    """Airflow's number of the DAG's newest run; 0 before the first.

    It is in the id of the run that a page starts: all who have seen the same start the same, once.
    """

    def newest(session: SessionDep) -> int:
        return session.scalar(select(func.max(DagRun.id)).where(DagRun.dag_id == dag_id)) or 0

    return newest


Index = Annotated[QualityIndex, Depends(read_index)]
Waits = Annotated[Sequence[Wait], Depends(waits)]
Runs = Annotated[Sequence[ShownRun], Depends(runs_of_hour)]
router = APIRouter()


@router.get("/")
def overview(
    request: Request,
    index: Index,
    waits: Waits,
    questions: OpenQuestions,
    rights: UserRights,
    first: str = "",
    last: str = "",
    source: str = "",
    table: str = "",
) -> Response:
    """What needs attention, and the grid of hours."""
    late, filters = late_files(_settings(request)), Filters.of(first, last, source, table)
    page = render_overview(index, filters, _links(request), late, waits, questions=questions, rights=rights)
    return _answer(page)


@router.get("/hours/{hour}")
def one_hour(
    request: Request,
    index: Index,
    runs: Runs,
    questions: OpenQuestions,
    rights: UserRights,
    newest_replay: Annotated[int, Depends(newest_run(REPLAY_QUARANTINED))],
    hour: str,
    source: str = "",
) -> Response:
    """An hour, as log hour and as click hour."""
    at = Hour.parse(hour)
    page = render_hour(
        index,
        str(at),
        _links(request),
        source=source or None,
        quarantine=read_quarantine(_settings(request), at, source or None),
        left_out=read_left_out(_settings(request), at, source or None),
        runs=runs,
        question=questions.by_hour.get(str(at)),
        rights=rights,
        newest_replay=newest_replay,
    )
    if page is None:
        raise HTTPException(404, f"Nothing is known of {at}: no run has validated it yet.")
    return _answer(page)


@router.get("/metric")
def metric(
    request: Request,
    index: Index,
    suite: str,
    check: str,
    series: str = "",
    days: Annotated[int, Query(ge=1, le=max(METRIC_DAYS))] = METRIC_DAYS[0],
) -> Response:
    """The history of a check's values."""
    page = render_metric(index, suite, check, series, days, _links(request))
    if page is None:
        raise HTTPException(404, f"There is no result of the check {check} of {suite} {series}".rstrip() + ".")
    return _answer(page)


@router.get("/run", dependencies=[Depends(may_read_the_run)])
def run(request: Request, session: SessionDep, dag_id: str, run_id: str) -> Response:
    """The tab of a DAG run: leads to the page of its partition."""
    dag_run = session.scalar(select(DagRun).where(DagRun.dag_id == dag_id, DagRun.run_id == run_id))
    if dag_run is None:
        raise HTTPException(404, f"Airflow has no run {run_id} of {dag_id}.")
    links, asked = _links(request), asked_of(dag_run.conf or {}, dag_run.partition_key)
    if asked is None:
        sentence = f"The run {run_id} of {dag_id} has no partition that Clickmill knows."
        return _answer(render_message(links, "This run is of no hour", sentence))
    hours = asked.log_hours
    if len(hours) == 1:
        return RedirectResponse(links.hour(str(hours.start)), 303)
    return RedirectResponse(links.days(hours), 303)


@router.get("/plan", dependencies=[Depends(may_start_backfills)])
def plan(
    request: Request,
    newest_backfill: Annotated[int, Depends(newest_run(BACKFILL_CLICKS))],
    source: str,
    start: Annotated[str, Query(alias="from")],
    end: Annotated[str, Query(alias="to")],
    staged: str = "",
    chunk: Annotated[int, Query(ge=1)] = DEFAULT_CHUNK,
) -> Response:
    """What a backfill would do, and the button that starts it."""
    sources = list(load_sources(_settings(request)))
    asked = PlanRequest.of(sources, source, start, end, staged, chunk)
    return _answer(render_plans(asked, make_plans(asked, newest_backfill), sources, _links(request)))


@router.get("/incidents")
def all_incidents(
    request: Request, index: Index, questions: OpenQuestions, rights: UserRights, cause: str | None = None
) -> Response:
    """What was held for one cause, as one thing, with its end and who decided what."""
    return _answer(render_incidents(index, _links(request), cause, questions, rights))


@router.get("/backfills")
def backfills(
    request: Request,
    questions: OpenQuestions,
    rights: UserRights,
    newest_undo: Annotated[int, Depends(newest_run(UNDO_BACKFILL))],
) -> Response:
    """What became of each backfill, and what to do next."""
    shown = shown_backfills(_settings(request), questions)
    return _answer(render_backfills(shown, _links(request), rights, newest_undo))


@router.get("/backfills/{backfill_id}")
def one_backfill(request: Request, backfill_id: str) -> Response:
    """Old against new, of a staged backfill."""
    page = inside(_settings(request).reports / "backfills", f"{backfill_id}.html")
    if page is None:
        raise HTTPException(404, f"There is no comparison of a backfill {backfill_id}.")
    return Response(page.read_bytes(), media_type="text/html", headers={"Content-Security-Policy": COMPARISON_POLICY})


@router.get("/docs/{path:path}")
def data_docs(request: Request, path: str) -> Response:
    """A page of Great Expectations."""
    page = inside(_settings(request).reports / "data_docs", path)
    if page is None or page.suffix != ".html":
        raise HTTPException(404, "There is no such page of Data Docs; those of old runs may have been removed.")
    return Response(page.read_bytes(), media_type="text/html", headers={"Content-Security-Policy": DOCS_POLICY})


@router.get("/{name}")
def listing(request: Request, name: str) -> Response:
    """What a table of the lake has."""
    if name not in LISTINGS:
        return nothing(name)
    return _answer(render_listing(LISTINGS[name], _settings(request).lake, _links(request)))


@router.api_route("/{path:path}", methods=["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def nothing(path: str) -> Response:
    """All else is not there, which only those who are let in learn."""
    raise HTTPException(404, "There is no such page.")


def make_app(settings: Settings) -> FastAPI:
    """The pages of this home."""
    app = FastAPI(
        title="Clickmill data quality",
        dependencies=[Depends(may_see_airflow), Depends(may_read_clicks_hourly)],
        openapi_url=None,
        redirect_slashes=False,
    )
    app.state.settings = settings
    app.include_router(router)
    app.middleware("http")(_harden)
    app.add_exception_handler(StarletteHTTPException, _refused)
    for wrong in (ClickmillError, RequestValidationError):
        app.add_exception_handler(wrong, _wrong)
    for unreadable in (sqlite3.Error, filelock.Timeout):
        app.add_exception_handler(unreadable, _unreadable)
    return app


async def _harden(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
    response = await call_next(request)
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, StarletteHTTPException)
    titles = {401: "Not logged in", 403: "Not for you to see", 404: "Not found"}
    sentence = "Log in to Airflow, then load this page again." if error.status_code == 401 else str(error.detail)
    title = titles.get(error.status_code, "That did not work")
    return _answer(render_message(_links(request), title, sentence), error.status_code)


def _wrong(request: Request, error: Exception) -> Response:
    if isinstance(error, RequestValidationError):
        sentences = [f"{'.'.join(map(str, wrong['loc']))}: {wrong['msg']}" for wrong in error.errors()]
    else:
        sentences = [str(error)]
    return _answer(render_message(_links(request), "That cannot be shown", *sentences), 400)


def _unreadable(request: Request, error: Exception) -> Response:
    log.error("the index cannot be read", exc_info=error)
    page = render_message(
        _links(request),
        "The index cannot be read",
        f"{_settings(request).quality_index} could not be read or brought up to the lake; the API "
        "server's log says why. Load the page again; if that does not help, remove that file: it is made again.",
    )
    return _answer(page, 503)


def inside(folder: Path, path: str) -> Path | None:
    """The file of that relative path; None if it is none, or is outside of the folder once links are followed."""
    if not is_on_disk(folder):  # which has no links
        names = path.split("/")
        return None if {"", ".", ".."} & set(names) or not (folder / path).is_file() else folder / path
    try:
        root = folder.resolve(strict=True)
        file = (root / path).resolve(strict=True)
    except (OSError, RuntimeError, ValueError):  # absent or too long a name, a loop of links, a null byte
        return None
    return file if file.is_relative_to(root) and file.is_file() else None


def _answer(page: Page, status: int = 200) -> HTMLResponse:
    html, policy = page
    return HTMLResponse(html, status, {"Content-Security-Policy": policy})


def _settings(request: Request) -> Settings:
    settings: Settings = request.app.state.settings
    return settings


def _links(request: Request) -> Links:
    pages = str(request.scope.get("root_path", ""))
    return Links(pages, pages.rpartition("/")[0])
