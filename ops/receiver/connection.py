"""One client's connection: its lines as they come, and answers that neither end nor slow their reading.

By plain sockets: asyncio's streams give up what was received as soon as an answer cannot be written, and a client that
reads no answers and closes makes that happen at its end.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress

from include.utf_16 import ENOUGH_BYTES, MARKS, ToUtf8, encoding_of
from ops.receiver.spool import LineSplitter

#: So many bytes are read from a client in one go.
MOST_READ = 128 * 1024
#: By so many of the first ones it is known whether they are UTF-16.
_MOST_LOOKED_AT = 1 << 12


class Decoder:
    """UTF-16 as UTF-8, known by its byte order mark or by its first characters; all else as it is."""

    def __init__(self) -> None:
        self._begun = b""
        self._is_known = False
        self._text: ToUtf8 | None = None

    def feed(self, chunk: bytes) -> bytes:
        """What these bytes mean; nothing yet of a few that may be the beginning of UTF-16."""
        if not self._is_known:
            self._begun += chunk
            if _may_become_utf_16(self._begun):
                return b""
            chunk = self._begin()
        return self._text.feed(chunk) if self._text else chunk

    def end(self) -> bytes:
        """What is left when no more comes."""
        rest = b"" if self._is_known else self._begin()
        return self._text.feed(rest) + self._text.end() if self._text else rest

    @property
    def held_bytes(self) -> int:
        """How many have come of which nothing is known yet."""
        return len(self._begun)

    def _begin(self) -> bytes:
        begun, self._begun, self._is_known = self._begun, b"", True
        if encoding := encoding_of(begun[:_MOST_LOOKED_AT]):
            self._text = ToUtf8(encoding)
        return begun


def _may_become_utf_16(begun: bytes) -> bool:
    """Whether these few bytes, not known to be UTF-16, may be the beginning of a text that is."""
    if len(begun) == 1:
        return any(mark.startswith(begun) for mark in MARKS) or begun == b"\0"
    return len(begun) < ENOUGH_BYTES and b"\0" in begun and begun[:2] not in MARKS


class Connection:
    """A client's lines, and the answers to them; made within a running event loop.

    An answer holds for all lines of the connection so far, so only the newest is kept for a client that reads slowly,
    or never. ``broke_off`` is the error by which it ended, None for an end that the client has said, or none yet;
    ``stored`` is how many of its lines are on the disk; ``dropped_for`` is why the receiver is to end it.

    Args:
        accepted: the socket; closed by ``close``.
        longest: so many bytes of a line are kept.
        reads_answers: False: nothing is ever sent to it, as what is left unread would break the connection when the
            client closes it, and with it what it has sent last.
    """

    def __init__(self, accepted: socket.socket, longest: int, reads_answers: bool) -> None:
        accepted.setblocking(False)
        with suppress(OSError):  # gone already
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._socket = accepted
        self._decoder, self._splitter = Decoder(), LineSplitter(longest)
        self._answer = b""
        self._is_new, self._is_sent = asyncio.Event(), asyncio.Event()
        self._is_sent.set()
        self._answers = asyncio.create_task(self._keep_answering()) if reads_answers else None
        self.broke_off: OSError | None = None
        self.stored = 0
        self.dropped_for: str | None = None
        try:
            self.client = "{}:{}".format(*accepted.getpeername()[:2])
        except OSError:
            self.client = "a client that was gone at once"

    async def next_lines(self) -> tuple[list[bytes], bool]:
        """What comes until there is a whole line or the client's end, and whether that has come."""
        loop = asyncio.get_running_loop()
        try:
            while chunk := await loop.sock_recv(self._socket, MOST_READ):
                if lines := self._splitter.feed(self._decoder.feed(chunk)):
                    return lines, False
        except OSError as error:
            self.broke_off = self.broke_off or error
        return self._splitter.feed(self._decoder.end()) + self._splitter.rest(), True

    def lines_here(self) -> list[bytes]:
        """The whole lines that have reached this machine and were not read yet."""
        lines: list[bytes] = []
        with suppress(OSError):
            # More than that, the kernel did not hold when this began.
            left = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
            while left > 0 and (chunk := self._socket.recv(MOST_READ)):
                left -= len(chunk)
                lines += self._splitter.feed(self._decoder.feed(chunk))
        return lines

    @property
    def unfinished_bytes(self) -> int:
        """How much of a line without its end has come, and is not stored."""
        return self._splitter.unfinished_bytes + self._decoder.held_bytes

    def answer(self, text: str) -> None:
        """Send the answer as soon as the client takes it, unless a newer one is there by then."""
        if self._answers and not self._answers.done():
            self._answer = f"{text}\n".encode()
            self._is_sent.clear()
            self._is_new.set()

    async def answered(self) -> None:
        """Wait until the newest answer has been sent, or cannot be."""
        await self._is_sent.wait()

    async def _keep_answering(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while True:
                await self._is_new.wait()
                self._is_new.clear()
                await loop.sock_sendall(self._socket, self._answer)
                if not self._is_new.is_set():
                    self._is_sent.set()
        except OSError as error:
            self.broke_off = self.broke_off or error
            self._is_sent.set()

    def close(self, last_word: str = "") -> None:
        """End the connection; a client that does not take the last word at once does not get it."""
        if self._answers:
            self._answers.cancel()
            # Not into the middle of an answer.
            if last_word and self._is_sent.is_set():
                with suppress(OSError):
                    self._socket.send(f"{last_word}\n".encode())
        self._socket.close()
