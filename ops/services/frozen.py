"""Imported last by the process that Airflow's tasks are forked from (``environment.PRELOADED``).

What is imported there stays as long as the process lives. Unless it is left out, a task's process looks at all of it,
some 400,000 objects, whenever it collects garbage, and by that copies the memory that it shares: a quarter of a second
of processor time, once or twice a task.
"""

from __future__ import annotations

import gc

gc.collect()
gc.freeze()
