"""Spark's settings for jobs that spark-submit runs, each with a driver of its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from include.home import REPOSITORY
from ops.home import Home, load_secrets
from ops.services.environment import PYTHONPATH, render_settings, service_environment
from ops.services.running import Ports
from ops.services.supervisor import home_lock
from ops.setup.prerequisites import find_java

#: Of services: there are none.
_PORTS = Ports(airflow=0, spark=0, spark_ui=0)


def write_settings(home: Home) -> Path:
    """The settings of the home's Spark server without Spark Connect and UI, with Python for the workers; in ``run``."""
    template = REPOSITORY / "config" / "spark-defaults.conf"
    home.make()
    with home_lock(home):
        values = service_environment(home, _PORTS, load_secrets(home), find_java(), os.environ)
    # Of its own: the services empty theirs when they start.
    temporary = home.run / "spark-submit"
    temporary.mkdir(exist_ok=True)
    lines = render_settings(template.read_text(encoding="utf-8"), values, template.name).splitlines()
    left_out = ("spark.plugins", "spark.connect.", "spark.ui.port")
    kept = [line.replace(str(home.spark_local), str(temporary)) for line in lines if not line.startswith(left_out)]
    of_workers = [f"spark.pyspark.python {sys.executable}", f"spark.executorEnv.PYTHONPATH {PYTHONPATH}"]
    file = home.run / "spark-submit.conf"
    file.write_text("\n".join([*kept, "spark.ui.enabled false", *of_workers]) + "\n", encoding="utf-8")
    return file
