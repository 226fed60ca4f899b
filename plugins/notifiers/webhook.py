"""Tell a web address that something happened, by one POST of JSON."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import httpx
from airflow.sdk import BaseHook, BaseNotifier

if TYPE_CHECKING:
    from airflow.sdk import Context

TIMEOUT_SECONDS = 10


class WebhookNotifier(BaseNotifier):
    """Sends ``payload`` as JSON to the address that an Airflow connection has as its host.

    The address is a connection's because who knows it can post to it: chat programs put their secret there. A
    password of the connection is sent as a bearer token. The payload's texts are templates, as a task's are.

    Raises:
        ValueError: when it notifies, if the connection's host is no http or https address.
    """

    template_fields = ("payload",)

    def __init__(self, connection: str, payload: Mapping[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.connection = connection
        self.payload = dict(payload)

    def notify(self, context: Context) -> None:
        """Send it; an answer other than 2xx, or none within ten seconds, is an error. No redirect is followed."""
        connection = BaseHook.get_connection(self.connection)
        address = connection.host or ""
        if not address.startswith(("http://", "https://")):
            raise ValueError(
                f"connection {self.connection} has not an address as its host; expected "
                f'AIRFLOW_CONN_{self.connection.upper()}=\'{{"conn_type": "http", "host": "https://…"}}\''
            )
        headers = {"Authorization": f"Bearer {connection.password}"} if connection.password else {}
        # The machine's certificates, not httpx's own. A redirect, never followed, would give the token to another host.
        trusted = ssl.create_default_context()
        answer = httpx.post(address, json=self.payload, headers=headers, timeout=TIMEOUT_SECONDS, verify=trusted)
        if not answer.is_success:
            # Without the address, which may be a secret.
            elsewhere = f", a redirect to {answer.next_request.url.host}" if answer.next_request else ""
            raise OSError(
                f"connection {self.connection} notified nobody: its host answered {answer.status_code}{elsewhere}; "
                "expected 2xx: redirects are not followed, set the host to the address that takes the POST itself"
            )
