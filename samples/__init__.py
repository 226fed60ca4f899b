"""Realistic click logs and the truth about them. Free of pyspark, since Spark is held to it."""
