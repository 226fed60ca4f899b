"""Who is notified of a new hold: Airflow's notifiers, by name, as ``config/notifications.toml`` lists them."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from include.errors import UsageError
from include.home import REPOSITORY
from include.settings import read_toml

log = logging.getLogger("clickmill")


class _Notifier(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)

    notifier: str


class _Notifications(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    held: tuple[_Notifier, ...] = ()


@dataclass(frozen=True)
class Tolerant:
    """Calls a notifier; that it fails is in the log, and keeps nothing from going on."""

    notifier: Any

    def __call__(self, context: Mapping[str, Any]) -> None:
        """Notify."""
        try:
            self.notifier(context)
        except Exception:
            log.exception("%s notified nobody", type(self.notifier).__name__)


def held_notifiers(environment: Mapping[str, str] = os.environ) -> list[Any]:
    """One notifier for each ``[[held]]`` of ``CLICKMILL_NOTIFICATIONS`` (default: config/notifications.toml).

    Raises:
        UsageError: if the file is wrong, there is no such notifier, or it does not take these arguments.
    """
    file = Path(environment.get("CLICKMILL_NOTIFICATIONS") or REPOSITORY / "config" / "notifications.toml").resolve()
    return [Tolerant(_made(file, held)) for held in read_toml(file, _Notifications).held]


def _made(file: Path, wanted: _Notifier) -> Any:
    from airflow.sdk import BaseNotifier

    module, _, name = wanted.notifier.rpartition(".")
    try:
        notifier = getattr(import_module(module), name)
        if not issubclass(notifier, BaseNotifier):
            raise TypeError("it is no BaseNotifier of Airflow's")
        return notifier(**(wanted.model_extra or {}))
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise UsageError(
            f"{file}: notifier {wanted.notifier!r}: {error}; expected the full name of one of Airflow's notifiers, "
            "with the arguments that it takes"
        ) from error
