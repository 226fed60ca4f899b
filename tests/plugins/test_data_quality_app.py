"""The routes of the pages on data quality: who is let in, what they answer, and what text from logs becomes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest
from airflow.api_fastapi.common.db.common import _get_session
from airflow.api_fastapi.core_api import security
from airflow.models.dagrun import DagRun
from airflow.utils.state import DagRunState
from airflow.utils.types import DagRunTriggeredByType, DagRunType
from deltalake import write_deltalake
from fastapi import FastAPI
from fastapi.routing import APIRoute
from sqlalchemy import create_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import StaticPool
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from include.log_hours import Hour
from include.pages.render import write_page
from include.settings import Settings
from include.stored_rows import ARROW_TYPES
from include.tables import BACKFILLS
from plugins.data_quality import app as pages
from plugins.data_quality_plugin import PREFIX, DataQualityPlugin
from tests.support.quality_rows import Row, append, event, validated_hours

HOUR = "2026-03-01T05"
#: As they come in logs: markup, quotes, a script link, a mark that turns the reading direction, an escape sequence.
EVIL = "<script>alert('x')</script>\"' onload=alert(1) javascript:alert(2) \u202egpj.exe\x1b[2J"


@pytest.fixture
def session() -> Iterator[Session]:
    """Airflow's tables, empty, in memory."""
    engine = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
    tables = DagRun.metadata.tables
    DagRun.metadata.create_all(engine, tables=[tables["dag_run"], tables["log_template"]])
    with Session(engine) as session:
        yield session
    engine.dispose()


@pytest.fixture
def app(settings: Settings, session: Session) -> FastAPI:
    app = pages.make_app(settings)
    app.dependency_overrides[_get_session] = lambda: session
    return app


def client_of(app: FastAPI) -> TestClient:
    return TestClient(Starlette(routes=[Mount(PREFIX, app)]), base_url=f"http://testserver{PREFIX}/")


@pytest.fixture
def anonymous(app: FastAPI) -> TestClient:
    return client_of(app)


@pytest.fixture
def client(app: FastAPI) -> TestClient:
    """Of someone who may see everything."""
    for guard in (pages.may_see_airflow, pages.may_read_clicks_hourly, pages.may_read_the_run):
        app.dependency_overrides[guard] = lambda: None
    return client_of(app)


def dag_run(session: Session, run_id: str, partition_key: str | None, **values: Any) -> None:
    run = DagRun(
        dag_id=values.pop("dag_id", "clicks_hourly"),
        run_id=run_id,
        run_type=DagRunType.MANUAL,
        state=values.pop("state", DagRunState.SUCCESS),
        triggered_by=DagRunTriggeredByType.REST_API,
        run_after=values.pop("run_after", datetime(2026, 3, 1, 6, tzinfo=UTC)),
        partition_key=partition_key,
        **values,
    )
    session.add(run)
    session.commit()


# --- who is let in --------------------------------------------------------------------------------


def test_every_route_and_every_method_refuses_an_anonymous_request(app: FastAPI, anonymous: TestClient) -> None:
    append(pages_lake(app), [Row()])
    paths = {re.sub(r"{[^}]*}", HOUR, route.path) for route in app.routes if isinstance(route, APIRoute)}
    assert len(paths) == 8
    for path in [*paths, "/none", "/docs", "/openapi.json", "/hours/", f"/hours/{HOUR}/"]:
        for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
            answer = anonymous.request(method, path.removeprefix("/"), follow_redirects=False)
            assert answer.status_code in (401, 403), (method, path)
            assert "reconciliation" not in answer.text
            assert answer.headers["content-security-policy"].startswith("default-src 'none'")


def pages_lake(app: FastAPI) -> Path:
    """The lake of the home that the app shows."""
    return Path(app.state.settings.lake)


@pytest.mark.parametrize("may_see", [True, False])
@pytest.mark.parametrize("may_read", [True, False])
def test_airflow_s_permissions_decide(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch, may_see: bool, may_read: bool
) -> None:
    asked: list[Any] = []

    def may_read_dag(**question: Any) -> bool:
        asked.append(question)
        return may_read

    manager = SimpleNamespace(is_authorized_view=lambda **_: may_see, is_authorized_dag=may_read_dag)
    monkeypatch.setattr(security, "get_auth_manager", lambda: manager)
    monkeypatch.setattr(security.DagModel, "get_team_name", lambda _: None)
    app.dependency_overrides[security.get_user] = lambda: SimpleNamespace(get_name=lambda: "ada")
    status = client_of(app).get("").status_code
    assert status == (200 if may_see and may_read else 403)
    if asked:
        assert asked[0]["details"].id == "clicks_hourly"
        assert asked[0]["method"] == "GET"


