"""What DAGs and jobs share: words, settings, table declarations, arguments. Free of pyspark."""
