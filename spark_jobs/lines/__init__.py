"""Bytes to clicks: read, cut, parse, look up, mask, repair. Arrow tables in, Arrow tables out; no Spark, no lake."""
