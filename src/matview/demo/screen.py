"""What the audience sees: a picture that grows, on a terminal; a line for each event, elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self, assert_never

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.text import Text

from matview.demo import log
from matview.demo.events import Began, Changed, Event, HalfCommitted
from matview.demo.story import Step, Story, tell
from matview.demo.timeline import draw, legend

WIDEST = 140
VERSIONS_SHOWN = 6


@dataclass(frozen=True, slots=True)
class Frame:
    """What the picture is drawn in: who works, for how long."""

    analysts: tuple[str, ...]
    seconds: float
    title: str


class Screen(Protocol):
    """Shows events while they come in."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def show(self, events: Sequence[Event]) -> None:
        """All events so far."""


class LiveScreen:
    """The time line as it grows, drawn anew in place."""

    def __init__(self, console: Console, frame: Frame) -> None:
        self._console = console
        self._frame = frame
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def show(self, events: Sequence[Event]) -> None:
        story = tell(events)
        width = min(self._console.width, WIDEST)
        self._live.update(live_picture(story, self._frame, time.time(), width), refresh=True)


class LogScreen:
    """A line for each event, in the order they are heard of."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._said = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def show(self, events: Sequence[Event]) -> None:
        began = events[0].at if events else 0.0
        for event in events[self._said :]:
            if (said := log.line(event, began)) is not None:
                self._console.print(Text(said), soft_wrap=True)
        self._said = len(events)


def screen_for(console: Console, frame: Frame) -> LiveScreen | LogScreen:
    return LiveScreen(console, frame) if console.is_terminal else LogScreen(console)


def live_picture(story: Story, frame: Frame, now: float, width: int) -> RenderableType:
    """The time line with what is going on above it and the figures so far below."""
    inner = width - 4
    until = story.began + frame.seconds
    lines = draw(story, frame.analysts, now=now, until=until, width=inner, versions=VERSIONS_SHOWN)
    blank = Text("")
    body = Group(now_text(story), blank, *lines, blank, legend(), blank, check_text(story), figures_text(story))
    return Panel(body, title=frame.title, width=width, border_style="dim")


def whole_picture(story: Story, frame: Frame, width: int) -> RenderableType:
    """The time line from beginning to end, with every version."""
    ends = [time.end for _, time in story.transactions] + [s.time.end for s in story.sittings]
    end = max((moment for moment in ends if moment is not None), default=story.began)
    return Group(*draw(story, frame.analysts, now=end, until=end, width=width), Text(""), legend())


def now_text(story: Story) -> Text:
    """The current version, and what maintenance is about."""
    return Text(f"Version {story.current} is current{_step_text(story.last_step)}.", style="bold", no_wrap=True)


def _step_text(step: Step | None) -> str:
    match step:
        case None:
            return ""
        case Began(_, version):
            return f"; maintenance is making version {version}"
        case Changed(_, version, meaning, rows):
            return f"; maintenance is making version {version}: {meaning}, {rows:,} rows"
        case HalfCommitted(_, version, table):
            return f"; of version {version}, only {table} is committed yet"
        case _:
            assert_never(step)


def check_text(story: Story) -> Text:
    check = story.last_check
    if check is None:
        return Text("")
    style = "green" if check.agrees else "bold red"
    return Text(f"{check.analyst}: {log.check_text(check)}", style=style, no_wrap=True)


def figures_text(story: Story) -> Text:
    f = story.figures
    made = Text(
        f"{f.transactions} transactions · {f.sessions} sessions, {f.expired} expired · "
        f"{f.queries} queries · {f.waits} waits · "
    )
    return made.append(f"{f.inconsistencies} inconsistencies", style="bold red" if f.inconsistencies else "bold green")
