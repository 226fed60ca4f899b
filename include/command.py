"""How a command ends: what it says of an error, and its exit code.

Standard library only, and no more than Python 3.8 has: set-up is a command too.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import NoReturn

from include.errors import in_one_line


class OneLineParser(argparse.ArgumentParser):
    """Says in one line what is wrong with the arguments, and exits with 2."""

    def error(self, message: str) -> None:  # type: ignore[override]
        """Print the one line and exit."""
        self.exit(2, f"{self.prog}: {message}; see --help\n")


def described_parser(module: str, description: str | None, epilog: str | None = None) -> OneLineParser:
    """A parser of a module that is run with ``python -m``; its --help keeps the lines of both texts."""
    raw = argparse.RawDescriptionHelpFormatter
    return OneLineParser(prog=f"python -m {module}", description=description, epilog=epilog, formatter_class=raw)


def exit_with(main: Callable[[], int | None], name: str = "", *, interrupted: str = "") -> NoReturn:
    """Run a command's main, and exit; an error that a person can act on is one line, not a stack trace.

    Args:
        main: returns the exit code; None is 0.
        name: what the line starts with; by default the kind of error.
        interrupted: what to say after Ctrl-C, with exit code 130; by default Python ends as it does.
    """
    try:
        code = main()
    except KeyboardInterrupt:
        if not interrupted:
            raise
        print(f"{name}: interrupted; {interrupted}", file=sys.stderr)
        code = 130
    except SystemExit:
        raise
    except BaseException as error:  # the panics of what is written in Rust are no Exception
        line = in_one_line(error)
        if line is None:
            raise
        print(f"{name or line.kind}: {line}", file=sys.stderr)
        code = line.exit_code
    sys.exit(code)
