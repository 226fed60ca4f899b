"""Which grouping suits the clicks that there are: measured, advised, shown; and the load of those that count."""
