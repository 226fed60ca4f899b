"""Erasure of visitors: what of theirs there is, where, and how it goes from all files."""
