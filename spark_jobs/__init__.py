"""The Spark jobs: one module a job, each runnable as ``python -m spark_jobs.<job>`` and from a DAG."""
