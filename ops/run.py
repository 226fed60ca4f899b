"""From logs to result in one go: `make run`.

Steps: sample logs (or your own, landed), services, backfill of the log hours through Airflow, result. The
services stay up.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from include.errors import ClickmillError, LeftOutError, UsageError
from include.home import REPOSITORY
from include.hours import Hour, HourRange, contiguous
from include.landing import SUCCESS, closed_hours, hour_folder
from include.settings import Settings
from include.sources import load_sources, source_name_of
from ops.airflow_api import CLICKS_HOURLY, HELD_HOURS, AirflowApi
from ops.backfill import Display, Failure, Outcome, run_hours, run_ranges
from ops.home import Home, find_home
from ops.services.running import Services
from ops.services.start import start
from ops.services.stop import status

SAMPLE_SOURCE = "web"
SAMPLE_START = Hour.parse("2026-03-01T00")
SAMPLE_HOURS = 12
SAMPLE_CLICKS = 20_000
SAMPLE_SEED = 7
# A release that renames a field: to a few of the shop's servers at first, which is a warning, then to most of them,
# which holds the hour. So that a new user sees what reviewing looks like.
SAMPLE_BROKEN = {Hour.parse("2026-03-01T05"): 0.1, Hour.parse("2026-03-01T08"): 0.7}
SAMPLE_HELD = frozenset({f"{SAMPLE_SOURCE} 2026-03-01T08"})
# So many hours of the sample are separate runs, as the schedule would make them; those before are one run.
SAMPLE_HOURLY = 2
MOST_HOURS = 24 * 31
# Spark's one server works for all of them; more in parallel only wait for each other on a small machine.
HOURS_AT_ONCE = 2
FORMATS = ("json", "combined", "common")
#: What a person may say of logs that are inspected, and the options of that command.
FOR_INSPECT = {"SITE": "--base-url", "TIME_ZONE": "--time-zone"}
MOST_FAILURES_SHOWN = 3


@dataclass(frozen=True)
class RunArguments:
    """What to run: sample logs of `hours` hours, or the user's own at `logs`."""

    hours: int
    clicks_per_hour: int
    logs: Path | None
    source: str

    @property
    def is_sample(self) -> bool:
        """Whether sample logs are to be made."""
        return self.logs is None


def _whole_number(name: str, text: str, most: int) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= most:
        raise UsageError(f"{name}={text}: expected a whole number from 1 to {most}")
    return int(text)


def _choose_source(logs_format: str, name: str) -> str:
    """Return the source for the user's own logs: the named one, else the first of that format.

    Raises:
        UsageError: when there is no such source, or it has another format.
    """
    settings = Settings.from_environment()
    sources = load_sources(settings)
    listed = ", ".join(f"{source.name} ({source.format})" for source in sources.values())
    if name:
        if name not in sources:
            raise UsageError(f"SOURCE={name}: no such source in {settings.sources_file}; it has {listed}")
        if logs_format and sources[name].format != logs_format:
            raise UsageError(
                f"SOURCE={name} has the format {sources[name].format}, not FORMAT={logs_format}; "
                f"leave FORMAT out, or choose another of {listed}",
            )
        return name
    for source in sources.values():
        if source.format == logs_format:
            return source.name
    raise UsageError(
        f"FORMAT={logs_format}: no source in {settings.sources_file} has that format; it has {listed}; "
        "add one there, or set SOURCE",
    )


def checked_arguments(variables: Mapping[str, str]) -> RunArguments:
    """From HOURS, CLICKS, LOGS, FORMAT, SOURCE, SITE and TIME_ZONE; every value is checked before anything starts.

    Raises:
        UsageError: naming the value and what was expected.
    """
    names = ("HOURS", "CLICKS", "LOGS", "FORMAT", "SOURCE", *FOR_INSPECT)
    values = {name: variables.get(name, "").strip() for name in names}
    logs_format, source = values["FORMAT"], values["SOURCE"]
    hours = _whole_number("HOURS", values["HOURS"] or str(SAMPLE_HOURS), MOST_HOURS)
    clicks = _whole_number("CLICKS", values["CLICKS"] or str(SAMPLE_CLICKS), 100_000_000)
    if not values["LOGS"]:
        for name in ("FORMAT", "SOURCE", *FOR_INSPECT):
            if values[name]:
                raise UsageError(
                    f"{name}={values[name]} goes with LOGS=path: set LOGS, or leave {name} out for sample logs"
                )
        return RunArguments(hours, clicks, None, SAMPLE_SOURCE)
    for name in ("HOURS", "CLICKS"):
        if values[name]:
            raise UsageError(f"{name} is for sample logs: leave it out, or leave LOGS out")
    if logs_format and logs_format not in FORMATS:
        raise UsageError(f"FORMAT={logs_format}: expected one of {', '.join(FORMATS)}")
    logs = Path(values["LOGS"]).expanduser().absolute()
    if not os.access(logs, os.R_OK):
        problem = "cannot be read" if logs.exists() else "does not exist"
        raise UsageError(f"LOGS={values['LOGS']}: {logs} {problem}; expected a log file or a folder of them")
    if not logs_format and not source:
        site = {option: values[name] for name, option in FOR_INSPECT.items() if values[name]}
        return RunArguments(hours, clicks, logs, inspected_source(logs, site))
    for name in FOR_INSPECT:
        if values[name]:
            raise UsageError(
                f"{name}={values[name]} is for logs that are inspected: leave SOURCE and FORMAT out, or set it in the "
                "source's own table"
            )
    return RunArguments(hours, clicks, logs, _choose_source(logs_format, source))


