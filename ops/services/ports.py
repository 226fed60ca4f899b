"""Loopback ports: a free one near the usual one, and no two starts choosing the same."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from include.errors import ClickmillError, UsageError

HOW_FAR = 200


def private_temp_folder() -> Path:
    """Return this user's own folder (mode 0700) under the temp folder.

    Raises:
        ClickmillError: when another user made it first, who could then swap what is in it.
    """
    folder = Path(tempfile.gettempdir()) / f"clickmill-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise ClickmillError(f"{folder} is not a folder of yours: remove it, or set TMPDIR to a folder of your own")
    folder.chmod(0o700)
    return folder


def port_is_free(port: int) -> bool:
    """Whether nothing listens on the port, on either loopback address.

    ::1 counts too: a client that dials `localhost` may try it first, and would hand its token to a stranger.
    """
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        try:
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                # Connections of an earlier run that wait to be forgotten do not stop a server.
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind((address, port))
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                return False
            # Otherwise this machine has no such address (IPv6 off).
    return True


class PortChooser:
    """Chooses ports and keeps other starts from choosing them until the services have bound them.

    A choice is a lock on a file: it ends with the process that holds it, however that ends.
    """

    def __init__(self, environment: Mapping[str, str], folder: Path | None = None) -> None:
        self._environment = environment
        self._folder = folder or private_temp_folder()
        self._held: list[IO[str]] = []

    def __enter__(self) -> Self:
        """Hold choices until the block ends."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the choices go."""
        for held in self._held:
            held.close()
        self._held.clear()

    def _claim(self, port: int) -> bool:
        claim = (self._folder / f"port-{port}").open("a")
        try:
            fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            claim.close()
            return False
        if not port_is_free(port):
            claim.close()
            return False
        self._held.append(claim)
        return True

    def choose(self, variable: str, usual: int, service: str) -> int:
        """Return the port that `variable` fixes, else the first free one from `usual` on.

        Raises:
            UsageError: when the variable holds no port number or one that is taken.
        """
        fixed = self._environment.get(variable, "").strip()
        if fixed:
            if not fixed.isascii() or not fixed.isdigit() or not 1 <= int(fixed) <= 65535:
                raise UsageError(f"{variable}={fixed!r}: expected a port number from 1 to 65535")
            if not self._claim(int(fixed)):
                raise UsageError(
                    f"port {fixed} for {service} is taken: set {variable} to a free port, or unset it to have one "
                    "chosen",
                )
            return int(fixed)
        for port in range(usual, min(usual + HOW_FAR, 65536)):
            if self._claim(port):
                return port
        raise UsageError(
            f"no free port for {service} from {usual} to {usual + HOW_FAR - 1}: set {variable} to a free port"
        )
