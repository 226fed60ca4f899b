"""The services of a home, and runs through them."""

from __future__ import annotations

import os
import shlex
import time
from typing import TYPE_CHECKING, Annotated, Any

from clickmill.options import AsJson, option, source_names
from clickmill.work import ended_by_hand, print_json, print_lines

if TYPE_CHECKING:
    from ops.services.running import Services


def _of_make(variable: str, metavar: str, text: str, **more: Any) -> Any:
    """An option of run; make gives it as a variable."""
    more |= {"envvar": variable, "show_envvar": False, "show_default": False}
    return option(metavar, text, f"--{variable.lower()}", **more)


def run(
    hours: Annotated[str, _of_make("HOURS", "N", "how many hours of sample logs; default: 12")] = "",
    clicks: Annotated[str, _of_make("CLICKS", "N", "clicks an hour of sample logs; default: 20000")] = "",
    logs: Annotated[str, _of_make("LOGS", "PATH", "a log file of your own, or a folder of them")] = "",
    logs_format: Annotated[str, _of_make("FORMAT", "FORMAT", "their format: json, combined or common")] = "",
    source: Annotated[
        str,
        _of_make(
            "SOURCE",
            "NAME",
            "which source they are; default: what clickmill inspect finds",
            autocompletion=source_names,
        ),
    ] = "",
    site: Annotated[str, _of_make("SITE", "URL", "the site, such as https://shop.example.com, of logs of paths")] = "",
) -> int:
    """Go from logs to result: sample logs, or your own, services, the log hours through Airflow, what came of them.

    The services stay up. make run does the set-up before.
    """
    from rich.console import Console

    from ops.run import checked_arguments
    from ops.run import run as run_all

    variables = {"HOURS": hours, "CLICKS": clicks, "LOGS": logs, "FORMAT": logs_format, "SOURCE": source}
    variables["SITE"] = site
    with ended_by_hand("hours under way go on in Airflow, clickmill stop ends everything"):
        return run_all(checked_arguments(variables), Console())


def start() -> None:
    """Start the services, Spark Connect and Airflow, and run nothing; running ones are left alone."""
    from ops.services.start import start as start_all

    with ended_by_hand():
        began = time.monotonic()
        services = start_all()
    print(f"services are up after {time.monotonic() - began:.1f} s")
    print_lines(_addresses(services))


def stop() -> None:
    """End the services; the data stays."""
    from ops.services.stop import stop as stop_all

    print("services stopped" if stop_all() else "no services ran")


def status(as_json: AsJson = False) -> int:
    """Show the services and their addresses; exit code 1 if none run. With --json without the password."""
    from ops.home import find_home
    from ops.services.running import running_services
    from ops.services.stop import status as states_of

    states = states_of()
    if not as_json:
        print_lines(f"{state.name:24} {state.state:10} {state.pid or ''}" for state in states)
    services = running_services() if states else None
    if as_json:
        addresses = {"airflow": services.airflow_url, "spark": services.spark_url} if services else {}
        programs = [{"name": state.name, "state": state.state, "pid": state.pid or None} for state in states]
        print_json({"home": str(find_home().path), "services": programs, **addresses})
    elif services is None:
        print(f"no services run for {find_home().path}")
    else:
        print_lines(_addresses(services))
    return 0 if services else 1


def _addresses(services: Services) -> list[str]:
    login = f"user {services.airflow_user}, password {services.airflow_password}"
    return [
        f"Airflow  {services.airflow_url}  ({login})",
        f"Spark    {services.spark_url}  UI {services.spark_ui_url}",
        f"home     {services.home}",
    ]


def health(as_json: AsJson = False) -> int:
    """Say what does not work; exit code 0 if all is well, else 1."""
    from ops.services.health import unwell

    missing = unwell(None)
    if as_json:
        print_json(missing)
    else:
        print_lines(f"{name} {reason}" for name, reason in missing.items())
    return 1 if missing else 0


def serve() -> None:
    """Start the services and stay, until told to end by SIGTERM or Ctrl-C: for systemd and containers."""
    from ops.services.foreground import run as run_all

    with ended_by_hand():
        run_all()


def env() -> None:
    """Print where the services answer, as variables of a shell, for programs of your own.

    Commands of clickmill find it by themselves. SPARK_REMOTE holds the token.
    """
    from ops.services.running import running_services

    print_lines(f"export {name}={shlex.quote(value)}" for name, value in running_services().environment().items())


def locks(as_json: AsJson = False) -> None:
    """Show who holds which lock of the data, and who waits for one.

    One line a lock that is held: its name, what runs, on which host as which process, and since when; below it one line
    for each that waits for it, in the order of their turns. Where locks are files, those of streams and receivers are
    left out: status and the DAG clicks_stream show them.
    """
    from ops.home import find_home
    from ops.locks import lock_lines, lock_values

    home = find_home(environment=os.environ)
    if as_json:
        print_json(lock_values(home))
    else:
        print_lines(lock_lines(home))
