"""What the events add up to."""

from __future__ import annotations

import pytest

from matview.demo.events import Asked, Began, Closed, Committed, Event, Expired, Failed, Opened, Started
from matview.demo.story import Stretch, quantile, tell

from .stories import FIXTURES, read


def test_figure_2_in_figures() -> None:
    story = tell(read((FIXTURES / "figure_2.story").read_text()))
    assert (story.current, story.last_step) == (3, Began(19.0, 4))
    assert [(s.analyst, s.version, s.expired) for s in story.sittings if s.time.end is not None] == [
        ("Ana", 1, False),
        ("Ben", 1, True),
        ("Cleo", 1, False),
        ("Ana", 2, False),
    ]
    figures = story.figures
    assert (figures.transactions, figures.rows, figures.sessions, figures.expired) == (2, 400, 7, 1)
    assert (figures.checks, figures.inconsistencies) == (1, 0)


@pytest.mark.parametrize(("versions", "expires"), [(2, 20.0), (3, 30.0), (4, None)])
def test_a_version_expires_when_the_nth_after_it_is_committed(versions: int, expires: float | None) -> None:
    commits = [Committed(10.0 * n, 1 + n) for n in (1, 2, 3)]
    life = tell([Started(0.0, 1, versions), *commits]).lives[0]
    assert life.phases == (("current", Stretch(0.0, 10.0)), ("previous", Stretch(10.0, expires)))
    assert life.expired is (expires is not None)


def test_contradictions_are_counted_and_remembered_with_their_session() -> None:
    story = tell(read((FIXTURES / "without_rewrite.story").read_text()))
    assert story.figures.inconsistencies == 2
    assert [s.contradictions for s in story.sittings] == [(7.0,), (12.0,)]


def test_events_of_another_process_may_come_late() -> None:
    in_order: list[Event] = [Started(0.0, 1, 2), Opened(1.0, "Ana", 1), Asked(2.0, "Ana", 0.5), Closed(3.0, "Ana")]
    assert tell(reversed(in_order)) == tell(in_order)


def test_a_query_is_beside_maintenance_only_if_all_of_it_is() -> None:
    asked = [Asked(at, "Ana", 1.0) for at in (1.5, 2.5, 3.5, 4.5, 6.0)]
    assert tell([Started(0.0, 1, 2), Began(1.0, 2), Committed(4.0, 2), *asked]).figures.beside == 2


def test_waits_of_queries_and_latches_of_sessions_are_told_apart() -> None:
    opened, asked = Opened(1.0, "Ana", 1, 0.02, 1), Asked(2.0, "Ana", 0.5, 3)
    figures = tell([Started(0.0, 1, 2), opened, asked, Expired(3.0, "Ana", 1)]).figures
    assert (figures.waits, figures.latches, figures.longest_opening) == (3, 2, 0.02)


def test_failures_are_kept() -> None:
    assert tell([Failed(1.0, "Ben", "the roof")]).figures.failures == ("Ben: the roof",)


@pytest.mark.parametrize(("share", "value"), [(0.0, 1.0), (0.5, 2.0), (0.75, 3.0), (0.95, 4.0), (1.0, 4.0)])
def test_quantiles(share: float, value: float) -> None:
    assert quantile([1.0, 2.0, 3.0, 4.0], share) == value


def test_the_quantile_of_nothing_is_nothing() -> None:
    assert quantile([], 0.5) == 0.0
