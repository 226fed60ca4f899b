"""Where a stream reads and how far it has got, found without Spark."""
