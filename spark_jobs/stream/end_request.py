"""How a stream is asked to end: by a signal, looked at where nothing is in the middle of anything."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

_ENDINGS = (signal.SIGTERM, signal.SIGINT)


class EndRequest:
    """Whether this process was asked to end: by SIGTERM, or by SIGINT, which is Ctrl-C.

    The first signal is only noted, and looked at between two questions to Spark: an exception out of nowhere, in the
    middle of one, may leave a lock of Spark's client held for ever. A second one ends the process where it is, and the
    next start takes over what goes on in the server.
    """

    def __init__(self) -> None:
        self.made = False

    def listen(self) -> None:
        """Note the signals of this process from now on."""
        for ending in _ENDINGS:
            signal.signal(ending, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.made = True
        for ending in _ENDINGS:
            signal.signal(ending, signal.SIG_DFL)
        # Not by print, which may be in the middle of a line.
        os.write(sys.stderr.fileno(), b"asked to end; a second signal ends this at once\n")
