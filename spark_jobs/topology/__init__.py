"""What a job did in Spark: stages, shuffles and tasks, read from its plan. Only explain_topology uses it."""
