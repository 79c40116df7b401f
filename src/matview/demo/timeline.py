"""Figure 2 of the paper, drawn from the story: maintenance, the versions of the database, reader sessions.

maintenance    ▐ v3 ▌      ▐ v4 ▌
version 2   █████████━━━━━━━━━━━✕            made, current, previous (still readable), expired
version 3      ░░░░░░██████████━━━━━━━
Ana         ├v2─────✕├v3──────┤              a session reads one version, from beginning to end
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from rich.text import Text

from matview.demo.story import Phase, Sitting, Story, Stretch, VersionLife

LABEL = 13
FILL: dict[Phase, tuple[str, str]] = {"future": ("░", "yellow"), "current": ("█", "green"), "previous": ("━", "green")}
ENDED, CONTRADICTION = ("✕", "bold red"), ("≠", "bold white on red")
MAINTENANCE, EDGE, SESSION = "black on yellow", "yellow", "cyan"


@dataclass(frozen=True, slots=True)
class Axis:
    """Which column a moment falls into; the last column is that of the last moment."""

    began: float
    until: float
    now: float
    columns: int

    def column(self, moment: float) -> int:
        share = (moment - self.began) / max(self.until - self.began, 1e-9)
        return min(max(int(share * self.columns), 0), self.columns - 1)

    def span(self, time: Stretch) -> tuple[int, int]:
        """First column, and the one after the last; at least one column wide."""
        first = self.column(time.begin)
        last = self.column(self.now if time.end is None else time.end)
        return first, max(last, first + 1)


@dataclass
class Row:
    """One line of the picture: what is painted later covers what is there."""

    label: str
    columns: int
    cells: list[tuple[str, str]] = field(init=False)

    def __post_init__(self) -> None:
        self.cells = [(" ", "")] * self.columns

    def fill(self, first: int, end: int, char: str, style: str) -> None:
        self.cells[first:end] = [(char, style)] * (min(end, self.columns) - first)

    def put(self, column: int, char: str, style: str) -> None:
        if 0 <= column < self.columns:
            self.cells[column] = (char, style)

    def write(self, first: int, text: str, style: str) -> None:
        for offset, char in enumerate(text):
            self.put(first + offset, char, style)

    def text(self) -> Text:
        made = Text(self.label[: LABEL - 1].ljust(LABEL), style="bold", no_wrap=True)
        for style, run in groupby(self.cells, key=lambda cell: cell[1]):
            made.append("".join(char for char, _ in run), style=style if "bold" in style else f"not bold {style}")
        made.rstrip()
        return made


def draw(
    story: Story, analysts: Sequence[str], *, now: float, until: float, width: int = 100, versions: int | None = None
) -> list[Text]:
    """The picture, line by line, of the time from the beginning to `until`; `versions`: the newest so many only."""
    axis = Axis(story.began, max(until, now), now, max(width - LABEL, 20))
    lives = story.lives if versions is None else story.lives[-versions:]
    blank = Row("", axis.columns)
    rows = [
        _scale(axis),
        _maintenance(axis, story),
        blank,
        *(_version(axis, life) for life in lives),
        blank,
        *(_sessions(axis, name, story.sittings) for name in analysts),
    ]
    return [row.text() for row in rows]


def legend() -> Text:
    """What the signs mean."""
    signs = [
        (*FILL["future"], "being made"),
        (*FILL["current"], "current"),
        (*FILL["previous"], "previous"),
        (*ENDED, "expired"),
        ("├─┤", SESSION, "session"),
        (*CONTRADICTION, "contradiction"),
    ]
    made = Text(no_wrap=True)
    for sign, style, meaning in signs:
        made.append(sign, style=style).append(f" {meaning}  ", style="dim")
    made.rstrip()
    return made


def _scale(axis: Axis) -> Row:
    row = Row("seconds", axis.columns)
    for second in _ticks(axis.until - axis.began):
        column = axis.column(axis.began + second)
        row.write(column, _fitting(f"{second}", axis.columns - column), "dim")
    return row


def _ticks(seconds: float) -> Iterator[int]:
    step = next((s for s in (1, 2, 5, 10, 20, 30, 60, 120, 300) if seconds / s <= 9), 600)
    yield from range(0, int(seconds) + 1, step)


def _maintenance(axis: Axis, story: Story) -> Row:
    row = Row("maintenance", axis.columns)
    for version, time in story.transactions:
        first, end = axis.span(time)
        row.fill(first, end, "▒", EDGE)
        row.write(first, _fitting(f"v{version}", end - first), MAINTENANCE)
    return row


def _version(axis: Axis, life: VersionLife) -> Row:
    row = Row(f"version {life.version}", axis.columns)
    for phase, time in life.phases:
        row.fill(*axis.span(time), *FILL[phase])
    if life.expired:
        row.put(axis.span(life.phases[-1][1])[1], *ENDED)
    return row


def _sessions(axis: Axis, analyst: str, sittings: Sequence[Sitting]) -> Row:
    row = Row(analyst, axis.columns)
    for sitting in sittings:
        if sitting.analyst == analyst:
            _session(axis, row, sitting)
    return row


def _session(axis: Axis, row: Row, sitting: Sitting) -> None:
    first, end = axis.span(sitting.time)
    row.fill(first, end, "─", SESSION)
    row.put(first, "├", SESSION)
    label = "" if sitting.version is None else f"v{sitting.version}"
    row.write(first + 1, _fitting(label, end - first - 2), f"bold {SESSION}")
    if sitting.time.end is not None:
        row.put(end - 1, *(ENDED if sitting.expired else ("┤", SESSION)))
    for moment in sitting.contradictions:
        row.put(min(axis.column(moment), end - 1), *CONTRADICTION)


def _fitting(text: str, room: int) -> str:
    return text if len(text) <= room else ""