def test_the_tab_of_a_run_asks_for_that_dag_too(
    app: FastAPI, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    dag_run(session, "secret", HOUR, dag_id="other")
    manager = SimpleNamespace(
        is_authorized_view=lambda **_: True, is_authorized_dag=lambda details, **_: details.id == "clicks_hourly"
    )
    monkeypatch.setattr(security, "get_auth_manager", lambda: manager)
    monkeypatch.setattr(security.DagModel, "get_team_name", lambda _: None)
    app.dependency_overrides[security.get_user] = lambda: SimpleNamespace(get_name=lambda: "ada")
    answer = client_of(app).get("run", params={"dag_id": "other", "run_id": "secret"})
    assert answer.status_code == 403


# --- what they answer -----------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["", f"hours/{HOUR}", "metric?suite=clicks&check=no_event_id_twice&series=web"])
def test_pages_need_nothing_from_elsewhere_and_allow_nothing_else(
    client: TestClient, settings: Settings, path: str
) -> None:
    append(settings.lake, [Row(outcome="fail"), Row(hour="2026-03-01T04", partition="web 2026-03-01T04")])
    answer = client.get(path)
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    assert re.fullmatch(
        r"default-src 'none'; style-src 'sha256-\S+'; script-src 'sha256-\S+'; base-uri 'none'; "
        r"form-action 'self'; frame-ancestors 'self'",
        policy,
    )
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"
    addresses = re.findall(r"(?:href|src|action)=\"([^\"]*)\"", answer.text)
    assert addresses
    assert all(address.startswith(("/", "#")) and not address.startswith("//") for address in addresses), addresses
    assert not re.search(r"https?://|@import|url\(|style=|\son[a-z]+=", answer.text)


def test_an_empty_lake_says_what_to_do(client: TestClient) -> None:
    answer = client.get("")
    assert answer.status_code == 200
    assert "Nothing has been validated yet" in answer.text


def test_the_overview_lists_what_is_held_before_the_grid(client: TestClient, settings: Settings) -> None:
    append(settings.lake, [*validated_hours(Hour.parse("2026-03-01T00"), 5, seed=3)[0]])
    append(
        settings.lake,
        [Row(outcome="fail", observed="duplicate_event_ids = 7"), event(HOUR, "held", "ids are there twice")],
    )
    text = client.get("").text
    assert text.index("1 click hour held") < text.index("ids are there twice") < text.index('id="hours"')
    assert "required_actions?response_received=false" in text
    assert re.search(r'<td role="cell" class="fail"><a href="[^"]*/hours/2026-03-01T05#suite-clicks"', text)
    # Between the first and the last hour that is known there is nothing about these.
    assert "2026-03-01T01 to 2026-03-01T04" in text


def test_every_bad_hour_is_listed_once_held_before_failing_before_warning(
    client: TestClient, settings: Settings
) -> None:
    hours = [f"2026-03-01T{number:02d}" for number in range(24)]
    for number, hour in enumerate(hours):
        severity = "warning" if number >= 22 else "critical"
        failed = Row(hour=hour, partition=f"web {hour}", outcome="fail", severity=severity)
        append(settings.lake, [failed, event(hour, "held" if number < 15 else "published", "why")])
    text = client.get("").text
    assert "15 click hours held" in text
    assert "7 hours with critical failures" in text
    assert "2 hours with warnings only" in text
    listed = re.findall(r'class="concern (\w+)">\s*<h3><a href="[^"]*/hours/([^"]*)"', text)
    # At most twelve of a kind, newest first.
    assert listed == [("held", hour) for hour in hours[14:2:-1]] + [("fail", hour) for hour in hours[21:14:-1]]
    assert "and 3 earlier held hours" in text


def test_filters_keep_their_choice_and_change_the_grid(client: TestClient, settings: Settings) -> None:
    append(
        settings.lake, [Row(outcome="fail"), Row(source="shop", partition=f"shop {HOUR}", suite="volume", check_id="v")]
    )
    of_shop = client.get("", params={"source": "shop", "first": "2026-03-01", "last": "2026-03-01"}).text
    assert "<option selected>shop</option>" in of_shop
    assert 'class="fail"' not in of_shop
    assert 'class="fail"' in client.get("", params={"source": "web"}).text
    assert "No hour of these days was validated" in client.get("", params={"first": "2027-01-01"}).text


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"first": "yesterday"}, "expected a day such as 2026-03-01"),
        ({"first": "2026-03-02", "last": "2026-03-01"}, "is after last day"),
        ({"last": "0001-01-01"}, "expected a day"),
    ],
)
def test_a_wrong_day_is_a_sentence(client: TestClient, settings: Settings, query: dict[str, str], said: str) -> None:
    append(settings.lake, [Row()])
    answer = client.get("", params=query)
    assert answer.status_code == 400
    assert said in answer.text


