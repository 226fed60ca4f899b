"""What several commands declare: options, and what a shell may complete them with."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from include.home import REPOSITORY

#: As include.days has it, which takes longer to import than help may.
Grain = Literal["hour", "day", "week", "month"]


def option(metavar: str, text: str, *names: str, **more: Any) -> Any:
    """An option with a value, named after its parameter unless it has names, and its help."""
    return typer.Option(*names, metavar=metavar, help=text, **more)


def source_names(incomplete: str) -> list[str]:
    """The sources of config/sources.toml that begin so; none where the file cannot be read."""
    import tomllib

    file = Path(os.environ.get("CLICKMILL_SOURCES") or REPOSITORY / "config" / "sources.toml")
    try:
        names = ["all", *tomllib.loads(file.read_text(encoding="utf-8")).get("sources", {})]
    except (OSError, ValueError):
        return []
    return [name for name in names if name.startswith(incomplete)]


Source = Annotated[
    str,
    typer.Option("--source", metavar="NAME", help="a source of config/sources.toml", autocompletion=source_names),
]
AnySource = Annotated[
    str | None,
    typer.Option("--source", metavar="NAME", help="a source of config/sources.toml", autocompletion=source_names),
]
ScheduledSource = Annotated[
    str,
    typer.Option(
        "--source", metavar="NAME", autocompletion=source_names,
        help="a source of config/sources.toml; all: every scheduled one",
    ),
]  # fmt: skip
Start = Annotated[str | None, option("HOUR", "first log hour, such as 2026-03-01T05", "--from")]
End = Annotated[str | None, option("HOUR", "the log hour after the last one", "--to")]
LogHour = Annotated[str | None, option("HOUR", "one log hour, not --from and --to", "--hour")]
FirstHour = Annotated[str, option("HOUR", "first log hour, such as 2026-03-01T05", "--from")]
EndHour = Annotated[str, option("HOUR", "the log hour after the last one", "--to")]
By = Annotated[str, option("NAME", "who decides; kept on record", "--by")]
Because = Annotated[str, option("TEXT", "why; kept on record", "--because")]
BackfillId = Annotated[str, typer.Argument(metavar="BACKFILL", help="its id, as backfill prints it")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="say what would be done, and change nothing")]
AsJson = Annotated[bool, typer.Option("--json", help="print JSON in place of text")]
Page = Annotated[Path | None, option("FILE", "write a page with pictures too", "--html")]
