"""**Data quality** in Airflow's UI: an entry in the navigation, and a tab on each DAG run.

Every task and service of Airflow reads this file, so it imports next to nothing: the pages are made by
``plugins.data_quality.app``, in the API server alone, when the first of them is asked for.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from functools import cached_property
from typing import Any
from urllib.parse import quote

from airflow.plugins_manager import AirflowPlugin

PREFIX = "/data-quality"

_ICON = (
    "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24' fill='none' stroke='{}' stroke-width='2' "
    "stroke-linecap='round' stroke-linejoin='round'><path d='M4 4h7v7H4zM4 15h5M4 19h5M15 5h5M15 9h5"
    "M13 16l3 3 5-6'/></svg>"
)


class PagesWhenAsked:
    """The pages' app, made at the first request."""

    @cached_property
    def _app(self) -> Callable[..., Awaitable[None]]:
        from include.settings import Settings
        from plugins.data_quality.app import make_app

        return make_app(Settings.from_environment())

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        """Pass the request on."""
        await self._app(scope, receive, send)


def _icon(colour: str) -> str:
    return "data:image/svg+xml," + quote(_ICON.format(colour))


def _view(destination: str, route: str, page: str) -> dict[str, Any]:
    return {
        "name": "Data quality",
        "destination": destination,
        "url_route": route,
        # Beside the UI's own pages, wherever Airflow's base URL puts them.
        "href": f"{PREFIX.removeprefix('/')}/{page}",
        "icon": _icon("#64748b"),
        "icon_dark_mode": _icon("#d4d4d8"),
    }


class DataQualityPlugin(AirflowPlugin):
    """What Clickmill adds to Airflow's UI."""

    name = "data_quality"
    # Airflow declares them as it does; nobody changes them.
    fastapi_apps = [{"app": PagesWhenAsked(), "url_prefix": PREFIX, "name": "Data quality"}]  # noqa: RUF012
    external_views = [  # noqa: RUF012
        _view("nav", "data-quality", "") | {"nav_top_level": True},
        # Airflow fills in which run it is.
        _view("dag_run", "data-quality-of-run", "run?dag_id={DAG_ID}&run_id={RUN_ID}"),
    ]
