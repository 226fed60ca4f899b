"""What sample to write: its hours, size, files and faults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from include.errors import UsageError
from include.hours import Hour, HourRange
from include.sources import SOURCE_NAME

Compression = Literal["mixed", "gzip", "zstd", "none"]
EXTENSIONS = {"none": "json", "gzip": "json.gz", "zstd": "json.zst"}
FIRST_YEAR, LAST_YEAR = 1971, 2098


@dataclass(frozen=True)
class SampleSpec:
    """What to write: ``hours`` log hours from ``start`` on, over a whole day ``clicks_per_hour`` on average.

    A clean sample has no malformed lines, duplicates or late clicks. Duplicates come on top of the clicks.
    ``broken`` has log hours in which a share of the clicks is written without ``url``, as by a release that went wrong,
    and so are all late ones: such a log hour has clicks of its own click hour only.

    Raises:
        UsageError: naming every wrong value.
    """

    start: Hour
    source: str = "web"
    hours: int = 12
    clicks_per_hour: int = 20_000
    seed: int = 7
    compression: Compression = "mixed"
    files_per_hour: int = 3
    is_clean: bool = False
    broken: Mapping[Hour, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        numbers = {
            "hours": (self.hours, 1, 87_600),
            "clicks_per_hour": (self.clicks_per_hour, 1, 5_000_000),
            "files_per_hour": (self.files_per_hour, 1, 99_999),
            "seed": (self.seed, 0, 2**32 - 1),
        }
        wrong = [
            f"{name} {value}: expected {lowest} to {highest}"
            for name, (value, lowest, highest) in numbers.items()
            if not lowest <= value <= highest
        ]
        if not SOURCE_NAME.fullmatch(self.source):
            wrong.append(f"source {self.source!r}: expected lower case letters, digits and _, a letter first")
        if self.compression not in get_args(Compression):
            wrong.append(f"compression {self.compression!r}: expected one of {', '.join(get_args(Compression))}")
        wrong += [
            f"broken {log_hour}={share:g}: expected a log hour of the sample, and a share above 0 and up to 1"
            for log_hour, share in self.broken.items()
            if not (self.start <= log_hour < self.start.plus(self.hours) and 0 < share <= 1)
        ]
        # 1970 and 2100 are what the sample's impossible clicks are dated.
        if not FIRST_YEAR <= self.start.start.year <= LAST_YEAR - self.hours // 8760:
            wrong.append(f"start {self.start}: expected hours within {FIRST_YEAR} to {LAST_YEAR}")
        if wrong:
            raise UsageError("; ".join(wrong))

    @property
    def log_hours(self) -> HourRange:
        """The log hours, half-open."""
        return HourRange(self.start, self.start.plus(self.hours))

    def codec(self, log_hour: Hour, file: int) -> str:
        """How a file is compressed: none, gzip or zstd. Mixed takes turns, over the hours too."""
        if self.compression != "mixed":
            return self.compression
        return list(EXTENSIONS)[(hour_number(log_hour) + file) % len(EXTENSIONS)]

    def file_names(self, log_hour: Hour) -> list[str]:
        """The names of a log hour's files, in order."""
        return [f"part-{n:05d}.{EXTENSIONS[self.codec(log_hour, n)]}" for n in range(self.files_per_hour)]


def hour_number(hour: Hour) -> int:
    """Hours since 1970-01-01T00."""
    return int(hour.start.timestamp()) // 3600
