"""What set-up says."""

from __future__ import annotations


def say(message: str) -> None:
    """Print a line about what set-up does."""
    print(f"set-up: {message}", flush=True)


def how_to(command: str, otherwise: str) -> str:
    """What to do next: the command, where one is known."""
    return f"run: {command}" if command else otherwise
