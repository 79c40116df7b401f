"""Times as people write and read them."""

from __future__ import annotations

import pytest

from matview.cli.durations import seconds, shown
from matview.cli.report import UsageError


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("1 hour", 3600),
        ("90 s", 90),
        ("45", 45),
        ("1h 30min", 5400),
        ("2 Days", 172800),
        ("0.5 minutes", 30),
        (" 10 sec ", 10),
    ],
)
def test_written(text: str, length: float) -> None:
    assert seconds(text) == length


@pytest.mark.parametrize("text", ["", "soon", "1 parsec", "-5 s", "0 s", "1 hour later", "s"])
def test_no_length_of_time(text: str) -> None:
    with pytest.raises(UsageError):
        seconds(text)


@pytest.mark.parametrize(
    ("length", "text"),
    [(0.3456, "0.35 s"), (12.4, "12 s"), (60, "1 min"), (125, "2 min 5 s"), (7500, "2 h 5 min"), (90000, "1 d 1 h")],
)
def test_read(length: float, text: str) -> None:
    assert shown(length) == text
