"""Airflow's REST API: logging in, what is asked again, and what is said when Airflow refuses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from include.errors import ClickmillError
from include.hours import Hour, HourRange
from ops import airflow_api
from ops.airflow_api import AirflowApi, ApiError
from ops.services import health
from ops.services.running import Services

PASSWORD = "pass-word"
TOKEN = "to-ken"
DAG = "/api/v2/dags/clicks_hourly"
Answer = httpx.Response | Exception


class FakeAirflow:
    """Lets in who has the password, then gives these answers, one a request."""

    def __init__(self, *answers: Answer) -> None:
        self._answers: Iterator[Answer] = iter(answers)
        self.log_ins = 0
        self.asked: list[tuple[str, str]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/auth/token":
            assert json.loads(request.content) == {"username": "admin", "password": PASSWORD}
            self.log_ins += 1
            return httpx.Response(201, json={"access_token": f"{TOKEN}-{self.log_ins}"})
        assert request.headers["authorization"] == f"Bearer {TOKEN}-{self.log_ins}"
        self.asked.append((request.method, request.url.raw_path.decode()))
        answer = next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def api_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[FakeAirflow], AirflowApi]:
    monkeypatch.setattr("ops.airflow_api.time.sleep", lambda seconds: None)

    def api(airflow: FakeAirflow) -> AirflowApi:
        client = httpx.Client

        def faked(**options: object) -> httpx.Client:
            return client(transport=httpx.MockTransport(airflow), **options)  # type: ignore[arg-type]

        monkeypatch.setattr(airflow_api.httpx, "Client", faked)
        return AirflowApi(Services(Path("/home"), 8081, 15003, 4041, "admin", PASSWORD, "spark-token"))

    return api


ApiOf = Callable[[FakeAirflow], AirflowApi]


def test_one_log_in_serves_until_the_token_expires(api_of: ApiOf) -> None:
    fine, expired = httpx.Response(200, json={}), httpx.Response(401, json={"detail": "expired"})
    airflow = FakeAirflow(fine, fine, expired, fine)
    api = api_of(airflow)

    for _ in range(3):
        api.call("GET", DAG)

    assert (len(airflow.asked), airflow.log_ins) == (4, 2)


def test_what_is_asked_goes_into_the_address_and_none_is_left_out(api_of: ApiOf) -> None:
    airflow = FakeAirflow(httpx.Response(200, json={"dag_runs": []}))

    api_of(airflow).call("GET", f"{DAG}/dagRuns/web%2F1", state=["queued", "running"], limit=2, order_by=None)

    assert airflow.asked == [("GET", f"{DAG}/dagRuns/web%2F1?state=queued&state=running&limit=2")]


@pytest.mark.parametrize(
    "absence", [httpx.Response(503, json={}), httpx.Response(200, text="<html>"), httpx.ConnectError("refused")]
)
def test_a_short_absence_is_waited_out(api_of: ApiOf, absence: Answer) -> None:
    airflow = FakeAirflow(absence, httpx.Response(200, json={"id": 7}))

    assert api_of(airflow).call("POST", "/api/v2/backfills", {}) == {"id": 7}


def test_what_can_be_asked_twice_is_asked_again_after_an_error_of_the_server(api_of: ApiOf) -> None:
    hours = HourRange.single(Hour.parse("2026-03-01T05"))
    broken, refused = httpx.Response(500, json={"detail": "Database error"}), httpx.Response(409, json={})
    run = httpx.Response(200, json={"dag_run_id": "r", "state": "queued", "run_type": "manual"})
    ended, made = {"id": 1, "completed_at": "2026-03-01"}, {"id": 2, "completed_at": None}
    listed = [httpx.Response(200, json={"backfills": backfills}) for backfills in ([ended, made], [ended])]
    airflow = FakeAirflow(
        *(broken, broken, run),
        *(broken, refused, run),
        *(broken, listed[0]),
        *(broken, listed[1], httpx.Response(200, json=made)),
        broken,
    )
    api = api_of(airflow)

    assert api.call("GET", DAG)["dag_run_id"] == "r"
    assert api.run_range("clicks_hourly", hours, "web").run_id == "r"
    for _ in range(2):
        assert api.backfill("clicks_hourly", list(hours), "web", 1, again=False) == 2
    with pytest.raises(ApiError, match="500: Database error"):
        api.call("POST", "/api/v2/variables", {"key": "x"})


def test_a_long_absence_is_an_error_that_says_where_to_look(api_of: ApiOf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(airflow_api, "PATIENCE_SECONDS", -1)

    with pytest.raises(ClickmillError, match=r"at http://localhost:8081 \(refused\); look at: make status"):
        api_of(FakeAirflow(httpx.ConnectError("refused"))).call("GET", DAG)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (httpx.Response(409, json={"detail": "runs already"}), "409: runs already"),
        (httpx.Response(502, text="broken"), "502: broken"),
        (httpx.Response(502, json=["broken"]), r'502: \["broken"\]'),
        (httpx.Response(307, headers={"location": "http://elsewhere/"}), "307: "),
    ],
)
def test_a_refusal_is_said_once_with_no_secret_and_no_redirect_is_followed(
    api_of: ApiOf, answer: httpx.Response, message: str
) -> None:
    airflow = FakeAirflow(answer)

    with pytest.raises(ApiError, match=rf"^Airflow answered GET {DAG}\?limit=1 with {message}$") as refused:
        api_of(airflow).call("GET", DAG, limit=1)

    assert refused.value.status == answer.status_code
    assert PASSWORD not in str(refused.value)
    assert TOKEN not in str(refused.value)


def test_neither_asks_a_proxy_of_the_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[bool] = []

    def remembered(*arguments: object, trust_env: bool, **options: object) -> httpx.Response:
        used.append(trust_env)
        raise httpx.ConnectError("refused")

    monkeypatch.setattr(httpx, "get", remembered)
    monkeypatch.setattr(httpx, "Client", lambda **options: used.append(options["trust_env"]))

    assert health.airflow_health(8081) == {}
    AirflowApi(Services(Path("/home"), 8081, 15003, 4041, "admin", PASSWORD, "spark-token"))
    assert used == [False, False]
