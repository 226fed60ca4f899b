"""Write a sample of JSON click logs to the landing zone, with everything that real logs have wrong with them.

The log hours are written one after the other; between them only late clicks and clicks sent again are kept.
What is due after the last log hour is never written, and is not in the truth. One spec gives the same bytes
every time.
"""

from __future__ import annotations

import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from backports import zstd

from include.errors import UsageError
from include.hours import Hour
from include.landing import SUCCESS, hour_folder, look_at
from include.storage import is_on_disk, touch, write_whole
from samples import catalog
from samples.draw_clicks import ClickFormat, Clicks, ClickSource
from samples.malformed_lines import DAMAGES, make_line_too_long, rename_url
from samples.sample_spec import SampleSpec, hour_number
from samples.truth import MILLISECONDS_PER_HOUR, Flags, Integers, LogHourTruth, Truth, TruthCounter

#: Called after each log hour, when it is closed, with the hour and its number of lines.
Progress = Callable[[Hour, int], None]
LATE_SHARE = 0.05
#: How many log hours late a late click lands, by share.
LATE_BY_HOURS = {1: 0.75, 2: 0.13, 3: 0.07, 4: 0.03, 5: 0.02}
DUPLICATE_SHARE = 0.01
#: Of those sent again, the share that is sent a third time too.
THIRD_TIME_SHARE = 0.05
#: How many log hours after the first arrival a click is sent again, by share; 0 is the same log hour.
SENT_AGAIN_AFTER_HOURS = {0: 0.6, 1: 0.22, 2: 0.11, 3: 0.07}
SENT_AGAIN_MILLISECONDS = 40_000
OUT_OF_ORDER_SHARE = 0.02
MALFORMED_SHARE = 0.0004
HOURLY_NOISE = 0.03
#: A person's clicks are few, so that there are several times as many people as clicks in an hour.
PEOPLE_PER_HOURLY_CLICK = 4


def make_sample(spec: SampleSpec, landing: Path, progress: Progress | None = None) -> Truth:
    """Write the sample under ``landing/<source>`` and return the truth about it.

    A log hour is closed with ``_SUCCESS`` when all of its files are in place. Running it again replaces its
    own files.

    Raises:
        UsageError: if the landing zone is no folder or a log hour holds other data; nothing is written.
        OSError: if a file cannot be written.
    """
    _check_landing(spec, landing)
    sample = _Sample(spec)
    log_hours = {}
    for arrived in sample.arrivals():
        truth = _write_hour(spec, landing, sample.format, arrived)
        log_hours[str(arrived.log_hour)] = truth
        if progress:
            progress(arrived.log_hour, truth.lines)
    return Truth(spec.source, spec.seed, log_hours, sample.counter.clicks_by_url, sample.counter.clicks_by_country)


@dataclass(frozen=True)
class _Malformed:
    """A malformed line, to be put at a place (0 to below 1) of the file with that number."""

    reason: str
    text: str
    file: int
    place: float


@dataclass(frozen=True)
class _Arrived:
    """A log hour's clicks, file by file in the order of their lines, and its malformed lines.

    Broken clicks are written without ``url``; those that are neither broken nor accepted are duplicates.
    """

    log_hour: Hour
    clicks: Clicks
    is_accepted: Flags
    is_broken: Flags
    file: Integers
    malformed: list[_Malformed]


@dataclass
class _Pending:
    """What lands in a log hour though it happened, or arrived for the first time, in an earlier one."""

    late: list[Clicks] = field(default_factory=list)
    sent_again: list[Clicks] = field(default_factory=list)


