"""Events survive the pipe between processes."""

from __future__ import annotations

from decimal import Decimal

import pytest

from matview.demo.events import Asked, Checked, Event, Expired, Failed, Opened, Started, from_json, to_json

EVENTS: list[Event] = [
    Started(1.5, 2, 3),
    Opened(2.0, "Cleo", None),
    Opened(2.0, "Cleo", 7, 0.01, 1),
    Asked(2.5, "Cleo", 0.25, 1),
    Checked(3.0, "Cleo", "parts", "San Jose, CA", Decimal("10.20"), Decimal("10.2")),
    Expired(4.0, "Cleo"),
    Failed(5.0, "Cleo", 'a "word"\nand another'),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda e: type(e).__name__)
def test_an_event_is_the_same_at_the_other_end(event: Event) -> None:
    line = to_json(event)
    assert "\n" not in line
    assert from_json(line) == event


def test_what_is_no_event_is_refused() -> None:
    with pytest.raises(ValueError, match="no such event: 'Danced'"):
        from_json('{"event": "Danced", "at": 1.0}')


def test_amounts_agree_to_the_cent_and_whatever_their_digits() -> None:
    assert Checked(0, "Ana", "parts", "", Decimal("0.10"), Decimal("0.1")).agrees
    assert not Checked(0, "Ana", "parts", "", Decimal("100000000.10"), Decimal("100000000.11")).agrees
