"""An erasure from beginning to end: found, put on record, erased, counted again, old files removed, searched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path

from pyspark.sql import SparkSession

from include.backfills import read_backfills
from include.counting import counted_tables
from include.errors import ClickmillError, FinalError, QualityError, UsageError
from include.hours import Hour, log_hour_of, near_each_other
from include.job_arguments import JobArguments, require_signed
from include.landing import look_at
from include.locks import locks_of
from include.settings import Settings
from include.source_fields import LineFields
from include.sources import Source, load_sources
from include.storage import Entry, entry_of, is_on_disk, names, remove_folder
from include.tables import AGGREGATES, INGEST_ACCOUNTING, PUBLISHED
from spark_jobs.erasure.accounts import recount, say_rewritten
from spark_jobs.erasure.certificate import COMPLETED, Certificate, erasure_key
from spark_jobs.erasure.landing import landed_files, matching_lines, write_without
from spark_jobs.erasure.matches import Matcher, Words
from spark_jobs.erasure.old_files import remove_former_versions
from spark_jobs.erasure.places import move_places
from spark_jobs.erasure.requests import LEAST_CHARACTERS, Requests
from spark_jobs.erasure.search import Searched, search
from spark_jobs.erasure.streams import count_live_again, no_stream_runs
from spark_jobs.erasure.tables import (
    SelectedRows,
    find_joined,
    find_rows,
    has_landed_clicks,
    redact_others,
    remove_rows,
)
from spark_jobs.grouping.load import aggregate_measured
from spark_jobs.hours.held_hours import dropped_hours
from spark_jobs.hours.stream_batches import in_order_of_time
from spark_jobs.hours.touched_hours import closed_click_hours, removed_log_hours
from spark_jobs.ingest.job import ingest
from spark_jobs.lake.data_files import may_have_click_hours
from spark_jobs.lake.journal import signed_act
from spark_jobs.lake.lake import Lake
from spark_jobs.lake.stages import Stage, Stages, evaluate, explain
from spark_jobs.lake.unneeded_files import newest_versions, stored_tables
from spark_jobs.landing.landed_logs import landed_logs
from spark_jobs.lines.arrivals import LineParser
from spark_jobs.lines.read_lines import LandedFile
from spark_jobs.publish.job import publish
from spark_jobs.quality.job import require_valid

#: What an erasure cannot reach, and who can.
OUTSIDE = (
    "backups and snapshots of disks and buckets: let them expire, or erase there after a restore",
    "the log files that were landed from: what is landed again has the lines again",
    "Airflow's own database and logs: they have what people typed into forms; airflow db clean",
    "the results database: rows are replaced, the old ones go with its own VACUUM",
)
#: The same of data in an object store.
OF_BUCKET = "the bucket's former versions of objects, and uploads that were broken off: lifecycle rules of the bucket"


@dataclass
class Selection:
    """What is to go: rows of tables, and of each source the landed files and which lines of each.

    ``sizes`` says how many lines the landed files have; ``unjoined`` by source of which log hours it cannot be said
    which lines are those of rows that go, or the other way round.
    """

    rows: SelectedRows
    files: dict[str, dict[LandedFile, set[int]]] = field(default_factory=dict)
    sizes: dict[LandedFile, int] = field(default_factory=dict)
    unjoined: dict[str, set[Hour]] = field(default_factory=dict)

    @property
    def numbers(self) -> dict[str, int]:
        """How much, by place."""
        lines = sum(len(numbers) for of_source in self.files.values() for numbers in of_source.values())
        return {"landing": lines, **self.rows.rows} if lines else dict(self.rows.rows)

    @property
    def log_hours(self) -> dict[str, set[Hour]]:
        """By source, where something is to go."""
        hours = {source: set(of_source) for source, of_source in self.rows.places.items()}
        for source, files in self.files.items():
            hours.setdefault(source, set()).update(file.hour for file in files)
        return hours


@dataclass(frozen=True)
class Plan:
    """What an erasure would do, without a name: ``requests`` are hashes, ``numbers`` is how much, by place."""

    requests: list[str]
    numbers: dict[str, int]
    lines: list[str]


class Erasure:
    """One erasure of what is asked for."""

    def __init__(self, spark: SparkSession, settings: Settings, requests: Requests) -> None:
        self.spark, self.settings, self.requests = spark, settings, requests
        self.lake = Lake(spark, settings)
        self.sources = load_sources(settings)
        self.words = Words(tuple(requests.words()))
        self.matcher_of = cache(self._matcher)

    def _matcher(self, source: str) -> Matcher:
        # What is of a source that is not declared any more is known by its texts.
        unknown = Source(name=source, format="json", fields=LineFields(time="-", url="-"))
        return Matcher.of(self.requests, LineParser.of(self.sources.get(source, unknown), self.settings))

    def find(self) -> Selection:
        """Look at every row and every landed line, and join those that are to go by their places; changes nothing.

        Raises:
            UsageError: if all clicks of a source would go by a URL prefix, or a source is not declared any more.
            ClickmillError: if a file cannot be read.
        """
        rows = find_rows(self.lake, self.matcher_of)
        for source, clicks in rows.by_prefix.items():
            if any(clicks[prefix] == clicks[""] for prefix in self.requests.url_prefixes if clicks[""]):
                raise UsageError(
                    f"a URL prefix fits all {clicks['']:,} clicks of source {source}: expected one that fits some; "
                    "to remove a source, remove its folders"
                )
        landed: dict[str, dict[Hour, dict[LandedFile, set[int]]]] = {}
        sizes: dict[LandedFile, int] = {}
        for source in self._landed_sources():
            for file in landed_files(self.settings.landing, source):
                with _named(file.path):
                    lines, sizes[file] = matching_lines(file, self.matcher_of(source))
                landed.setdefault(source, {}).setdefault(file.hour, {})[file] = lines
        selection = self._joined(rows, landed, sizes)
        while visitors := frozenset(selection.rows.visitors - rows.visitors):
            # Those of an address, by its lines: they may have rows where the lines are gone.
            rows = find_rows(self.lake, cache(lambda source, also=visitors: self.matcher_of(source).also(also)))
            rows.visitors |= visitors
            selection = self._joined(rows, landed, sizes)
        if unknown := selection.log_hours.keys() - self.sources.keys():
            raise UsageError(
                f"there is something to erase of {', '.join(sorted(unknown))}, which {self.settings.sources_file} does "
                "not declare: expected it there, as its hours are to be counted again"
            )
        return selection

    def _joined(
        self,
        rows: SelectedRows,
        landed: Mapping[str, Mapping[Hour, Mapping[LandedFile, set[int]]]],
        sizes: dict[LandedFile, int],
    ) -> Selection:
        selection = Selection(deepcopy(rows), sizes=sizes)
        for source, hours in landed.items():
            for hour, files in hours.items():
                if not any(files.values()) and not selection.rows.places.get(source, {}).get(hour):
                    continue
                with _named(files):
                    lines, is_whole = find_joined(
                        self.lake, selection.rows, source, hour, files, self.matcher_of(source)
                    )
                if lines:
                    selection.files.setdefault(source, {}).update(lines)
                if not is_whole:
                    selection.unjoined.setdefault(source, set()).add(hour)
        return selection

    def _landed_sources(self) -> list[str]:
        return sorted(name for name in names(self.settings.landing) if name[0] not in "._")

    def certificate(self, by: str, because: str) -> tuple[Certificate, Selection | None]:
        """That of an erasure of the same requests that was killed; or that of one that begins, and what it finds.

        Raises:
            FinalError: if there is nothing to erase, and no erasure of the same requests to finish.
        """
        if begun := Certificate.open(self.settings, self.hashes()):
            return begun, None
        selection = self.find()
        if not selection.numbers:
            raise FinalError(
                "nothing found: no line, click or quarantined line is of what is asked for; nothing is changed"
            )
        return Certificate.new(self.hashes(), by.strip(), because.strip()), selection

    def hashes(self) -> list[str]:
        """Which requests these are, without a name."""
        return self.requests.hashes(erasure_key(self.settings))

    def stages(self, certificate: Certificate, selection: Selection | None, shown: Plan | None = None) -> Stages:
        """The rest of what a killed one has begun, then all that is found; ``shown`` is what a person has seen."""
        if certificate.is_removing:
            yield Stage("remove", [], partial(self.remove, certificate))
        selection = selection or self.find()

        def erase() -> list[str]:
            self.plan(certificate, selection)
            self.erase(certificate, selection)
            return [*_described(certificate.found), *(_more(selection.numbers, shown.numbers) if shown else [])]

        rest = [f"  the rest of erasure {certificate.erasure_id}, which was begun"] if certificate.found_at else []
        yield Stage("erase", [*rest, *_described(selection.numbers)], erase)
        if selection.numbers or not certificate.is_counted:
            line = (
                f"  in {sum(map(len, selection.log_hours.values())):,} log hours; at least "
                f"{len(selection.rows.click_hours):,} click hours are counted again, and published or held"
            )
            yield Stage("count", [line], partial(self.count_again, certificate))
        yield Stage("old files", [], self.remove_old_files)
        yield Stage("search", [], partial(_conclude, self, certificate))

    def plan(self, certificate: Certificate, selection: Selection) -> None:
        """Put on record what is to go, before anything does."""
        known = newest_versions(self.settings.lake)
        for name, number in known.items():
            certificate.versions.setdefault(name, {"before": number})
        certificate.add(selection.log_hours, selection.rows.click_hours, selection.numbers)
        for source, hours in selection.unjoined.items():
            certificate.unjoined_hours[source] = sorted({*certificate.unjoined_hours.get(source, []), *map(str, hours)})
        certificate.write(self.settings)

    def erase(self, certificate: Certificate, selection: Selection) -> None:
        """From other tables first, as who the visitors of an address are follows from the clicks; then at the root."""
        visitors = frozenset(selection.rows.visitors)
        events = frozenset(event_id for event_id in selection.rows.event_ids if len(event_id) >= LEAST_CHARACTERS)
        any_source = self._matcher("").also(visitors | events)
        self.words = Words((*self.words.words, *sorted(visitors)))
        with self.lake.locked():
            redacted = redact_others(self.lake, any_source, self._counts)
            certificate.add({}, set(), dict(redacted))
            kept = {source: self._not_to_ingest(source, certificate) for source in certificate.log_hours}
            rows = {
                source: {hour: places for hour, places in hours.items() if hour in kept[source]}
                for source, hours in selection.rows.places.items()
            }
            if selection.numbers:
                certificate.begin_removal(selection.files, selection.sizes, rows)
            certificate.write(self.settings)
        if certificate.is_removing:
            self.remove(certificate)

    def remove(self, certificate: Certificate) -> None:
        """What is on record from landed files, then from tables; what of it has gone already is left as it is.

        Where the landing is there, by ingesting again; until that is done, rows have the numbers that their lines had,
        and nothing more is to be looked for. What a stream has read is accounted for before its rows go.
        """
        self._ingest(
            [source for source in certificate.log_hours if self.sources[source].stream is not None], certificate
        )
        with self.lake.locked():
            for source, hours in certificate.removed_lines.items():
                self._rewrite(source, hours, certificate.lines_before[source])
            move_places(self.lake, certificate)
            for source in certificate.log_hours:
                self._remove_rows(source, sorted(self._not_to_ingest(source, certificate)), certificate)
        self._ingest(certificate.log_hours, certificate)
        certificate.end_removal()
        certificate.write(self.settings)

    def _ingest(self, sources: Iterable[str], certificate: Certificate) -> None:
        for source in sources:
            there = self._ingested(source, certificate)
            # Of a stream they are only accounted for again.
            if self.sources[source].stream is None:
                there -= self._not_to_ingest(source, certificate)
            for log_hours in near_each_other(there):
                ingest(self.spark, self.settings, JobArguments(source, log_hours))

    def _rewrite(
        self, source: str, hours: Mapping[str, Mapping[str, list[int]]], before: Mapping[str, Mapping[str, int]]
    ) -> None:
        locks, rewritten = locks_of(self.settings), dict[Hour, list[tuple[Entry, Entry]]]()
        with locks.held(f"land-{source}") as lock, landed_logs(self.settings.landing, source, lock.require):
            for log_hour, files in hours.items():
                hour = Hour.parse(log_hour)
                for path in look_at(self.settings.landing, source, hour).files:
                    file = LandedFile(path, hour)
                    if lines := set(files.get(file.name, ())):
                        # Again, now that nobody else may replace it: another file is looked at in the end.
                        entry = entry_of(file.path)
                        matching, size = matching_lines(file, self.matcher_of(source))
                        if size == before[log_hour][file.name] and matching <= lines:
                            write_without(file, lines)
                            if entry and (after := entry_of(file.path)):
                                rewritten.setdefault(hour, []).append((entry, after))
        say_rewritten(self.lake, source, rewritten)

    def _remove_rows(self, source: str, hours: list[Hour], certificate: Certificate) -> None:
        is_streamed = self.sources[source].stream is not None
        remove_rows(self.lake, source, hours, self.matcher_of(source), certificate, is_streamed=is_streamed)
        # Nobody is to add the counts of micro-batches up between the two.
        with in_order_of_time(self.lake):
            recount(self.lake, source, hours)

    def _not_to_ingest(self, source: str, certificate: Certificate) -> set[Hour]:
        """The log hours that cannot be ingested again.

        They were streamed, some of their files are gone, clicks around them have been removed for their age; or the
        key of their day is gone, under which their other clicks have their visitors.
        """
        hours, declared = certificate.hours_of(source), self.sources[source]
        if declared.stream is not None:
            return set(hours)
        files = self._files_ingested(source)
        landed = {hour: len(look_at(self.settings.landing, source, hour).files) for hour in hours}
        removed, reach = removed_log_hours(self.lake).get(source, set()), declared.lateness_hours
        around = {hour.plus(shift) for hour in removed for shift in range(-reach, reach + 1)}
        keys, days = self.matcher_of(source).parser.lookups.visitor_keys, {hour.day for hour in hours}
        known = keys.known(days).keys() if keys else days
        return {
            hour
            for hour in hours
            if landed[hour] < files.get(hour, 0) or not landed[hour] or hour in around or hour.day not in known
        }

    def _files_ingested(self, source: str) -> dict[Hour, int]:
        rows = self.lake.read_rows(INGEST_ACCOUNTING, ["log_date", "log_hour", "files"], [("source", "=", source)])
        return {log_hour_of(row): row["files"] for row in rows}

    @property
    def _counts(self) -> set[str]:
        """Tables that are counted again."""
        keyed = counted_tables(self.settings.pipeline.counts).values()
        return {table.name for table in (*keyed, *AGGREGATES.values(), *PUBLISHED.values())} | {
            name
            for name in stored_tables(self.settings.lake)
            if name.startswith("clicks_by_") and name.endswith("_daily")
        }

    def _ingested(self, source: str, certificate: Certificate) -> set[Hour]:
        there = self._files_ingested(source).keys() - removed_log_hours(self.lake).get(source, set())
        return there.intersection(certificate.hours_of(source))

    def count_again(self, certificate: Certificate) -> list[str]:
        """Take the log hours through the jobs: count, validate and publish; returns what is not published, and why."""
        ranges = []
        for source in certificate.log_hours:
            ingested = self._ingested(source, certificate)
            ranges += [JobArguments(source, log_hours) for log_hours in near_each_other(ingested)]
            if self.sources[source].stream is not None:
                count_live_again(self.lake, source, certificate.hours_counted)
        hours = certificate.hours_counted
        # Who only ingests has nothing counted.
        is_counted = any(self.lake.data_files(table, may_have_click_hours(table, hours)) for table in AGGREGATES)
        for arguments in ranges if is_counted else []:
            aggregate_measured(self.spark, self.settings, arguments)
            # What fails is held; that it is, is looked at in the end.
            with suppress(QualityError):
                require_valid(self.spark, self.settings, arguments)
            done = publish(self.spark, self.settings, arguments, certificate.add_published)
            certificate.not_published_hours |= done.left
        certificate.counted_at = datetime.now(UTC).isoformat()
        certificate.write(self.settings)
        return [f"  {hour} stays as it is published: {why}" for hour, why in certificate.not_published_hours.items()]

    def not_published_since(self, certificate: Certificate) -> list[Hour]:
        """The click hours whose published rows are older than what was found last, and may count it."""
        since = datetime.fromisoformat(certificate.found_at)
        kept = closed_click_hours(self.lake, certificate.hours_counted, ())
        hours = [hour for hour in certificate.hours_counted if hour not in kept]
        old = {
            file.click_hour
            for table in AGGREGATES.values()
            for file in self.lake.data_files(table, may_have_click_hours(table, hours))
            if file.written_at < since and file.click_hour in hours
        }
        return sorted(old)

    def unjoined(self, certificate: Certificate) -> dict[str, list[str]]:
        """The log hours that could not be joined, and whose files have other clicks than the tables."""
        left: dict[str, list[str]] = {}
        for source, hours in certificate.unjoined_hours.items():
            for hour in map(Hour.parse, hours):
                files = [LandedFile(path, hour) for path in look_at(self.settings.landing, source, hour).files]
                if files and not has_landed_clicks(self.lake, source, hour, files, self.matcher_of(source)):
                    left.setdefault(source, []).append(str(hour))
        return left

    def remove_old_files(self) -> None:
        """Former versions of all tables; and pages, staged rows and an index that name what was to go."""
        with self.lake.locked():
            for name in stored_tables(self.settings.lake):
                remove_former_versions(self.lake, name, self.words)
            for path in search([self.settings.reports, self.settings.scratch], self.words).matches:
                page = self.settings.reports / "data_docs"
                if page in path.parents:
                    # A run's pages belong together.
                    remove_folder(page / path.relative_to(page).parts[0])
                else:
                    path.unlink(missing_ok=True)
            # Made again from its table by whoever needs it.
            for path in search([self.settings.quality_index], self.words).matches:
                path.unlink()

    def search(self) -> Searched:
        """Look for what was to go in all files of the home and the data."""
        return search(dict.fromkeys([self.settings.home, self.settings.data]), self.words)

    def is_outside(self, path: Path) -> bool:
        """Whether it is a file of Airflow, the broker or a log: others write it, and only say what is in it."""
        of_others = (self.settings.airflow, self.settings.kafka_topics, self.settings.logs)
        return is_on_disk(path) and not set(of_others).isdisjoint(path.parents)

    def shown(self, path: Path) -> str:
        """A file as it may stay on record: below the home or the data, without a name that names somebody."""
        folders = (f"{folder}/" for folder in (self.settings.home, self.settings.data))
        below = next((str(path).removeprefix(folder) for folder in folders if str(path).startswith(folder)), path.name)
        return f"{below[: below.rfind('/') + 1]}…" if self.words.is_in(below.encode()) else below


def plan(spark: SparkSession, settings: Settings, requests: Requests, by: str, because: str) -> Plan:
    """What erasing would do; changes nothing.

    Raises:
        UsageError: if the requests would find too much, or nobody or no reason is named.
        FinalError: if there is nothing to erase.
    """
    erasure = _erasure(spark, settings, requests, by, because)
    certificate, selection = erasure.certificate(by, because)
    selection = selection or erasure.find()
    words = Words((*erasure.words.words, *sorted(selection.rows.visitors)))
    pages = search([settings.reports, settings.scratch], words).matches
    undoable = [backfill.id for backfill in read_backfills(settings.lake).values() if backfill.state == "published"]
    return Plan(
        erasure.hashes(),
        selection.numbers,
        [
            f"would be erased ({requests.described()}):",
            *explain(erasure.stages(certificate, selection)),
            f"  pages and reports that name it: {len(pages):,}",
            "could not be undone any more: the erasure itself"
            + (", and these backfills:" if undoable else "; no backfill is to be undone"),
            *(f"  {backfill_id}" for backfill_id in sorted(undoable)),
        ],
    )


def erase(
    spark: SparkSession,
    settings: Settings,
    requests: Requests,
    by: str,
    because: str,
    *,
    shown: Plan | None = None,
) -> list[str]:
    """Erase what is asked for; returns a few lines on it, which name nobody.

    If more is found than a person was shown, the lines say so. Killed, it is finished by the same requests again.

    Raises:
        UsageError: if the requests would find too much, are not those shown, or nobody or no reason is named.
        ClickmillError: if there is nothing to erase, a stream runs, or something is left.
    """
    erasure = _erasure(spark, settings, requests, by, because)
    if shown and set(shown.requests) != set(erasure.hashes()):
        raise UsageError("nothing is erased: the requests are not those that were shown; plan it again")
    with locks_of(settings).held("erase"), no_stream_runs(erasure.lake, erasure.sources):
        certificate, selection = erasure.certificate(by, because)
        asked = f"erasure {certificate.erasure_id}"
        with signed_act(erasure.lake, "erase_visitor", asked, by, because) as signed:
            signed.begin()
            lines = evaluate(erasure.stages(certificate, selection, shown), signed.details)
            signed.details |= {name: str(number) for name, number in certificate.found.items()}
        # Last of all: if this is not reached, the same requests go on.
        certificate.state, certificate.completed_at = COMPLETED, datetime.now(UTC).isoformat()
        page = certificate.write(settings)
    return [
        f"erasure {certificate.erasure_id} ({requests.described()}) is complete:",
        *lines,
        f"  click hours counted again: {len(certificate.click_hours)}, published: {len(certificate.published_hours)}",
        f"  files searched: {certificate.searched['files']:,}",
        f"  certificate: {page}",
        *(f"  not reached: {place}" for place in certificate.outside),
    ]


def _erasure(spark: SparkSession, settings: Settings, requests: Requests, by: str, because: str) -> Erasure:
    require_signed(by, because)
    if Words(tuple(requests.words())).is_in(f"{by}\n{because}".encode()):
        raise UsageError("the reason, or the name, has what is to be erased: expected one that may stay on record")
    return Erasure(spark, settings, requests)


def _more(numbers: Mapping[str, int], shown: Mapping[str, int]) -> list[str]:
    grown = [
        f"{name} {number:,} instead of {shown.get(name, 0):,}"
        for name, number in sorted(numbers.items())
        if number > shown.get(name, 0)
    ]
    return [f"  more was found than was shown before: {', '.join(grown)}"] if grown else []


@contextmanager
def _named(path: Path | Iterable[LandedFile]) -> Iterator[None]:
    """Say which file cannot be read, or one of which."""
    try:
        yield
    except OSError as error:
        named = path if isinstance(path, Path) else error.filename or next(file.path.parent for file in path)
        raise ClickmillError(
            f"nothing is erased: {named} cannot be read ({error}); see that it can be, and erase again"
        ) from error


def _described(numbers: Mapping[str, int]) -> list[str]:
    return [
        f"  {name}: {number:,} {'lines' if name == 'landing' else 'rows'}" for name, number in sorted(numbers.items())
    ]


def _conclude(erasure: Erasure, certificate: Certificate) -> None:
    """Look whether anything is left; the certificate says what was looked at.

    Raises:
        ClickmillError: if something is; the certificate says what, and the same requests go on.
    """
    searched, again = erasure.search(), erasure.find()
    topics = [source.kafka.topic for source in erasure.sources.values() if source.kafka]
    certificate.outside = [
        *OUTSIDE,
        *([] if is_on_disk(erasure.settings.data) else [OF_BUCKET]),
        *(f"{erasure.shown(path)} has it still" for path in searched.matches if erasure.is_outside(path)),
        *(f"Kafka topic {topic}: its retention (retention.ms), or kafka-delete-records.sh" for topic in sorted(topics)),
        *(
            f"click hour {hour}: dropped by {event.actor}, it stays as it was published, by clicks that may be gone "
            "since; backfill or release it"
            for hour, event in dropped_hours(erasure.lake).items()
        ),
    ]
    now = newest_versions(erasure.settings.lake)
    certificate.versions = {
        name: {"before": certificate.versions.get(name, {}).get("before"), "after": number}
        for name, number in now.items()
    }
    certificate.searched = {"files": searched.files, "bytes": searched.bytes, "words": len(erasure.words.words)}
    certificate.gone = {name: number - again.numbers.get(name, 0) for name, number in certificate.found.items()}
    left = (path for path in (*searched.matches, *searched.unread) if not erasure.is_outside(path))
    certificate.left = [erasure.shown(path) for path in left]
    old = erasure.not_published_since(certificate)
    certificate.unjoined_hours = erasure.unjoined(certificate)
    page = certificate.write(erasure.settings)
    reasons = []
    if again.numbers:
        reasons.append(f"{sum(again.numbers.values())} lines or rows have come since")
    if certificate.left:
        some = ", ".join(certificate.left[:5])
        reasons.append(f"{len(certificate.left)} files have it still, or cannot be read: {some}")
    if old:
        some = ", ".join(map(str, old[:5]))
        reasons.append(f"published as they were before: {some}; decide on them (clickmill decide, decide-backfill)")
    if certificate.unjoined_hours:
        unjoined = ", ".join(
            f"{source} {hour}" for source, hours in certificate.unjoined_hours.items() for hour in hours[:5]
        )
        reasons.append(
            f"landed files have changed since they were read, so that it cannot be said which of their lines are those "
            f"of rows that went: {unjoined}; erase by the address that these lines have, or remove these files"
        )
    if reasons:
        # What has come since goes with the next try.
        kind = FinalError if certificate.left or old or certificate.unjoined_hours else ClickmillError
        raise kind(f"not complete: {'; '.join(reasons)}; then erase again with the same requests; see {page}")
