"""Run a program in a container of docker-compose.yml: `python -m ops.containers NAME`, or any other command.

`prepare` is the step that all others wait for. `spark-master`, `spark-worker`, `spark-history` and `spark-connect` are
Spark's programs. What is none of them is run as it stands, such as `airflow scheduler`, with all that Clickmill's
programs need in its environment.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from include.command import exit_with
from include.errors import UsageError
from ops.containers.prepare import prepare
from ops.containers.spark import SPARK_PROGRAMS, empty_folders, write_settings
from ops.home import find_home
from ops.services.environment import PRELOADED, program_environment
from ops.setup.prerequisites import find_java


def main() -> None:
    """Take the place of this process, unless it is to prepare.

    Raises:
        UsageError: if no program is named.
    """
    name, *arguments = sys.argv[1:] or [""]
    if not name:
        raise UsageError(f"expected a program: prepare, {', '.join(SPARK_PROGRAMS)}, or a command")
    home = find_home()
    home.make()
    environment = program_environment(home, find_java(), os.environ)
    # A worker's processes, and with them the tasks, are forked from one that has imported these.
    environment.setdefault("AIRFLOW__CELERY__EXTRA_CELERY_CONFIG", json.dumps({"imports": PRELOADED}))
    if name == "prepare":
        prepare(home, environment)
        return
    if name in SPARK_PROGRAMS:
        empty_folders(home, name, environment)
        settings = write_settings(name, environment)
        # Classes that the settings name, which all of Spark's programs read.
        environment["SPARK_DAEMON_CLASSPATH"] = environment["CLICKMILL_SPARK_CLASS_PATH"]
        command = SPARK_PROGRAMS[name](Path(environment["SPARK_HOME"]), settings, environment)
    else:
        command = [name, *arguments]
    os.execvpe(command[0], command, environment)


if __name__ == "__main__":
    exit_with(main, "containers")