def test_an_hour_shows_found_and_expected_the_decision_and_where_to_go_on(
    client: TestClient, settings: Settings, session: Session
) -> None:
    dag_run(session, "scheduled__1", HOUR)
    dag_run(session, "other_hour", "2026-03-01T06")
    append(
        settings.lake,
        [
            Row(outcome="fail", observed="duplicate_event_ids = 7", observed_value=7, examples=["id-1", "id-2"]),
            Row(hour="2026-03-01T04", partition="web 2026-03-01T04"),
            event(HOUR, "held", "ids are there twice"),
            event(HOUR, "published_anyway", "known fault", "ada", validated_at=datetime(2026, 3, 2, tzinfo=UTC)),
        ],
    )
    text = client.get(f"hours/{HOUR}").text
    for shown in (
        "Published anyway",
        "by <strong>ada</strong>: known fault",
        "ids are there twice",
        "duplicate_event_ids = 7",
        "exactly 0",
        "id-2",
        'href="/dags/clicks_hourly/runs/scheduled__1" data-airflow',
        "/dags/clicks_hourly/runs?partition_key_pattern=2026-03-01T05",
        "/data-quality/docs/run-1/log_hours.html",
        "over the last 7 days",
        "/data-quality/metric?suite=clicks&amp;check=no_event_id_twice&amp;series=web",
    ):
        assert shown in text, shown
    assert "other_hour" not in text


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("hours/2026-03-01T09", 404, "no run has validated it yet"),
        ("hours/now", 400, "expected UTC such as 2026-03-01T05"),
        ("metric?suite=clicks&check=none", 404, "There is no result of the check none"),
        ("nowhere", 404, "There is no such page"),
        ("run?dag_id=clicks_hourly&run_id=none", 404, "Airflow has no run none"),
    ],
)
def test_what_is_not_there_is_a_sentence(
    client: TestClient, settings: Settings, path: str, status: int, said: str
) -> None:
    append(settings.lake, [Row()])
    answer = client.get(path)
    assert answer.status_code == status
    assert said in answer.text
    assert "<h1>" in answer.text


def test_a_metric_shows_values_with_the_bounds_of_their_time(client: TestClient, settings: Settings) -> None:
    for number in range(4):
        hour = f"2026-03-01T0{number}"
        append(
            settings.lake,
            [
                Row(
                    hour=hour,
                    partition=f"web {hour}",
                    observed_value=100 + number,
                    lowest=number,
                    highest=200 + number,
                    outcome="fail" if number == 2 else "pass",
                )
            ],
        )
    text = client.get("metric", params={"suite": "clicks", "check": "no_event_id_twice", "series": "web"}).text
    rows = re.findall(r"T0(\d)</a></th><td>.*?</td><td[^>]*>(\d+)</td><td[^>]*>(\d+)</td><td[^>]*>(\d+)</td>", text)
    assert rows == [(str(n), str(100 + n), str(n), str(200 + n)) for n in (3, 2, 1, 0)]
    assert text.count("<circle") == 2  # the one that failed, in the wide and in the narrow chart


# --- the tab of a run -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("partition_key", "conf", "leads_to"),
    [
        (HOUR, {}, f"/data-quality/hours/{HOUR}"),
        (None, {"hour": HOUR}, f"/data-quality/hours/{HOUR}"),
        (None, {"from": "2026-03-01T05:00:00Z", "to": "2026-03-01T06:00:00Z"}, f"/data-quality/hours/{HOUR}"),
        (
            None,
            {"from": "2026-03-01T05:00:00Z", "to": "2026-03-03T00:00:00Z"},
            "/data-quality/?first=2026-03-01&last=2026-03-02#hours",
        ),
    ],
)
def test_the_tab_of_a_run_leads_to_its_hours(
    client: TestClient, session: Session, partition_key: str | None, conf: dict[str, str], leads_to: str
) -> None:
    dag_run(session, "manual__2026-03-01T05:00:00+00:00", partition_key, conf=conf)
    answer = client.get(
        "run",
        params={"dag_id": "clicks_hourly", "run_id": "manual__2026-03-01T05:00:00+00:00"},
        follow_redirects=False,
    )
    assert (answer.status_code, answer.headers["location"]) == (303, leads_to)


