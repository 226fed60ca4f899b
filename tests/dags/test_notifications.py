"""Notifiers are named in a file, and a webhook gets one POST."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.smtp.notifications.smtp import SmtpNotifier

from dags.tasks.notifications import held_notifiers
from include.errors import UsageError
from include.settings import REPOSITORY
from plugins.notifiers.webhook import WebhookNotifier
from tests.web_receiver import receiver

WEBHOOK = """
[[held]]
notifier = "plugins.notifiers.webhook.WebhookNotifier"
connection = "held_webhook"
[held.payload]
text = "{{ params.hour }} is held: {{ params.reasons | join('; ') }}"
"""


def notifiers_of(tmp_path: Path, text: str) -> list[Any]:
    file = tmp_path / "notifications.toml"
    file.write_text(text, encoding="utf-8")
    return held_notifiers({"CLICKMILL_NOTIFICATIONS": str(file)})


def connect(monkeypatch: pytest.MonkeyPatch, **of: str) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_HELD_WEBHOOK", json.dumps({"conn_type": "http"} | of))


def context() -> dict[str, Any]:
    return {"params": {"hour": "2026-03-01T05", "reasons": ["one", "two"]}}


def test_a_webhook_gets_one_post_with_its_templates_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (notifier,) = notifiers_of(tmp_path, WEBHOOK)
    with receiver() as (address, received):
        connect(monkeypatch, host=address, password="a-token")
        notifier(context())
    ((headers, body),) = received
    assert body == {"text": "2026-03-01T05 is held: one; two"}
    assert (headers["Content-Type"], headers["Authorization"]) == ("application/json", "Bearer a-token")


def test_a_webhook_that_fails_is_an_error_in_the_log_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    notifier = WebhookNotifier("held_webhook", {})
    connect(monkeypatch, host="file:///etc/passwd")
    with pytest.raises(ValueError, match="connection held_webhook has not an address"):
        notifier.notify({})
    with receiver(500) as (address, received):
        connect(monkeypatch, host=address)
        with pytest.raises(OSError, match="500"):
            notifier.notify({})
        # The question is asked all the same.
        for tolerant in notifiers_of(tmp_path, WEBHOOK):
            tolerant(context())
    assert len(received) == 2
    assert "WebhookNotifier notified nobody" in caplog.text
    assert "500" in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_webhook_follows_no_redirect_and_its_token_goes_to_no_other_host(
    monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    with receiver() as (elsewhere, received_elsewhere):
        elsewhere = elsewhere.replace("127.0.0.1", "localhost")
        with receiver(status, elsewhere) as (address, received):
            connect(monkeypatch, host=address, password="a-token")
            with pytest.raises(
                OSError, match=f"held_webhook notified nobody.*{status}, a redirect to localhost"
            ) as error:
                WebhookNotifier("held_webhook", {"text": "held"}).notify({})
    assert len(received) == 1
    assert received_elsewhere == []
    assert "/hooks/" not in str(error.value)


def test_the_examples_in_the_file_are_notifiers_of_what_is_installed(tmp_path: Path) -> None:
    file = REPOSITORY / "config" / "notifications.toml"
    assert held_notifiers({}) == []
    lines = file.read_text(encoding="utf-8").splitlines()
    first = lines.index("# [[held]]")
    examples = [line.removeprefix("#").removeprefix(" ") for line in lines[first:]]
    prose = ("A webhook, as chat", "AIRFLOW_CONN_")
    mail, webhook = notifiers_of(tmp_path, "\n".join(line for line in examples if not line.startswith(prose)))
    assert isinstance(mail.notifier, SmtpNotifier)
    assert isinstance(webhook.notifier, WebhookNotifier)
    assert "generate_link_to_ui" in str(mail.notifier.html_content)
    assert "generate_link_to_ui" in webhook.notifier.payload["text"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[held]]\nnotifier = "nowhere.Notifier"', "nowhere.Notifier.*No module named 'nowhere'"),
        ('[[held]]\nnotifier = "plugins.notifiers.webhook.Nobody"', "plugins.notifiers.webhook.Nobody.*no attribute"),
        ('[[held]]\nnotifier = "pathlib.Path"', r"pathlib\.Path.*no BaseNotifier"),
        ('[[held]]\nnotifier = "NoModule"', "NoModule"),
        (
            '[[held]]\nnotifier = "plugins.notifiers.webhook.WebhookNotifier"\nurl = "x"',
            "missing 2 required .*'connection'",
        ),
        ('[[held]]\nto = "x"', r"held\.0\.notifier: Field required"),
        ("[[failed]]", "failed: Extra inputs are not permitted"),
    ],
)
def test_a_wrong_file_is_one_error_that_says_where(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        notifiers_of(tmp_path, text)
