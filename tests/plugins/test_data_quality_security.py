"""The pages on data quality: who is let in, what text from logs becomes, and which files are shown."""

from __future__ import annotations

import re
from datetime import datetime
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest
from airflow.api_fastapi.core_api import security
from fastapi import FastAPI
from fastapi.routing import APIRoute
from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from include.settings import Settings
from plugins.data_quality import app as pages
from plugins.data_quality.listings import LISTINGS
from plugins.data_quality_plugin import PREFIX
from tests.plugins.quality_pages import EVIL, HOUR, client_of, dag_run
from tests.support.quality_rows import Row, append, event


@pytest.fixture
def anonymous(app: FastAPI) -> TestClient:
    return client_of(app)


# --- who is let in --------------------------------------------------------------------------------


def test_every_route_and_every_method_refuses_an_anonymous_request(app: FastAPI, anonymous: TestClient) -> None:
    append(pages_lake(app), [Row()])
    paths = {re.sub(r"{[^}]*}", HOUR, route.path) for route in app.routes if isinstance(route, APIRoute)}
    assert len(paths) == 10
    paths |= {f"/{name}" for name in LISTINGS}
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


# --- text from logs -------------------------------------------------------------------------------

ADDRESSES = ("href", "src", "action", "formaction", "data")
KNOWN_ATTRIBUTES = {
    "action", "aria-label", "aria-labelledby", "autocomplete", "charset", "checked", "class", "colspan", "content",
    "cx", "cy", "d", "data-act", "data-airflow", "data-api", "data-choices", "data-conf", "data-dag", "data-reason",
    "data-run", "data-sign", "data-task", "height", "href", "id", "lang", "maxlength", "method", "name", "open",
    "placeholder", "r", "rel", "required", "role", "scope", "selected", "tabindex", "title", "transform", "type",
    "value", "viewbox", "width", "x", "y",
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
