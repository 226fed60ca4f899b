"""The services of one home: Spark Connect and Airflow, under supervisord, on loopback only.

From a shell: `python -m ops.services start`, `stop`, `status`, and for jobs run by hand
`eval "$(python -m ops.services env)"`. In a container, or under systemd, `run` starts them and stays; `health` says
whether all are well. From Python: `ops.services.start.start(home)`, `ops.services.stop.stop(home)`.
"""

from __future__ import annotations

import argparse
import shlex
import time
from collections.abc import Sequence

from include.command import exit_with
from ops.home import find_home
from ops.services.foreground import run
from ops.services.health import unwell
from ops.services.running import (
    Services,
    running_services,
)
from ops.services.start import start
from ops.services.stop import status, stop


def _print_addresses(services: Services) -> None:
    login = f"user {services.airflow_user}, password {services.airflow_password}"
    print(f"Airflow  {services.airflow_url}  ({login})")
    print(f"Spark    {services.spark_url}  UI {services.spark_ui_url}")
    print(f"home     {services.home}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Start, stop or show the services from the command line."""
    parser = argparse.ArgumentParser(prog="ops.services", description=str(__doc__).partition("\n")[0])
    parser.add_argument("action", choices=("start", "stop", "status", "env", "run", "health"))
    parser.add_argument("--home", help="CLICKMILL_HOME; default: the variable, else var/ in the repository")
    options = parser.parse_args(arguments)
    if options.action == "start":
        began = time.monotonic()
        services = start(options.home)
        print(f"services are up after {time.monotonic() - began:.1f} s")
        _print_addresses(services)
    elif options.action == "run":
        run(options.home)
    elif options.action == "health":
        missing = unwell(options.home)
        for name, what in missing.items():
            print(f"{name} {what}")
        return 1 if missing else 0
    elif options.action == "stop":
        print("services stopped" if stop(options.home) else "no services ran")
    elif options.action == "env":
        for name, value in running_services(options.home).environment().items():
            print(f"export {name}={shlex.quote(value)}")
    else:
        states = status(options.home)
        for found in states:
            print(f"{found.name:24} {found.state:10} {found.pid or ''}")
        if not states:
            print(f"no services run for {find_home(options.home).path}")
            return 1
        _print_addresses(running_services(options.home))
    return 0


if __name__ == "__main__":
    exit_with(main, "services", interrupted="what was started has been ended")
