"""Airflow knows Clickmill's plugins, as it does in its services."""

from __future__ import annotations

import os

from include.home import REPOSITORY

os.environ.setdefault("AIRFLOW__CORE__PLUGINS_FOLDER", str(REPOSITORY / "plugins"))
