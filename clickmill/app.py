"""All commands, in the order of the help, and how they end."""

from __future__ import annotations

import select
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from itertools import groupby
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from clickmill import changes, inspect, pipeline, services, streams, upkeep, views
from include.command import exit_with
from include.errors import EndedByHandError, UsageError

NAME = "clickmill"
_EPILOG = (
    "Hours are UTC, and --to itself is not included. Exit codes: 0 done; 1 failed, or there is nothing to do; "
    "2 wrong arguments or configuration; 3 a critical quality check failed; 130 interrupted."
)
#: A command is named after its function.
COMMANDS: dict[str, Sequence[Callable[..., int | None]]] = {
    "From logs to results": (
        inspect.inspect, services.run,
        pipeline.land, pipeline.ingest, pipeline.aggregate, pipeline.validate, pipeline.publish,
    ),
    "Look": (views.results, views.movers, views.out_of_order, views.advise, views.topology, views.check_partitioning),
    "Run again, decide, undo": (
        changes.backfill, changes.decide, changes.decide_backfill, changes.undo, changes.replay,
    ),
    "Streams": (
        streams.stream, streams.show_stream, streams.stop_streams, streams.repartition_stream, streams.receive,
    ),
    "Services": (
        services.start, services.stop, services.status, services.health, services.serve, services.env, services.locks,
    ),
    "Maintenance": (
        upkeep.maintain, upkeep.erase, upkeep.release_counts, upkeep.repartition,
        upkeep.submit_settings, upkeep.clean,
    ),
}  # fmt: skip


class _QuickHelp:
    """Prints help without the types of the options: they need Pydantic, which takes as long to import as all else."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The arguments, parsed by the class beside this one, unless help is asked for first."""
        if args[:1] and args[0] in ctx.help_option_names:
            typer.echo(ctx.get_help())
            ctx.exit()
        rest: list[str] = super().parse_args(ctx, args)  # type: ignore[misc]
        return rest


class _Command(_QuickHelp, TyperCommand):
    """One command."""


class _Sections(_QuickHelp, TyperGroup):
    """The commands under headings."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Each with the first line of what it says of itself."""
        commands = [self.commands[name] for name in self.list_commands(ctx)]
        width = formatter.width - 8 - max(len(command.name or "") for command in commands)
        for heading, of_heading in groupby(commands, lambda command: command.rich_help_panel):  # type: ignore[attr-defined]
            with formatter.section(heading):
                formatter.write_dl([(command.name, command.get_short_help_str(width)) for command in of_heading])


class _OwnError(Exception):
    """Carries an error past Typer, which has a meaning of its own for it."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


def _with_own_errors(command: Callable[..., int | None]) -> Callable[..., int | None]:
    """The same command; Typer does not see its EOFError and BrokenPipeError, unless nobody reads what it prints.

    Typer would take them for a person who answers nothing, and for a reader like ``head`` that has had enough.
    """

    @wraps(command)
    def run(**options: Any) -> int | None:
        try:
            return command(**options)
        except EOFError as error:
            raise _OwnError(error) from None
        except BrokenPipeError as error:
            if _has_readers():
                raise _OwnError(error) from None
            raise

    return run


def _has_readers() -> bool:
    """Whether all that is printed is read still; ``head`` reads no more once it has its lines."""
    pipes = select.poll()
    for number in (1, 2):
        pipes.register(number, 0)
    return not any(event & select.POLLERR for _, event in pipes.poll(0))


def name_of(command: Callable[..., int | None]) -> str:
    """As it is typed."""
    return command.__name__.replace("_", "-")


def make_app(chosen: str = "") -> typer.Typer:
    """The application; of the command of this name alone, if there is one, for each takes a while to declare."""
    commands = [(heading, command) for heading, of_heading in COMMANDS.items() for command in of_heading]
    alone = [(heading, command) for heading, command in commands if name_of(command) == chosen]
    app = typer.Typer(
        cls=_Sections,
        help="Click logs to counts per URL and per country. COMMAND --help says more of each.",
        epilog=_EPILOG,
        context_settings={"max_content_width": 120, "help_option_names": ["-h", "--help"]},
        # Rich takes a tenth of a second to import.
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        # Options of the whole application.
        add_completion=not alone,
    )
    for heading, command in alone or commands:
        app.command(name_of(command), epilog=_EPILOG, rich_help_panel=heading, cls=_Command)(_with_own_errors(command))
    return app


def run(arguments: Sequence[str]) -> int | None:
    """Run one command; its exit code.

    Raises:
        UsageError: if the arguments are not as it declares them.
        EndedByHandError: if somebody has ended it by Ctrl-C.
    """
    app = make_app(arguments[0] if arguments else "")
    name, rest = NAME, list(arguments) or ["--help"]
    if len(app.registered_commands) == 1:
        # Then it is the application.
        name, rest = f"{NAME} {rest[0]}", rest[1:]
    try:
        code: int | None = app(rest, prog_name=name, standalone_mode=False)
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        raise UsageError(f"{_message_of(error)}; see {context.command_path if context else name} --help") from None
    except _OwnError as own:
        raise own.error from None
    if code == EndedByHandError.exit_code:
        raise EndedByHandError("what is half done counts for nothing; run it again")
    return code


def _message_of(error: typer.TyperException) -> str:
    """What Typer says, as our own errors are said; of a value, which it is."""
    message = " ".join(error.format_message().split()).rstrip(".")
    cause: Any = error.__cause__
    # Pydantic's errors have it, their texts have not.
    if hasattr(cause, "errors"):
        message = message.replace("Input should", f"{cause.errors()[0]['input']!r} should")
    message = message.replace("Value error, ", "").replace(". Choose from: ", ": expected one of ")
    return f"{message[:1].lower()}{message[1:]}"


def main() -> None:
    """Run from the command line."""
    exit_with(lambda: run(sys.argv[1:]))
