"""When sessions expire, and how many versions keep them from it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matview.algebra.schema import Column, Schema
from matview.versions.adviser import Advice, advise, guaranteed, needed
from matview.versions.expiry import expired_message, global_expired, table_expired
from matview.versions.facts import Facts
from matview.versions.layout import Layout

LAYOUT = Layout(Schema((Column("k", "int"), Column("v", "int")), key=("k",)), 3)


@pytest.mark.conforms("Q11")
@pytest.mark.parametrize("session_vn", range(1, 6))
@pytest.mark.parametrize("active", [False, True])
def test_with_two_versions_the_global_check_is_the_papers(session_vn: int, active: bool) -> None:
    current_vn = 5
    paper = session_vn == current_vn or (session_vn == current_vn - 1 and not active)
    assert global_expired(session_vn, current_vn, active, 2) is not paper


@pytest.mark.conforms("Q11")
@pytest.mark.conforms("Q12")
@given(st.integers(2, 9), st.integers(1, 30), st.integers(0, 12), st.booleans())
def test_a_session_may_overlap_n_minus_1_maintenance_transactions(n: int, s: int, later: int, active: bool) -> None:
    assert global_expired(s, s + later, active, n) is (later + active > n - 1)


@pytest.mark.conforms("Q11")
def test_a_table_expires_with_the_oldest_slot_of_any_tuple() -> None:
    assert [table_expired(s, Facts((9, 7)), LAYOUT) for s in (5, 6, 9)] == [True, False, False]
    assert not table_expired(1, Facts((9, 0)), LAYOUT)


def test_questions_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="versions"):
        global_expired(1, 1, False, 1)
    with pytest.raises(ValueError, match="yet to come"):
        global_expired(3, 2, False, 2)
    with pytest.raises(ValueError, match="slots"):
        table_expired(1, Facts((9,)), LAYOUT)


def test_the_message_of_an_expired_tuple_has_the_code() -> None:
    assert expired_message(7).startswith("[MV301] version 7 ")


# the adviser ----------------------------------------------------------------------------------------------------------


@pytest.mark.conforms("Q13")
@given(st.integers(2, 9), st.integers(0, 50), st.integers(0, 50))
def test_the_guarantee(n: int, gap: int, duration: int) -> None:
    """2VNL: i; 3VNL: 2i + m; in general (n-1)(i+m) - m."""
    assert guaranteed(2, gap, duration) == gap
    assert guaranteed(3, gap, duration) == 2 * gap + duration
    assert guaranteed(n, gap, duration) == (n - 1) * (gap + duration) - duration


@pytest.mark.conforms("Q13")
@given(st.integers(2, 6), st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=8), st.data())
def test_no_session_within_the_guarantee_expires(n: int, pace: list[tuple[int, int]], data: st.DataObject) -> None:
    """Maintenance with any gaps and durations; any session no longer than the guarantee, begun at any moment."""
    gap, duration = min(i for i, _ in pace), min(m for _, m in pace)
    spans, now = [], 0
    for i, m in pace:
        spans.append((now + i, now + i + m))
        now += i + m
    begin = data.draw(st.integers(0, now))
    end = begin + data.draw(st.integers(0, max(0, int(guaranteed(n, gap, duration)))))
    session_vn = 1 + sum(commit <= begin for _, commit in spans)
    current_vn = 1 + sum(commit < end for _, commit in spans)
    active = any(start < end <= commit for start, commit in spans)
    if guaranteed(n, gap, duration) >= 0 and current_vn >= session_vn:
        assert not global_expired(session_vn, current_vn, active, n)


@pytest.mark.conforms("Q13")
@given(st.integers(0, 500), st.integers(0, 50), st.integers(1, 50))
def test_needed_is_the_least_that_guarantees(length: int, gap: int, duration: int) -> None:
    n = int(needed(length, gap, duration))
    assert guaranteed(n, gap, duration) >= length
    assert n == 2 or guaranteed(n - 1, gap, duration) < length


@pytest.mark.conforms("Q13")
@pytest.mark.parametrize(
    ("gaps", "durations", "sessions", "versions", "expected", "says"),
    [
        ([], [], [], 2, (None, 2), "0 of 3 maintenance transactions"),
        ([60], [5, 5], [99], 3, (None, 3), "2 of 3 maintenance transactions"),
        ([60, 90], [10, 20, 5], [], 2, (60, 2), "no session has been seen"),
        ([60, 90], [10, 20, 5], [30, 60], 2, (60, 2), "2 versions are enough"),
        ([60, 90], [10, 20, 5], [30, 61], 2, (60, 3), "3 versions are needed"),
        ([60, 90], [10, 20, 5], [30, 61], 5, (255, 5), "3 would do, but versions cannot be lowered"),
        ([60, 90], [10, 20, 5], [3600], 2, (60, 8), "57 versions would be needed; more than 8 are not proposed"),
        ([60, 90], [10, 20, 5], [3600], 9, (515, 9), "more than 8 are not proposed"),
        ([0, 0], [0, 0, 0], [1], 2, (0, 8), "no number of versions suffices"),
        ([60, 90], [10, 20, 5], [10] * 198 + [9999] * 2, 2, (60, 2), "sessions last up to 10 s"),
        ([60, 90], [10, 20, 5], [10] * 98 + [100], 2, (60, 3), "sessions last up to 100 s"),
    ],
)
def test_advice(
    gaps: list[float],
    durations: list[float],
    sessions: list[float],
    versions: int,
    expected: tuple[float | None, int],
    says: str,
) -> None:
    advice = advise(gaps, durations, sessions, versions)
    assert advice == Advice(versions, expected[0], expected[1], advice.reason)
    assert says in advice.reason


def test_a_guarantee_of_nonsense_is_refused() -> None:
    for n, gap, duration in ((1, 1, 1), (2, -1, 1), (2, 1, -1)):
        with pytest.raises(ValueError, match="n >= 2"):
            guaranteed(n, gap, duration)
