"""The drawing is a function of the events: `fixtures/NAME.story` in, `fixtures/NAME.txt` out."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from matview.demo.events import Began, Event, Opened, Started
from matview.demo.screen import Frame, live_picture, whole_picture
from matview.demo.story import tell
from matview.demo.timeline import LABEL, Axis, draw, legend

from .stories import FIXTURES, read

ANALYSTS = ("Ana", "Ben", "Cleo")


def picture(events: list[Event], now: float, width: int = 74, versions: int | None = None) -> str:
    lines = draw(tell(events), ANALYSTS, now=now, until=20.0, width=width, versions=versions)
    return "".join(line.plain.rstrip() + "\n" for line in lines)


@pytest.mark.parametrize("name", ["figure_2", "without_rewrite"])
def test_a_story_is_drawn(name: str) -> None:
    events = read((FIXTURES / f"{name}.story").read_text())
    assert picture(events, now=20.0) == (FIXTURES / f"{name}.txt").read_text()


def test_what_has_not_ended_is_drawn_up_to_now() -> None:
    lines = picture([Started(0.0, 1, 2), Began(5.0, 2), Opened(5.0, "Ana", 1)], now=10.0, width=LABEL + 40).splitlines()
    assert lines[1] == "maintenance".ljust(LABEL) + " " * 10 + "v2▒▒▒▒▒▒▒▒"
    assert lines[3] == "version 1".ljust(LABEL) + "█" * 20
    assert lines[6] == "Ana".ljust(LABEL) + " " * 10 + "├v1───────"


def test_only_the_newest_versions_are_drawn_if_there_are_many() -> None:
    events = read((FIXTURES / "figure_2.story").read_text())
    shown = picture(events, now=20.0, versions=2)
    assert "version 3" in shown
    assert "version 4" in shown
    assert "version 2" not in shown


def test_every_moment_has_a_column() -> None:
    axis = Axis(100.0, 160.0, 160.0, 60)
    assert [axis.column(t) for t in (0.0, 100.0, 130.0, 160.0, 999.0)] == [0, 0, 30, 59, 59]


def test_no_time_at_all_can_be_drawn() -> None:
    assert draw(tell([]), ANALYSTS, now=0.0, until=0.0)


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    events = read((FIXTURES / "figure_2.story").read_text())
    console = Console(width=width, record=True, file=StringIO())
    console.print(live_picture(tell(events), Frame(ANALYSTS, 20.0, "title"), 20.0, width))
    console.print(whole_picture(tell(events), Frame(ANALYSTS, 20.0, "title"), width))
    lines = console.export_text().splitlines()
    assert max(len(line.rstrip()) for line in lines) <= width
    assert sum("version 4  " in line for line in lines) == 2


def test_the_legend_fits_eighty_columns_with_a_frame_around() -> None:
    assert len(legend().plain) <= 76
