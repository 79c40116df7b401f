"""What `matview status` says about sessions: sections 3.2 and 5 of the paper in words."""

from __future__ import annotations

import pytest

from matview.catalog.records import Grain, SessionRecord, VersionState
from matview.cli.status import as_json, sentence, size
from matview.reading.status import Status, TableStatus, outlook
from matview.versions.adviser import advise


def session(version: int, grain: Grain = "table", silent: float = 0.0) -> SessionRecord:
    return SessionRecord("s", version, "me", grain, 60.0, 0.0, 1000.0 - silent, None, None)


def status(current: int, *, active: bool = False, horizon: int = 0, readable_from: int = 0, created: int = 1) -> Status:
    table = TableStatus("sales", "tables/1", 10, 1, 1, 1, 1000, 0.1, created, readable_from)
    state = VersionState(current, active, 3, 0, horizon)
    return Status("x.wh", state, None, (table,), (), advise((), (), (), 3), 1000.0)


CASES = [
    (session(5), status(5), 0, "sure until version 8 is being written"),
    (session(5), status(7), 2, "sure until version 8 is being written"),
    (session(5), status(7, active=True), 2, "may expire at any time"),
    (session(5), status(8), 3, "may expire at any time"),
    (session(5), status(9, readable_from=6), 4, "expired for sales"),
    (session(5), status(9, readable_from=6, created=6), 4, "may expire at any time"),
    (session(5, "tuple"), status(9, readable_from=6), 4, "may expire at any time"),
    (session(5, "global"), status(8), 3, "expired: version 5 is too far behind version 8"),
    (session(5), status(9, horizon=6), 4, "expired: what version 5 needs may have been collected"),
    (session(5, silent=61), status(5), 0, "expired: silent for longer than its 60 s to live"),
]


@pytest.mark.conforms("Q11")
@pytest.mark.parametrize(("reader", "seen", "behind", "told"), CASES)
def test_outlook(reader: SessionRecord, seen: Status, behind: int, told: str) -> None:
    found = outlook(reader, seen)
    assert found.behind == behind
    assert sentence(found, seen) == told


def test_json_has_the_outlook_of_each_session() -> None:
    seen = status(7)
    whole = Status(seen.path, seen.version, None, seen.tables, (session(5),), seen.advice, seen.now)
    sessions = as_json(whole)["sessions"]
    assert isinstance(sessions, list)
    assert [(s["id"], s["behind"], s["sure_until"], s["over"]) for s in sessions] == [("s", 2, 8, None)]


@pytest.mark.parametrize(
    ("octets", "text"), [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (123456, "123 kB"), (5 * 10**15, "5000 TB")]
)
def test_size(octets: int, text: str) -> None:
    assert size(octets) == text
