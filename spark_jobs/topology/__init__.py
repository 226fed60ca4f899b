"""What a job did in Spark: stages, shuffles and tasks, read from its plan. Only the command topology uses it."""
