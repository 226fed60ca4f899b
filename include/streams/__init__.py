"""Where a stream reads and how far it has got, told without Spark."""
