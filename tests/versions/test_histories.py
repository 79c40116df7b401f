"""Random histories of several operations per transaction, held against whole copies of every version."""

import pytest
from hypothesis import given

from matview.versions.decide import UPDATE, Held, read, update
from matview.versions.expiry import global_expired, table_expired
from matview.versions.layout import Layout
from matview.versions.tuples import Slot, Unread, VersionedTuple

from .model import BAG, KEYED, History, Transaction, histories, revert


def state(tuples: dict[int, VersionedTuple], session_vn: int) -> dict[object, object]:
    return {t.fixed: value for t in tuples.values() if (value := read(t, session_vn)) is not Unread.IGNORE}


@pytest.mark.conforms("Q12")
@pytest.mark.conforms("Q3")
@given(histories(KEYED, BAG))
def test_every_version_that_has_not_expired_reads_as_it_was(drawn: tuple[Layout, list[Transaction]]) -> None:
    history = History(drawn[0])
    for transaction in drawn[1]:
        during = history.tuples | {
            key: held.now for key, held in history.hold(transaction, history.current_vn + 1).items() if held.now
        }
        for s in range(1, history.current_vn + 1):
            seen = state(during, s)
            if Unread.EXPIRED not in seen.values():
                assert seen == history.logical[s]
        history.run(transaction)
        assert state(history.tuples, history.current_vn) == history.logical[history.current_vn]


@pytest.mark.conforms("Q11")
@pytest.mark.conforms("Q13")
@given(histories(KEYED, BAG))
def test_each_grain_of_expiry_is_more_cautious_than_the_one_before(drawn: tuple[Layout, list[Transaction]]) -> None:
    layout, transactions = drawn
    history = History(layout)
    for transaction in transactions:
        running = History(layout, dict(history.tuples), history.current_vn, history.logical, [], dict(history.base))
        running.overlay = dict(history.overlay)
        running.store(running.hold(transaction, running.current_vn + 1), running.current_vn + 1, fold=False)
        check_grains(running, active=True)
        history.run(transaction)
        check_grains(history, active=False)


def check_grains(history: History, *, active: bool) -> None:
    for s in range(1, history.current_vn + 1):
        some_tuple = any(read(t, s) is Unread.EXPIRED for t in history.tuples.values())
        table = table_expired(s, history.facts(), history.layout)
        everywhere = global_expired(s, history.current_vn, active, history.layout.versions)
        assert some_tuple <= table <= everywhere
        overlapped = history.current_vn - s + active
        if overlapped <= history.layout.versions - 1:
            assert not everywhere


@given(histories(KEYED, BAG))
def test_a_tuple_alone_tells_what_it_was_before_a_transaction(drawn: tuple[Layout, list[Transaction]]) -> None:
    """Rollback without a log (section 7), as a model; the storage, which has the older rows, can tell more."""
    history = History(drawn[0])
    for transaction in drawn[1]:
        vn = history.current_vn + 1
        for held in history.hold(transaction, vn).values():
            if held.now is None:
                continue
            for s in range(1, vn):
                before = read(held.stored, s) if held.stored else Unread.IGNORE
                told = revert(held.now, vn).read(s)
                assert told in (before, Unread.EXPIRED)
                assert told == before or s < vn - history.layout.slots
        history.run(transaction)


def test_pulling_slots_forward_without_a_horizon_would_claim_too_much() -> None:
    stored = VersionedTuple((), (3,), (Slot(6, UPDATE, (2,)), Slot(5, UPDATE, (1,))), 2)
    now = update(Held.of(stored), (4,), 7).now
    assert now is not None
    assert now.slots == (Slot(7, UPDATE, (3,)), Slot(6, UPDATE, (2,)))
    pulled = VersionedTuple((), (3,), now.slots[1:], 2)
    assert read(pulled, 4) == (2,)  # wrong: it was (1,), and nothing says that the slot of 5 is missing
    assert read(stored, 4) == (1,)
    assert revert(now, 7).read(4) is Unread.EXPIRED
