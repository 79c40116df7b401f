"""What the audience sees of the retailer: lines as things happen, and the viewgroups as they move on."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from matview.groups.graph import BASE
from matview.reading.groups import GroupStatus

SHOWN = 12
STYLES = {"sale": "cyan", "query": "green", "refresh": "yellow", "restock": "magenta"}


class Board:
    """A picture that is drawn anew in place on a terminal; elsewhere a line for each event."""

    def __init__(self, console: Console, seconds: float) -> None:
        self._console = console
        self._seconds = seconds
        self._began = time.monotonic()
        self._lines: deque[Text] = deque(maxlen=SHOWN)
        self._groups: Sequence[GroupStatus] = ()
        self._live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        if self._live is not None:
            self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.__exit__(kind, error, trace)

    def tell(self, what: str, text: str) -> None:
        """One event, as it happens."""
        line = Text(f"{time.monotonic() - self._began:6.1f} s  ")
        line.append(f"{what:<8}", style=STYLES.get(what, "bold")).append(f" {text}")
        if self._live is None:
            self._console.print(line, soft_wrap=True)
        else:
            self._lines.append(line)
            self._draw()

    def show(self, groups: Sequence[GroupStatus]) -> None:
        """The viewgroups as they are now."""
        self._groups = groups
        if self._live is not None:
            self._draw()

    def _draw(self) -> None:
        assert self._live is not None
        left = max(0.0, self._seconds - (time.monotonic() - self._began))
        body = Group(*self._lines, Text(""), states(self._groups))
        self._live.update(
            Panel(body, title=f"The membership retailer, {left:.0f} s to go", border_style="dim"), refresh=True
        )


def states(groups: Sequence[GroupStatus]) -> RenderableType:
    """What each viewgroup shows."""
    table = Table(title="viewgroups", title_justify="left")
    for heading in ("viewgroup", "refresh", "views", "state", "behind"):
        table.add_column(heading, overflow="fold")
    for group in groups:
        refresh = "with each update" if group.name == BASE else group.schedule
        state = "" if group.state is None else f"version {group.state}"
        table.add_row(group.name, refresh, ", ".join(group.views), state, behind(group))
    return table


def behind(group: GroupStatus) -> str:
    return f"{group.behind:.0f} s" if group.behind else "up to date"
