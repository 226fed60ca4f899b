"""How fast Clickmill is: against DuckDB, over a month, as a stream, on a cluster; figures go to docs/benchmarks.md."""
