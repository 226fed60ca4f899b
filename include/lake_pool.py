"""The pool of Airflow's tasks that take the lake's lock: those that wait for their turn take no worker.

It is made with Airflow's tables (ops/airflow_database.py); a task whose pool is not there would wait for good.
"""

from __future__ import annotations

NAME = "lake"
#: One works, and one more is there when it ends; a task of a backfill takes both, so that nobody waits behind two.
SLOTS = 2
DESCRIPTION = "Tasks that take the lake's lock, one at a time: one works, the next one is ready. See docs/adr/0052."
