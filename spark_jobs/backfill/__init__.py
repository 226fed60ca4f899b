"""Backfills of a range of log hours: planned, in chunks, staged if asked for, and undone."""
