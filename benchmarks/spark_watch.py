"""What the Spark server of a home and its Python workers cost."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil


class SparkWatch:
    """The Spark server of a home and its Python workers, while they work: processor seconds, memory now and at most.

    ``workers`` are those of a cluster, on this machine too. Memory is proportional (PSS): what forked workers share is
    counted once.
    """

    def __init__(self, home: Path, workers: Sequence[psutil.Process] = ()) -> None:
        self._roots = [_spark_server(home), *workers]
        self._end = threading.Event()
        #: Of each process that was seen.
        self._seconds: dict[psutil.Process, float] = {}
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.mebibytes = self.peak_mebibytes = 0.0
        #: At most, of one process.
        self.largest_mebibytes = 0.0
        self._thread.start()

    def processor_seconds(self) -> float:
        """So far, of those that run, and of those that have ended since the watch began, but for their last moments.

        Of a worker whose daemon is killed no process that is left knows what it took.
        """
        for process in self._processes():
            with suppress(psutil.Error):
                times = process.cpu_times()
                self._seconds[process] = times.user + times.system
        return sum(list(self._seconds.values()))

    def stop(self) -> float:
        """The largest memory of all together, in MiB."""
        self._end.set()
        self._thread.join()
        return self.peak_mebibytes

    def _watch(self) -> None:
        while not self._end.wait(0.5):
            self.processor_seconds()
            used = [0]
            for process in self._processes():
                with suppress(psutil.Error):
                    used.append(process.memory_full_info().pss)
            self.mebibytes = sum(used) / 2**20
            self.largest_mebibytes = max(self.largest_mebibytes, max(used) / 2**20)
            self.peak_mebibytes = max(self.peak_mebibytes, self.mebibytes)

    def _processes(self) -> list[psutil.Process]:
        return [process for root in self._roots for process in (root, *root.children(recursive=True))]


def _spark_server(home: Path) -> psutil.Process:
    for process in psutil.process_iter(["cmdline"]):
        command = " ".join(process.info["cmdline"] or ())
        if "org.apache.spark.deploy.SparkSubmit" in command and f"{home}/" in command:
            return process
    raise LookupError("no Spark server of this home")
