"""A Spark Connect server that does not answer: how long a job asks for it again, and what it says meanwhile.

Spark's own client asks for ten minutes for each thing that it wants, without a word, and waits for a server that is
gone once more when the job ends.
"""

from __future__ import annotations

import logging
import socket
import time
import warnings
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pyspark.sql.connect.client.retries import DefaultPolicy, RetryPolicyState
from pyspark.sql.connect.logging import logger as clients_log
from typing_extensions import override

from include.errors import ClickmillError, is_unanswered
from include.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql.connect.client import SparkConnectClient

log = logging.getLogger("clickmill")

#: How long a server takes to be started again by whoever supervises it, on a busy machine; and what a network may lose.
SUPERVISED_SECONDS, ALONE_SECONDS = 60.0, 5.0
#: How long the answer to a good-bye may take.
RELEASE_SECONDS = 5.0
_PAUSE_SECONDS = 0.5
#: Failures further apart are of two absences.
_APART_SECONDS = 10.0
_LOOPBACK = ("localhost", "127.0.0.1", "::1")

# It is said in our own words; and that nobody hears a good-bye is no matter.
warnings.filterwarnings("ignore", message=r"\[RETRIES_EXCEEDED\]")
clients_log.addFilter(lambda record: not record.getMessage().startswith(("ReleaseExecute failed", "session.stop()")))


def patience_seconds(host: str) -> float:
    """How long to ask for the server there: nobody starts one of this machine again if no services run here."""
    supervised = host not in _LOOPBACK or Settings.from_environment().service_file.exists()
    return SUPERVISED_SECONDS if supervised else ALONE_SECONDS


def be_patient(client: SparkConnectClient) -> None:
    """Let a client ask for its server as long as that makes sense, and say good-bye in no more than some seconds."""
    if any(isinstance(policy, _Patience) for policy in client.get_retry_policies()):
        return
    policy = _Patience(getattr(client._builder, "endpoint", client.host), patience_seconds(client.host))
    client.set_retry_policies([policy])
    # A server that is stopped, or behind a network that lost it, answers never.
    for name in ("ReleaseSession", "ReleaseExecute"):
        setattr(client._stub, name, partial(getattr(client._stub, name), timeout=RELEASE_SECONDS))
    release = client.release_session

    def release_session() -> None:
        policy.is_over = True
        release()

    client.release_session = release_session  # type: ignore[method-assign]


def require_answer(remote: str) -> None:
    """Look first whether there is a server, and wait for one that is being started again.

    Raises:
        ClickmillError: if none answers.
    """
    address = urlsplit(remote)
    host, port = address.hostname or "localhost", address.port or 15002
    seconds = patience_seconds(host)
    deadline = time.monotonic() + (seconds if seconds > ALONE_SECONDS else 0)
    has_warned = False
    while True:
        try:
            socket.create_connection((host, port), timeout=10).close()
            return
        except OSError as error:
            if time.monotonic() >= deadline:
                raise ClickmillError(
                    f"the Spark Connect server at {host}:{port} does not answer ({error}); "
                    "start it with: clickmill start"
                ) from None
        if not has_warned:
            log.warning("the Spark server at %s:%d does not answer; asked again for %.0f s", host, port, seconds)
            has_warned = True
        time.sleep(_PAUSE_SECONDS)


class _Patience(DefaultPolicy):
    """Of one client: an absence of its server is one, however many calls learn of it."""

    def __init__(self, address: str, seconds: float) -> None:
        super().__init__()
        self._address, self._seconds = address, seconds
        self._since = self._last = -_APART_SECONDS
        self._lock = Lock()
        #: Whether nothing is worth waiting for any more.
        self.is_over = False

    @override
    def to_state(self) -> RetryPolicyState:
        return _Asking(self)

    def goes_on(self) -> bool:
        """Whether to ask again, after the server has not answered."""
        with self._lock:
            now = time.monotonic()
            if self.is_over:
                return False
            if now - self._last > _APART_SECONDS:
                self._since = now
                log.warning(
                    "the Spark server at %s does not answer; asked again for %.0f s", self._address, self._seconds
                )
            self._last = now
            self.is_over = now - self._since >= self._seconds
            return not self.is_over


class _Asking(RetryPolicyState):
    """Of one call."""

    @override
    def next_attempt(self, exception: BaseException | None = None) -> int | None:
        if exception is not None and is_unanswered(exception):
            policy = self.policy
            assert isinstance(policy, _Patience)
            return int(_PAUSE_SECONDS * 1000) if policy.goes_on() else None
        return super().next_attempt(exception)
