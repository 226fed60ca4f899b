"""What set-up says, and how it ends when it cannot go on."""

from __future__ import annotations


class SetupError(Exception):
    """Set-up cannot go on; the message is one line for the user, `exit_code` what the shell gets."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def say(message: str) -> None:
    """Print a line about what set-up does."""
    print(f"set-up: {message}", flush=True)


def how_to(command: str, otherwise: str) -> str:
    """What to do next: the command, where one is known."""
    return f"run: {command}" if command else otherwise
