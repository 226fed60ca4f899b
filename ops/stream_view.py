"""What a person sees of a stream in the terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from include.counting import key_label
from include.texts import as_count
from ops.stream_state import StreamState

_NAMES = {"clicks": "clicks", "url": "counts by URL", "country_code": "counts by country"}


def render(source: str, state: StreamState, seconds: float) -> RenderableType:
    """The queries with their rates, and the busiest keys of the hour; ``seconds`` is how long it has been shown."""
    title = f"stream of {source}, {int(seconds) // 60}:{int(seconds) % 60:02d}"
    if not state.queries:
        return Text(f"{title}: waiting for the first clicks (Ctrl-C ends)")
    parts: list[RenderableType] = [_queries(title, state)]
    if state.hour is not None:
        parts.append(_busiest(state))
    parts.append(Text("Ctrl-C ends all", style="dim"))
    return Group(*parts)


def _queries(title: str, state: StreamState) -> Table:
    table = Table(title=title, title_justify="left", expand=False)
    table.add_column("")
    for heading in ("batch", "took", "rows", "rows/s", "not yet read", "watermark", "in state", "too late"):
        table.add_column(heading, justify="right")
    for query in state.queries:
        table.add_row(
            _NAMES.get(query.query, f"counts by {query.query}"),
            as_count(query.batch_id),
            f"{query.seconds:.1f} s",
            as_count(query.rows),
            as_count(round(query.rows_per_second)),
            "" if query.lag is None else as_count(query.lag),
            "" if query.watermark is None else query.watermark.strftime("%H:%M:%S"),
            as_count(query.state_rows),
            as_count(query.too_late),
        )
    return table


def _busiest(state: StreamState) -> Table:
    grid = Table.grid(padding=(0, 2))
    tables = []
    for key, counts in state.busiest.items():
        table = Table(title=f"busiest by {key_label(key)} in {state.hour}", title_justify="left")
        table.add_column(key_label(key), overflow="ellipsis", no_wrap=True, max_width=60)
        table.add_column("clicks", justify="right")
        for name, count in counts:
            # As text: a URL of a log is no markup.
            table.add_row(Text("(none)" if name is None else name), as_count(count))
        tables.append(table)
        grid.add_column()
    grid.add_row(*tables)
    return grid
