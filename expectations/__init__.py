"""Quality suites as code: Great Expectations over small frames of metrics, never over the large tables."""

import logging
import os

# Before Great Expectations is imported: it neither reports its use to anyone nor explains its inner workings.
os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
logging.getLogger("great_expectations").setLevel(logging.WARNING)
