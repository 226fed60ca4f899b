from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import SimpleNamespace
from typing import Any, cast

from spark_jobs.engine.spark_status import SparkStatus


@contextmanager
def _answering(codes: list[int]) -> Iterator[SparkStatus]:
    """A status whose API answers with these codes in turn, and with an empty list where it finds something."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(codes.pop(0))
            self.end_headers()
            self.wfile.write(b"[]")

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield SparkStatus(cast(Any, SimpleNamespace()), f"http://127.0.0.1:{server.server_port}", "app")
    finally:
        server.shutdown()
        server.server_close()


def test_a_list_that_is_not_found_once_is_asked_for_again() -> None:
    with _answering([404, 404, 200]) as status:
        assert status._get("sql") == []
        assert status.problem is None


def test_a_list_that_is_never_found_is_a_problem() -> None:
    with _answering([404, 404, 404]) as status:
        assert status._get("sql") is None
        assert status.problem is not None
        assert status.problem.endswith("answers 404")
