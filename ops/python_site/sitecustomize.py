"""Keeps the Spark server's token out of its log; Python imports this by itself when a service starts it.

Spark's worker of a stream prints the address that it connects to, with the token
(``pyspark/sql/connect/streaming/worker/foreach_batch_worker.py``).
"""

import os
import sys

_TOKEN = os.environ.get("SPARK_CONNECT_AUTHENTICATE_TOKEN", "")
if _TOKEN and sys.stdout is not None:
    _write = sys.stdout.write
    sys.stdout.write = lambda text: _write(text.replace(_TOKEN, "(token)"))  # type: ignore[method-assign]
