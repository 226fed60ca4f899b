"""Landed log hours into the lake: what changes, which lines are duplicates, and all that is written, in order."""
