"""Errors that a person can act on: what, which value, what was expected, what to do next.

Standard library only: set-up raises them before anything is installed.
"""

from __future__ import annotations


class ClickmillError(Exception):
    """A run failed for a reason that can be said in one line; exit code 1."""

    exit_code = 1


class UsageError(ClickmillError):
    """Arguments, configuration or the machine are not as they must be, found before any work; exit code 2."""

    exit_code = 2


class FinalError(ClickmillError):
    """A run would fail in the same way again, until a person has done something; exit code 1."""


class MissingLandingError(FinalError):
    """No landing partition where one was expected."""


class QualityError(ClickmillError):
    """A critical check failed: what it touches is held; exit code 3."""

    exit_code = 3


class NotHeldError(ClickmillError):
    """A person decided on a click hour that is not held."""


class DecidedAlreadyError(FinalError):
    """A person decided on a backfill on which there is nothing to decide any more."""


class StreamRunsAlreadyError(ClickmillError):
    """Two streams on one checkpoint would each undo what the other does."""


class LockHeldError(ClickmillError):
    """Another process has the lock, and kept it for as long as was waited."""


class LockLostError(ClickmillError):
    """The lock's connection broke, and with it the lock: another job may have it."""