@pytest.mark.parametrize(
    ("key", "conf"),
    [(None, {}), ("customer-7", {}), ("//evil.example", {}), (None, {"hour": 5}), (None, {"from": [1]})],
)
def test_a_run_without_an_hour_says_so(
    client: TestClient, session: Session, key: str | None, conf: dict[str, Any]
) -> None:
    dag_run(session, "run", key, dag_id="other", conf=conf)
    answer = client.get("run", params={"dag_id": "other", "run_id": "run"}, follow_redirects=False)
    assert answer.status_code == 200
    assert "has no partition that Clickmill knows" in answer.text


# --- text from logs -------------------------------------------------------------------------------

ADDRESSES = ("href", "src", "action", "formaction", "data")
KNOWN_ATTRIBUTES = {
    "action", "aria-label", "aria-labelledby", "charset", "class", "colspan", "content", "cx", "cy", "d",
    "data-airflow", "data-sign", "height", "href", "id", "lang", "method", "name", "open", "r", "rel", "role",
    "scope", "selected", "tabindex", "title", "transform", "type", "value", "viewbox", "width", "x", "y",
}  # fmt: skip


class Tags(HTMLParser):
    """The tags of a page, each with its attributes, as a browser would see them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    @property
    def attributes(self) -> set[str]:
        return {name for _, attributes in self.found for name in attributes}


def test_text_from_logs_is_text_on_every_page(client: TestClient, settings: Settings) -> None:
    import pyarrow as pa
    from deltalake import write_deltalake

    evil = {"outcome": "fail", "observed": EVIL, "advice": EVIL, "examples": [EVIL], "expectation": EVIL}
    append(
        settings.lake,
        [
            Row(**evil, check_id=EVIL, link=f"data_docs/{EVIL}/page.html", checked_table=EVIL),
            Row(hour="2026-03-01T04", partition="web 2026-03-01T04", check_id=EVIL, expectation=EVIL),
            event(HOUR, "held", EVIL, EVIL, run_id=EVIL),
        ],
    )
    rows = {"source": ["web"], "log_date": [datetime(2026, 3, 1).date()], "log_hour": [5], "file": [EVIL], "line": [1]}
    write_deltalake(
        settings.lake / "quarantined_clicks",
        pa.table(rows | {"reason": ["not_json"], "raw": ["of 203.0.113.77"]}),
        partition_by=["source", "log_date", "log_hour"],
    )
    texts = [
        client.get(path, params=params).text
        for path, params in (
            ("", {"source": EVIL, "table": EVIL}),
            ("", {}),
            (f"hours/{HOUR}", {}),
            (f"hours/{HOUR}", {"source": EVIL}),
            ("metric", {"suite": "clicks", "check": EVIL, "series": "web"}),
            ("metric", {"suite": EVIL, "check": EVIL, "series": EVIL}),
            (f"hours/{quote(EVIL, safe='')}", {}),
            ("", {"first": EVIL}),
            ("run", {"dag_id": EVIL, "run_id": EVIL}),
        )
    ]
    assert sum("&lt;script&gt;" in text for text in texts) >= 7
    for text in texts:
        tags = Tags(text)
        assert [name for name, _ in tags.found].count("script") == 1  # ours
        assert tags.attributes <= KNOWN_ATTRIBUTES, tags.attributes - KNOWN_ATTRIBUTES
        addresses = [attributes[name] for _, attributes in tags.found for name in ADDRESSES if name in attributes]
        assert all(re.match(r"[/#]", str(address)) for address in addresses), addresses
        assert "203.0.113.77" not in text
        assert "\u202e" not in text
        assert "\x1b" not in text
    assert "\\u202egpj.exe" in texts[2]


# --- files ----------------------------------------------------------------------------------------


@pytest.fixture
def docs(settings: Settings) -> Path:
    """Data Docs with a page, a link that leads out of them, and a secret beside them."""
    docs = settings.reports / "data_docs"
    (docs / "run-1").mkdir(parents=True)
    (docs / "run-1" / "log_hours.html").write_text("<h1>Great</h1><script>alert(1)</script>", encoding="utf-8")
    (docs / "run-1" / "notes.txt").write_text("no page", encoding="utf-8")
    (settings.home / "secret.html").write_text("secret", encoding="utf-8")
    (docs / "leads_out.html").symlink_to(settings.home / "secret.html")
    (docs / "out").symlink_to(settings.home)
    (docs / "loop.html").symlink_to(docs / "loop.html")
    return docs


def test_data_docs_are_shown_but_may_do_nothing(client: TestClient, docs: Path) -> None:
    answer = client.get("docs/run-1/log_hours.html")
    assert answer.status_code == 200
    assert "Great" in answer.text
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("sandbox; default-src 'none'")
    assert "script" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "path",
    [
        "../../secret.html",
        "%2e%2e/%2e%2e/secret.html",
        "..%2f..%2fsecret.html",
        "run-1/../../../secret.html",
        "%252e%252e/%252e%252e/secret.html",
        "..%5c..%5csecret.html",
        "leads_out.html",
        "out/secret.html",
        "loop.html",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "run-1/log_hours.html%00",
        "run-1/notes.txt",
        "run-1",
        "",
        "x" * 5000 + ".html",
    ],
)
def test_no_path_leads_out_of_the_reports(app: FastAPI, client: TestClient, docs: Path, path: str) -> None:
    """As sent by a client that does not tidy the path first, and by one that does."""
    answer = client.get(f"http://testserver{PREFIX}/docs/{path}")
    assert answer.status_code == 404
    assert "secret" not in answer.text.replace("secret.html", "")


def test_no_absolute_path_leads_out_of_the_reports(settings: Settings, docs: Path) -> None:
    page = docs / "run-1" / "log_hours.html"
    assert pages.inside(docs, "run-1/log_hours.html") == page.resolve()
    assert pages.inside(docs, str(page)) == page.resolve()
    for path in (str(settings.home / "secret.html"), "../../secret.html", "leads_out.html", "out/secret.html"):
        assert pages.inside(docs, path) is None
    assert pages.inside(docs / "absent", "page.html") is None


# --- the plugin -----------------------------------------------------------------------------------


def test_the_plugin_offers_an_entry_and_a_tab() -> None:
    nav, tab = DataQualityPlugin.external_views
    assert (nav["name"], nav["destination"], nav["nav_top_level"]) == ("Data quality", "nav", True)
    assert (tab["destination"], tab["href"]) == ("dag_run", "data-quality/run?dag_id={DAG_ID}&run_id={RUN_ID}")
    assert DataQualityPlugin.fastapi_apps[0]["url_prefix"] == PREFIX


def test_backfills_say_who_decided_what_to_do_next_and_show_the_comparison(
    client: TestClient, settings: Settings
) -> None:
    assert "There has been no backfill" in client.get("backfills").text
    same = dict.fromkeys(BACKFILLS.column_names) | {
        "backfill_id": "20260302T000000-ab12", "source": "web", "first_log_hour": "2026-03-01T00",
        "end_log_hour": "2026-03-02T00", "chunk_hours": 5, "is_staged": True, "because": EVIL,
    }  # fmt: skip

    def say(event: str, minute: int, **values: Any) -> None:
        row = same | {"event": event, "at": datetime(2026, 3, 2, 0, minute, tzinfo=UTC)} | values
        schema = pa.schema([(column.name, ARROW_TYPES[column.type]) for column in BACKFILLS.columns])
        write_deltalake(settings.lake / BACKFILLS.name, pa.Table.from_pylist([row], schema), mode="append")

    say("begun", 0)
    say("compared", 1, counts="c1")
    page = client.get("backfills").text
    assert "waits for a decision" in page
    assert "spark_jobs.decide_backfill 20260302T000000-ab12" in page
    assert "<script>alert" not in page
    assert client.get("backfills/20260302T000000-ab12").status_code == 404
    write_page("old against new", settings.reports / "backfills" / "20260302T000000-ab12.html")
    comparison = client.get("backfills/20260302T000000-ab12")
    assert comparison.text == "old against new"
    assert "script-src" not in comparison.headers["content-security-policy"]
    assert comparison.headers["content-security-policy"].startswith("default-src 'none'")
    for nowhere in ("backfills/..%2Freport", "backfills/none"):
        assert client.get(nowhere).status_code == 404
    say("approved", 2, actor="Ada", because="agrees")
    say("publishing", 3, versions=[], click_hours=["2026-03-01T00"])
    say("swapping", 4, tables=["published_clicks_by_url_hourly"])
    assert "Tables that have it: published_clicks_by_url_hourly." in client.get("backfills").text
    say("swapped", 5)
    page = client.get("backfills").text
    assert "Approved by Ada, 2026-03-02 00:02 UTC" in page
    assert "Possible until 2026-04-01 00:03 UTC at least" in page


def test_the_index_that_cannot_be_read_is_a_sentence(client: TestClient, settings: Settings) -> None:
    append(settings.lake, [Row()])
    settings.quality_index.mkdir(parents=True)
    answer = client.get("")
    assert answer.status_code == 503
    assert "remove that file" in answer.text