def inspected_source(logs: Path, site: Mapping[str, str]) -> str:
    """Find out what the logs are, and declare their source if it is new; its name. The inspection is shown.

    ``site`` are options of the command by which a person says what the lines do not.

    Raises:
        UsageError: if it is not sure what they are.
    """
    command = [
        sys.executable, "-m", "clickmill", "inspect", "--write", str(logs),
        *(f"{option}={value}" for option, value in site.items()),
    ]  # fmt: skip
    if subprocess.run(command, cwd=REPOSITORY).returncode != 0:
        raise UsageError(
            f"LOGS={logs}: it is not sure what these files are, or they cannot be looked at, see above; declare a "
            "source for them in config/sources.toml and set SOURCE=its name, or give one file"
        )
    return source_name_of(logs)


# --- logs -----------------------------------------------------------------------------------------


def missing_sample_hours(home: Home, hours: int) -> list[HourRange]:
    """Return the sample's hours that are not closed in the landing zone, as ranges."""
    wanted = HourRange(SAMPLE_START, SAMPLE_START.plus(hours))
    return contiguous(
        hour for hour in wanted if not (hour_folder(home.landing, SAMPLE_SOURCE, hour) / SUCCESS).exists()
    )


def _make_samples(home: Home, arguments: RunArguments, console: Console) -> list[subprocess.Popen[bytes]]:
    """Start making the sample hours that are missing; they are made while the services start."""
    makers = []
    for missing in missing_sample_hours(home, arguments.hours):
        console.print(f"making sample logs: {missing}, {arguments.clicks_per_hour} clicks an hour")
        command = [
            sys.executable, "-m", "samples", "--landing", str(home.landing), "--source", SAMPLE_SOURCE,
            "--from", str(missing.start), "--hours", str(len(missing)),
            "--clicks-per-hour", str(arguments.clicks_per_hour), "--seed", str(SAMPLE_SEED),
            *(f"--broken={hour}={share}" for hour, share in SAMPLE_BROKEN.items() if hour in missing),
        ]  # fmt: skip
        makers.append(subprocess.Popen(command, cwd=REPOSITORY))
    return makers


def land_logs(home: Home, arguments: RunArguments, environment: Mapping[str, str]) -> list[Hour]:
    """Land the user's own logs and return the log hours that this closed; some files of a folder may be left out."""
    before = closed_hours(home.landing, arguments.source)
    command = [
        sys.executable, "-m", "clickmill", "land", "--source", arguments.source, str(arguments.logs),
    ]  # fmt: skip
    code = subprocess.run(command, cwd=REPOSITORY, env=dict(environment)).returncode
    if code not in (0, LeftOutError.exit_code):
        raise ClickmillError(
            f"landing {arguments.logs} as {arguments.source} ended with exit code {code}; its lines above say why",
            code if code == 2 else 1,
        )
    after = closed_hours(home.landing, arguments.source)
    return sorted(hour for hour, closed in after.items() if before.get(hour) != closed)


# --- what the user sees ---------------------------------------------------------------------------


def print_failures(failures: Sequence[Failure], services: Services, console: Console) -> None:
    """Show which tasks failed, each with the end of its log."""
    for failure in failures[:MOST_FAILURES_SHOWN]:
        task = failure.task.task_id if failure.task else "no task (see the run in Airflow)"
        console.rule(f"[red]failed[/red] {failure.run.source} {failure.run.log_hours} {task}", align="left")
        for line in failure.lines:
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    if len(failures) > MOST_FAILURES_SHOWN:
        console.print(f"… and {len(failures) - MOST_FAILURES_SHOWN} more: {services.airflow_url}")


