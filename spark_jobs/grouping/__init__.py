"""Which grouping suits the clicks that there are: measured, advised, shown. Only the command advise uses it."""
