"""The ports of services that no test starts."""

from __future__ import annotations

from ops.services.running import Ports

PORTS = Ports(airflow=8081, spark=15003, spark_ui=4041)