def print_held(
    held: Sequence[str], questions: Collection[str], services: Services, is_sample: bool, console: Console
) -> None:
    """Show for what a critical check failed, and where a person decides on the click hours that are asked about."""
    if not held and not questions:
        return
    console.rule("[red]held[/red]", align="left")
    for partition in held:
        planted = " (planted, to show what that looks like)" if is_sample and partition in SAMPLE_HELD else ""
        line = f"{partition}: a critical check failed{planted}; what it touches stays as it was before"
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    if questions:
        more = f" and {len(questions) - 1} more" if len(questions) > 1 else ""
        console.print(f"decide on {min(questions)}{more}, or fix the cause and run again:", highlight=False)
        console.print(services.data_quality_url, highlight=False, soft_wrap=True)
    else:
        console.print(f"decided already, or no longer held: {services.airflow_url}/dags/{HELD_HOURS}", highlight=False)


def print_addresses(services: Services, home: Home, console: Console) -> None:
    """Show where everything is, and how to go on by hand."""
    report = home.report
    rows = [
        (
            "Airflow",
            f"{services.airflow_url}  (user {services.airflow_user}, password {services.airflow_password})",
        ),
        ("data quality", services.data_quality_url),
        ("Spark UI", services.spark_ui_url),
        ("report", report.as_uri() if report.exists() else f"not yet: {report}"),
        ("data", str(home.data)),
        ("a job by hand", ".venv/bin/clickmill --help"),
        ("end the services", "make stop"),
    ]
    console.print()
    for name, value in rows:
        # Plain lines, not a table: an address must stay whole, to be clicked or copied.
        console.print(f"{name:17} {value}", markup=False, highlight=False, soft_wrap=True)


def exit_code_of_held(held: Sequence[str], is_sample: bool) -> int:
    """Return 3 if a critical check failed, but not for the fault that is planted in the sample."""
    expected = SAMPLE_HELD if is_sample else frozenset[str]()
    return 3 if set(held) - expected else 0


def _show_results(environment: Mapping[str, str]) -> int:
    return subprocess.run(
        [sys.executable, "-m", "clickmill", "results"], cwd=REPOSITORY, env=dict(environment)
    ).returncode


def _run_through_airflow(
    api: AirflowApi, hours: Sequence[Hour], arguments: RunArguments, console: Console
) -> list[Outcome]:
    """Own logs as one run, if they are not more than a month; of the sample the last hours as hourly runs."""
    alone = SAMPLE_HOURLY if arguments.is_sample else 0
    again, source = not arguments.is_sample, arguments.source
    together, hourly = hours[: len(hours) - alone], hours[len(hours) - alone :]
    outcomes = []
    if together:
        outcomes.append(run_ranges(api, CLICKS_HOURLY, together, source, again, Display(console)))
    if hourly:
        outcomes.append(run_hours(api, CLICKS_HOURLY, hourly, source, again, HOURS_AT_ONCE, Display(console)))
    return outcomes


def run(arguments: RunArguments, console: Console) -> int:
    """Do the steps; return the exit code."""
    began = time.monotonic()
    home = find_home()
    home.make()
    makers = _make_samples(home, arguments, console) if arguments.is_sample else []
    if not status(home.path):
        console.print("starting Spark Connect and Airflow")
    try:
        services = start(home.path)
    except BaseException:
        for maker in makers:
            maker.terminate()
        raise
    console.print(f"services are up after {time.monotonic() - began:.0f} s", highlight=False)
    environment = os.environ | services.environment()
    if any(maker.wait() != 0 for maker in makers):
        raise ClickmillError("making sample logs failed; its lines above say why")
    if arguments.is_sample:
        hours = list(HourRange(SAMPLE_START, SAMPLE_START.plus(arguments.hours)))
    else:
        hours = land_logs(home, arguments, environment)
    failures: list[Failure] = []
    held: list[str] = []
    api = AirflowApi(services)
    if hours:
        api.wait_for_dag(HELD_HOURS)
        api.wait_for_source(CLICKS_HOURLY, arguments.source)
        api.unpause(CLICKS_HOURLY)
        outcomes = _run_through_airflow(api, hours, arguments, console)
        failures = [failure for outcome in outcomes for failure in outcome.failures]
        held = [partition for outcome in outcomes for partition in outcome.held]
        before = sum(outcome.already_done for outcome in outcomes)
        console.print(
            f"{sum(outcome.succeeded for outcome in outcomes)} hours of {arguments.source} done"
            + (f"; {before} had been before" if before else "")
            + f", {time.monotonic() - began:.0f} s in all",
            highlight=False,
        )
        print_failures(failures, services, console)
    else:
        console.print(f"{arguments.logs} brought no new log hours")
    code = _show_results(environment) if not failures else 1
    if hours:
        print_held(held, api.open_questions(), services, arguments.is_sample, console)
    print_addresses(services, home, console)
    return 1 if failures else code or exit_code_of_held(held, arguments.is_sample)
