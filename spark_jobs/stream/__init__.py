"""Clicks as they come: from topics and landed files into the lake, each once, and the live counts of them."""