class _Sample:
    """Draws a sample's log hours in turn."""

    def __init__(self, spec: SampleSpec) -> None:
        self._spec = spec
        self._source = ClickSource(people=max(200, PEOPLE_PER_HOURLY_CLICK * spec.clicks_per_hour))
        self._pending: defaultdict[int, _Pending] = defaultdict(_Pending)
        self.format = ClickFormat(visitor_salt=spec.seed << 32 | zlib.crc32(spec.source.encode()))
        self.counter = TruthCounter(self.format.urls, self.format.countries)

    def arrivals(self) -> Iterator[_Arrived]:
        """The log hours, one after the other; the truth is complete after the last."""
        first = hour_number(self._spec.start)
        for index, log_hour in enumerate(self._spec.log_hours):
            yield self._arrive(index, log_hour)
            self.counter.close_before(first + index + 1 - max(LATE_BY_HOURS))
        self.counter.close_before(first + self._spec.hours)

    def _arrive(self, index: int, log_hour: Hour) -> _Arrived:
        spec = self._spec
        # A generator of its own for each log hour: its clicks do not depend on how many hours come before.
        rng = np.random.Generator(np.random.PCG64([spec.seed, zlib.crc32(spec.source.encode()), hour_number(log_hour)]))
        hour_start = hour_number(log_hour) * MILLISECONDS_PER_HOUR
        happened = self._source.draw(rng, _draw_volume(rng, spec.clicks_per_hour, log_hour.hour), hour_start)
        pending = self._pending.pop(index, _Pending())
        accepted, broken = self._break(rng, log_hour, self._delay(rng, index, happened), pending.late)
        first, again = self._send_again(rng, index, accepted)
        clicks = np.concatenate([accepted, again, *pending.sent_again, broken])
        file = _assign_files(rng, len(clicks), spec.files_per_hour, first, len(accepted))
        order = _order_lines(rng, clicks["clicked_at"], file, hour_start, first, len(accepted))
        is_accepted = np.arange(len(clicks)) < len(accepted)
        is_broken = np.arange(len(clicks)) >= len(clicks) - len(broken)
        self._count(accepted)
        malformed = self._damage(rng, index, hour_start)
        return _Arrived(log_hour, clicks[order], is_accepted[order], is_broken[order], file[order], malformed)

    def _delay(self, rng: np.random.Generator, index: int, happened: Clicks) -> Clicks:
        """Those that arrive in time; the late ones are kept for the log hours in which they arrive."""
        if self._spec.is_clean:
            return happened
        shares = [1 - LATE_SHARE, *(LATE_SHARE * share for share in LATE_BY_HOURS.values())]
        delay = rng.choice([0, *LATE_BY_HOURS], len(happened), p=shares)
        for hours in LATE_BY_HOURS:
            if index + hours < self._spec.hours:
                self._pending[index + hours].late.append(happened[delay == hours])
        return np.asarray(happened[delay == 0])

    def _break(
        self, rng: np.random.Generator, log_hour: Hour, in_time: Clicks, late: list[Clicks]
    ) -> tuple[Clicks, Clicks]:
        """Those that arrive as they should, and those that the log hour's fault breaks."""
        share = self._spec.broken.get(log_hour)
        if share is None:
            return np.concatenate([in_time, *late]), in_time[:0]
        is_broken = rng.random(len(in_time)) < share
        return in_time[~is_broken], np.concatenate([in_time[is_broken], *late])

    def _send_again(self, rng: np.random.Generator, index: int, accepted: Clicks) -> tuple[Integers, Clicks]:
        """What is sent again in the same log hour: the indexes of the first arrivals, and their copies."""
        if self._spec.is_clean:
            return np.empty(0, dtype=np.int64), accepted[:0]
        chosen = np.flatnonzero(rng.random(len(accepted)) < DUPLICATE_SHARE / (1 + THIRD_TIME_SHARE))
        chosen = np.concatenate([chosen, chosen[rng.random(len(chosen)) < THIRD_TIME_SHARE]])
        copies = self._source.rewrite(rng, accepted[chosen])
        after = rng.choice(list(SENT_AGAIN_AFTER_HOURS), len(chosen), p=list(SENT_AGAIN_AFTER_HOURS.values()))
        for hours in SENT_AGAIN_AFTER_HOURS:
            if hours and index + hours < self._spec.hours:
                self._pending[index + hours].sent_again.append(copies[after == hours])
        return chosen[after == 0], copies[after == 0]

    def _count(self, accepted: Clicks) -> None:
        self.counter.add(
            accepted["clicked_at"],
            self.format.url_of(accepted),
            self.format.country_of(accepted),
            accepted["visitor"],
            self.format.is_bot(accepted),
        )

    def _damage(self, rng: np.random.Generator, index: int, hour_start: int) -> list[_Malformed]:
        """The log hour's malformed lines: every kind of damage in turn, evenly over the sample's hours."""
        spec = self._spec
        if spec.is_clean:
            return []
        total = max(len(DAMAGES), round(MALFORMED_SHARE * spec.clicks_per_hour * spec.hours))
        turns = range(total * index // spec.hours, total * (index + 1) // spec.hours)
        # Very long lines are rare: one or two a sample.
        is_with_long_line = index in (spec.hours // 3, 2 * spec.hours // 3)
        fine = self.format.lines(self._source.draw(rng, len(turns) + is_with_long_line, hour_start))
        made = [
            (DAMAGES[turn % len(DAMAGES)][0], DAMAGES[turn % len(DAMAGES)][1](line, turn // len(DAMAGES)))
            for turn, line in zip(turns, fine, strict=False)
        ]
        if is_with_long_line:
            made.append(("line_too_long", make_line_too_long(fine[-1])))
        files, places = (
            rng.integers(0, spec.files_per_hour, len(made)).tolist(),
            rng.random(len(made)).tolist(),
        )
        return [_Malformed(*line, file, place) for line, file, place in zip(made, files, places, strict=True)]


def _draw_volume(rng: np.random.Generator, clicks_per_hour: int, hour_of_day: int) -> int:
    """How many clicks happen in the hour, at least one."""
    curve = catalog.DAILY_CURVE[hour_of_day] * len(catalog.DAILY_CURVE) / sum(catalog.DAILY_CURVE)
    return max(1, round(clicks_per_hour * curve * (1 + HOURLY_NOISE * float(rng.uniform(-1, 1)))))


def _assign_files(rng: np.random.Generator, count: int, files: int, first: Integers, accepted: int) -> Integers:
    """Per line the number of its file, as if each file were one front end's.

    A copy (those from ``accepted`` on belong to ``first``, in order) goes to its first arrival's file or a
    later one.
    """
    file = rng.integers(0, files, count)
    origin = file[first]
    elsewhere = origin + (rng.random(len(first)) * (files - origin)).astype(np.int64)
    file[accepted : accepted + len(first)] = np.where(rng.random(len(first)) < 0.5, origin, elsewhere)
    return file


def _order_lines(
    rng: np.random.Generator,
    clicked_at: Integers,
    file: Integers,
    hour_start: int,
    first: Integers,
    accepted: int,
) -> Integers:
    """The order of all lines: by file, then by the time at which they were sent, but a few slip back.

    Late clicks and copies from earlier log hours so come first in their file, as a backlog that is sent at
    once. A copy of the same log hour is sent a while after its first arrival.
    """
    copies = slice(accepted, accepted + len(first))
    sent_at = clicked_at.astype(np.float64)
    sent_at[copies] = np.maximum(sent_at[copies], hour_start) + 1 + rng.exponential(SENT_AGAIN_MILLISECONDS, len(first))
    in_time = np.lexsort((sent_at, file))
    # By places, not by seconds: as large a share slips back in a busy hour as in a quiet one.
    slips = rng.random(len(file)) < OUT_OF_ORDER_SHARE
    # First arrivals and their copies keep their order.
    slips[first] = slips[accepted:] = False
    place = np.empty(len(file))
    place[in_time] = np.arange(len(file))
    place += slips * rng.uniform(1.1, 6.9, len(file))
    return np.lexsort((place, file))


def _write_hour(spec: SampleSpec, landing: Path, click_format: ClickFormat, arrived: _Arrived) -> LogHourTruth:
    """Write a log hour's files and close it."""
    folder = hour_folder(landing, spec.source, arrived.log_hour)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / SUCCESS).unlink(missing_ok=True)
    out_of_order = 0
    bounds = np.searchsorted(arrived.file, np.arange(spec.files_per_hour + 1)).tolist()
    for number, name in enumerate(spec.file_names(arrived.log_hour)):
        of_file = slice(bounds[number], bounds[number + 1])
        is_broken = arrived.is_broken[of_file]
        clicked_at, is_accepted = arrived.clicks["clicked_at"][of_file], arrived.is_accepted[of_file]
        out_of_order += count_out_of_order(clicked_at[~is_broken], is_accepted[~is_broken])
        lines = click_format.lines(arrived.clicks[of_file])
        for broken in np.flatnonzero(is_broken).tolist():
            lines[broken] = rename_url(lines[broken])
        for malformed in arrived.malformed:
            if malformed.file == number:
                lines.insert(int(malformed.place * (len(lines) + 1)), malformed.text)
        data = _compress(lines, spec.codec(arrived.log_hour, number))
        write_whole(folder / name, data)
    touch(folder / SUCCESS)
    hour_start = hour_number(arrived.log_hour) * MILLISECONDS_PER_HOUR
    accepted, broken = int(arrived.is_accepted.sum()), int(arrived.is_broken.sum())
    quarantined = Counter(malformed.reason for malformed in arrived.malformed)
    if broken:
        quarantined["missing_url"] += broken
    return LogHourTruth(
        lines=len(arrived.clicks) + len(arrived.malformed),
        accepted=accepted,
        duplicates=len(arrived.clicks) - accepted - broken,
        late=int((arrived.clicks["clicked_at"][arrived.is_accepted] < hour_start).sum()),
        out_of_order=out_of_order,
        quarantined=dict(sorted(quarantined.items())),
        files=spec.files_per_hour,
    )


def count_out_of_order(clicked_at: Integers, is_accepted: Flags) -> int:
    """Accepted lines of one file that are older than a well-formed line before them; lines in their order."""
    latest_before = np.maximum.accumulate(clicked_at)[:-1]
    return int(((clicked_at[1:] < latest_before) & is_accepted[1:]).sum())


def _compress(lines: list[str], codec: str) -> bytes:
    data = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
    match codec:
        case "gzip":
            # wbits 31: a gzip header without time and name, so that the same lines are the same bytes.
            return zlib.compress(data, level=3, wbits=31)
        case "zstd":
            return zstd.compress(data, 3)
        case _:
            return data


def _check_landing(spec: SampleSpec, landing: Path) -> None:
    if is_on_disk(landing):
        source_folder = (landing / spec.source).absolute()
        existing = next(folder for folder in (source_folder, *source_folder.parents) if folder.exists())
        if not existing.is_dir():
            raise UsageError(
                f"landing {landing}: {existing} is a file; expected a folder, or a path where one can be made"
            )
    for log_hour in spec.log_hours:
        landed = look_at(landing, spec.source, log_hour)
        others = sorted({file.name for file in landed.files} - set(spec.file_names(log_hour)))
        if others:
            raise UsageError(
                f"{landed.folder} already holds {others[0]}, which is not a file of this sample "
                f"({len(others)} such); expected an hour without other data: delete the folder, "
                "or choose another landing, source or hours"
            )
