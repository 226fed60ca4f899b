"""A display for ``ops.backfill.run_hours`` that shows nothing."""

from __future__ import annotations


class Silent:
    """Shows nothing while hours run."""

    def __enter__(self) -> Silent:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """End."""

    def show(self, done: int, total: int, now: str) -> None:
        """Nothing."""

    def note(self, message: str) -> None:
        """Nothing."""
