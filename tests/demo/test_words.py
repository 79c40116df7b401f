"""The log's lines and the closing table say what was."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from matview.demo.events import (
    Asked,
    Began,
    Changed,
    Checked,
    Committed,
    Event,
    Expired,
    HalfCommitted,
    Opened,
    Started,
)
from matview.demo.log import line
from matview.demo.report import figure_rows, verdict_with_rewrite, verdict_without_rewrite
from matview.demo.screen import now_text
from matview.demo.story import Figures, tell
from matview.reading.status import TableStatus

from .stories import FIXTURES, read

SEEN = tell(read((FIXTURES / "figure_2.story").read_text())).figures
GOOD = replace(SEEN, queries=1234, beside=900, median=0.25, ninety_fifth=1.5)
DAILY = TableStatus("DailySales", "tables/d", 26_000, 1, 3, 900, 200_000, 0.0312)


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (Began(12.0, 3), "   2.0 s  maintenance  begins version 3"),
        (Changed(12.3, 3, "late receipts", 1400), "   2.3 s  maintenance  version 3: late receipts, 1,400 rows"),
        (Opened(13.0, "Ana", 2), "   3.0 s  Ana          opens a session at version 2"),
        (Opened(13.0, "Ana", None), "   3.0 s  Ana          begins to read"),
        (Asked(13.0, "Ana", 0.1), None),
        (Expired(14.0, "Ben"), "   4.0 s  Ben          is told that the session has expired, and begins anew"),
        (
            Checked(15.0, "Cleo", "totals", "Reno, NV", Decimal("1000.10"), Decimal("1000.20")),
            "   5.0 s  Cleo         Reno, NV: 1,000.10 ≠ 1,000.20 by CityTotals   CONTRADICTION",
        ),
    ],
)
def test_an_event_is_one_line(event: Event, said: str | None) -> None:
    assert line(event, 10.0) == said


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([], "Version 2 is current."),
        ([Began(1.0, 3)], "Version 2 is current; maintenance is making version 3."),
        (
            [Began(1.0, 3), Changed(2.0, 3, "late receipts", 1400)],
            "Version 2 is current; maintenance is making version 3: late receipts, 1,400 rows.",
        ),
        (
            [Began(1.0, 3), HalfCommitted(2.0, 3, "DailySales")],
            "Version 2 is current; of version 3, only DailySales is committed yet.",
        ),
        ([Began(1.0, 3), Committed(2.0, 3)], "Version 3 is current."),
    ],
)
def test_what_goes_on_is_said_above_the_picture(events: list[Event], said: str) -> None:
    assert now_text(tell([Started(0.0, 2, 2), *events])).plain == said


def test_the_table_says_what_was_measured() -> None:
    rows = {name: (value, note) for name, value, note in figure_rows(replace(GOOD, latches=2), [DAILY])}
    assert rows["queries"] == ("1,234", "900 wholly inside a transaction")
    assert rows["query latency"] == ("250 ms", "median; 95 % within 1,500 ms")
    assert rows["waits"] == ("0", "of queries; 2 latches at open or close")
    assert rows["storage overhead"] == ("3.1%", "of DailySales, 26,900 stored tuples")


@pytest.mark.parametrize(
    ("figures", "with_rewrite", "without"),
    [
        (GOOD, True, False),
        (replace(GOOD, inconsistencies=1), False, True),
        (replace(GOOD, waits=1), True, False),
        (replace(GOOD, transactions=0), False, False),
        (replace(GOOD, inconsistencies=1, failures=("Ben: the roof",)), False, False),
    ],
    ids=["clean", "contradiction", "wait", "too short", "failure"],
)
def test_the_verdict_depends_on_what_was_to_be_shown(figures: Figures, with_rewrite: bool, without: bool) -> None:
    assert verdict_with_rewrite(figures).good is with_rewrite
    assert verdict_without_rewrite(figures).good is without
