"""Sample clicks that happen now, for a topic or for the ports of a receiver.

`python -m samples.live_clicks --bootstrap-servers … --topic … --rate N`, or `--ports host:port,… --rate N`. Like the
clicks of a landed sample: crawlers and people, duplicates, late and malformed ones. Goes on until Ctrl-C or SIGTERM.
"""

from __future__ import annotations

import signal
import time
from types import FrameType
from typing import NoReturn

import numpy as np
from confluent_kafka import KafkaException

from include.command import OneLineParser, exit_with
from include.errors import ClickmillError
from samples.draw_clicks import ClickFormat, ClickSource
from samples.malformed_lines import DAMAGES
from samples.sample_logs import DUPLICATE_SHARE, LATE_SHARE, MALFORMED_SHARE, PEOPLE_PER_HOURLY_CLICK
from samples.send_lines import Lines, ToPorts, ToTopic
from samples.truth import MILLISECONDS_PER_HOUR

#: How often records are sent.
TICK_SECONDS = 0.1
#: A click is logged so much after it happened, on average; a late one after minutes.
MEAN_DELAY_MILLISECONDS, MEAN_LATE_MILLISECONDS = 500, 240_000


class LiveClicks:
    """Draws the lines of clicks that have just happened."""

    def __init__(self, rate: float, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._source = ClickSource(people=max(1, int(rate * 3600 * PEOPLE_PER_HOURLY_CLICK)))
        self._format = ClickFormat(visitor_salt=seed)
        self._damaged = 0

    def lines(self, count: int, now: int) -> list[bytes]:
        """That many lines, and a few that are sent again; ``now`` is in milliseconds since 1970."""
        clicks = self._source.draw(self._rng, count, now - now % MILLISECONDS_PER_HOUR)
        is_late = self._rng.random(count) < LATE_SHARE
        mean = np.where(is_late, MEAN_LATE_MILLISECONDS, MEAN_DELAY_MILLISECONDS)
        clicks["clicked_at"] = now - self._rng.exponential(mean).astype(np.int64)
        lines = self._format.lines(clicks)
        for place in np.flatnonzero(self._rng.random(count) < MALFORMED_SHARE):
            _, damage = DAMAGES[self._damaged % len(DAMAGES)]
            lines[place] = damage(lines[place], self._damaged)
            self._damaged += 1
        again = np.flatnonzero(self._rng.random(count) < DUPLICATE_SHARE)
        return [line.encode("utf-8", "surrogateescape") for line in (*lines, *(lines[place] for place in again))]


def send(destination: Lines, rate: float, seed: int) -> NoReturn:
    """Send ``rate`` lines a second until interrupted."""
    clicks = LiveClicks(rate, seed)
    began, sent = time.monotonic(), 0
    try:
        while True:
            due = int((time.monotonic() - began) * rate) - sent
            destination.send(clicks.lines(due, int(time.time() * 1000)) if due else ())
            sent += due
            time.sleep(TICK_SECONDS)
    finally:
        destination.close()


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> None:
    """Run from the command line."""
    parser = OneLineParser(prog="python -m samples.live_clicks", description=__doc__)
    to = parser.add_mutually_exclusive_group(required=True)
    to.add_argument("--bootstrap-servers", help="where the broker of the topic answers")
    to.add_argument("--ports", help="where a receiver listens: host:port, separated by commas")
    parser.add_argument("--topic", help="of the broker")
    parser.add_argument("--rate", type=float, default=200, help="clicks a second (default 200)")
    parser.add_argument("--seed", type=int, default=7)
    arguments = parser.parse_args()
    if (arguments.topic is None) != (arguments.bootstrap_servers is None):
        parser.error("--bootstrap-servers and --topic are given together")
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        destination = (
            ToPorts(arguments.ports.split(","))
            if arguments.ports
            else ToTopic(arguments.bootstrap_servers, arguments.topic)
        )
        send(destination, arguments.rate, arguments.seed)
    except KeyboardInterrupt:
        return
    except (KafkaException, BufferError, OSError) as error:
        raise ClickmillError(f"{arguments.ports or arguments.bootstrap_servers} takes no clicks: {error}") from None


if __name__ == "__main__":
    exit_with(main, "live clicks")
