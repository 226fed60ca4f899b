"""Logs into the landing zone, split by log hour, each once."""
