"""Which grouping suits the clicks that there are: measured, advised, shown. Only advise_grouping uses it."""
