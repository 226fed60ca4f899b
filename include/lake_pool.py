"""The pool of Airflow's tasks that take the lake's lock: those that wait for their turn take no worker.

It is made with Airflow's tables (ops/airflow_database.py); a task whose pool is not there would wait for good.
"""

from __future__ import annotations

NAME = "lake"
#: One works, and one more is there for when it gives the lock away. Of backfills only one chunk works at a time, so
#: that the other place is for whoever else wants to: it has its turn between two steps of the chunk.
SLOTS = 2
DESCRIPTION = "Tasks that take the lake's lock, one at a time: one works, the next one is ready. See docs/adr/0052."
