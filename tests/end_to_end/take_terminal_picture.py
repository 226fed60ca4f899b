"""Take the picture of `make stream` again, while it runs: `python -m tests.end_to_end.take_terminal_picture`."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime

from rich.console import Console

from include.settings import REPOSITORY, Settings
from ops.home import find_home
from ops.services.supervisor import marked_processes
from ops.stream import MARK
from ops.stream_state import stream_state
from ops.stream_view import render

PICTURE = REPOSITORY / "docs" / "images" / "stream.svg"
#: Rich takes its font from another host; a reader's own will do.
_FONT_OF_ANOTHER_HOST = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def main() -> None:
    """Draw what the terminal shows now."""
    settings = Settings.from_environment()
    state = stream_state(settings, "web_stream", list(settings.pipeline.counts), datetime.now(UTC))
    began = min(process.create_time() for process in marked_processes(find_home(), MARK))
    console = Console(record=True, width=132)
    console.print(render("web_stream", state, time.time() - began))
    picture = console.export_svg(title="make stream")
    PICTURE.write_text(_FONT_OF_ANOTHER_HOST.sub("", picture), encoding="utf-8")
    print(f"{PICTURE}: {PICTURE.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
