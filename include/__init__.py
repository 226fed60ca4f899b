"""What two of DAGs, jobs, plugins and ops share: settings, table declarations, arguments. Free of pyspark."""
