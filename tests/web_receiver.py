"""A web server on loopback that keeps what is posted to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any


@contextmanager
def receiver(status: int = 200, location: str = "") -> Iterator[tuple[str, list[tuple[dict[str, str], Any]]]]:
    """Its address, and what it has received: headers and JSON, oldest first; it answers with ``status``.

    A ``location`` is where it redirects to. A GET is received without JSON.
    """
    received: list[tuple[dict[str, str], Any]] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self._answer(json.loads(body))

        def do_GET(self) -> None:
            self._answer(None)

        def _answer(self, body: Any) -> None:
            received.append((dict(self.headers), body))
            self.send_response(status)
            if location:
                self.send_header("Location", location)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = HTTPServer(("127.0.0.1", 0), Receiver)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hooks/x", received
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
