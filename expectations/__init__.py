"""Quality suites as code: Great Expectations over small frames of metrics, never over the large tables."""
