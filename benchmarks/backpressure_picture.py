"""The picture of a stream that falls behind: records produced and read, lag and memory over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks import picture
from benchmarks.picture import Chart, first, second


@dataclass(frozen=True)
class Moment:
    """What is seen at one second: records so far, memory, and whether more are being produced."""

    second: float
    produced: int
    read: int
    mebibytes: float
    is_producing: bool

    @property
    def lag(self) -> int:
        """Records that are produced and not read."""
        return self.produced - self.read


def draw(seen: Sequence[Moment]) -> str:
    """The SVG: three charts over the seconds."""
    charts = (
        Chart(
            f"{first('produced')} and {second('read')}, million records",
            [
                [(moment.second, moment.produced / 1e6) for moment in seen],
                [(moment.second, moment.read / 1e6) for moment in seen],
            ],
        ),
        Chart("lag, million records", [[(moment.second, moment.lag / 1e6) for moment in seen]]),
        Chart(
            "memory of Spark's server and its workers, GiB",
            [[(moment.second, moment.mebibytes / 1024) for moment in seen]],
        ),
    )
    last = max(moment.second for moment in seen if moment.is_producing)
    label = "Records produced and read, lag and memory while a stream falls behind, and after"
    return picture.draw(charts, label, "seconds", f"nothing is produced after {last:.0f}")
