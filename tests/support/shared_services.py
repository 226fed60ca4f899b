"""The services of one run of tests: all of its processes use the same ones.

Spark compiles what it runs, and Java that again: two servers would do it twice, a seventh of all processor time
(docs/performance.md).
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from include.home import REPOSITORY
from ops.home import Home
from ops.services.running import Services
from ops.services.start import start
from ops.services.stop import stop
from tests.support.ports import claimed_port
from tests.support.spark_server import SparkServer

NOTIFICATIONS = """
[[held]]
notifier = "plugins.notifiers.webhook.WebhookNotifier"
connection = "held_webhook"
[held.payload]
hour = "{{ params.hour }}"
text = "{{ params.reasons | join('; ') }}"
page = "{{ task.generate_link_to_ui(task_instance=ti) }}"
"""

#: In their home: where the metrics are.
METRICS_PORT = "metrics-port"
#: In their home: the sources, a copy of those that are shipped.
SOURCES = "sources.toml"


@dataclass(frozen=True)
class SharedServices:
    """Services of a home of their own, started by the process that asks first, and ended with the run."""

    home: Home

    @classmethod
    def none_yet(cls) -> SharedServices:
        """Of a new home, in which nothing runs; nobody else can read it."""
        # Not under tmp_path: its long name leaves no room for a socket's path. A home may have a blank in its path.
        return cls(Home(Path(tempfile.mkdtemp(prefix="c m-")).resolve()))

    def start(self) -> Services:
        """All services, if they do not run; they tell the connection held_webhook of new holds.

        Their sources are those of ``SOURCES`` in the home, to which a test may add.
        """
        notifications = self.home.path / "notifications.toml"
        with self._lock:
            notifications.write_text(NOTIFICATIONS, encoding="utf-8")
            port = self.home.path / METRICS_PORT
            if not port.exists():
                port.write_text(str(claimed_port(19464, "metrics")), encoding="utf-8")
            sources = self.home.path / SOURCES
            if not sources.exists():
                shutil.copyfile(REPOSITORY / "config" / SOURCES, sources)
            asked = {
                "CLICKMILL_NOTIFICATIONS": str(notifications),
                "CLICKMILL_METRICS_PORT": port.read_text(),
                "CLICKMILL_SOURCES": str(sources),
            }
            return start(self.home.path, os.environ | asked)

    def spark_remote(self, *, with_airflow: bool) -> str:
        """SPARK_REMOTE of the one Spark server. Started now, it has the other services beside it or not."""
        # Where the services say it too.
        file = self.home.run / "spark_remote"
        with self._lock:
            if file.exists():
                return file.read_text(encoding="utf-8").strip()
            if not with_airflow:
                server = SparkServer.in_folder(self.home.path)
                server.start()
                file.write_text(server.remote, encoding="utf-8")
                return server.remote
        return self.start().spark_remote

    def end(self) -> None:
        """End all that runs, and remove the home."""
        stop(self.home.path)
        shutil.rmtree(self.home.path, ignore_errors=True)

    @property
    def _lock(self) -> FileLock:
        """Held while something starts: a process that comes meanwhile waits, and uses it."""
        return FileLock(self.home.path / "services.lock")
