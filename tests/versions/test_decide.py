"""Tables 1-4, cell by cell as the paper prints them, and all pairs of operations in one transaction."""

import pytest

from matview.errors import DuplicateKey, ImpossibleOperation, MatviewError
from matview.versions.decide import (
    DELETE,
    INSERT,
    TABLE_1,
    TABLES,
    UPDATE,
    VOID,
    Cell,
    Extract,
    Held,
    Physical,
    Row,
    Source,
    Version,
    delete,
    insert,
    read,
    update,
)
from matview.versions.tuples import Operation, Slot, Unread, Values, VersionedTuple

PAPER_TABLE_1 = {
    ("Current Version", INSERT): "read current attribute values",
    ("Current Version", UPDATE): "read current attribute values",
    ("Current Version", DELETE): "ignore tuple",
    ("Pre-Update Version", INSERT): "ignore tuple",
    ("Pre-Update Version", UPDATE): "read pre-update attribute values",
    ("Pre-Update Version", DELETE): "read pre-update attribute values",
}

PAPER_TABLES = {
    INSERT: {
        ("<", INSERT): "impossible",
        ("<", UPDATE): "impossible",
        ("<", DELETE): "Update tuple: PV<-nulls CV<-MV tupleVN<-maintenanceVN operation<-insert",
        ("=", INSERT): "impossible",
        ("=", UPDATE): "impossible",
        ("=", DELETE): "Update tuple: CV<-MV operation<-update",
        ("no", None): "Insert tuple: PV<-nulls CV<-MV tupleVN<-maintenanceVN operation<-insert",
    },
    UPDATE: {
        ("<", INSERT): "Update tuple: PV<-CV CV<-MV tupleVN<-maintenanceVN operation<-update",
        ("<", UPDATE): "Update tuple: PV<-CV CV<-MV tupleVN<-maintenanceVN operation<-update",
        ("<", DELETE): "impossible",
        ("=", INSERT): "Update tuple: CV<-MV",
        ("=", UPDATE): "Update tuple: CV<-MV",
        ("=", DELETE): "impossible",
    },
    DELETE: {
        ("<", INSERT): "Update tuple: PV<-CV tupleVN<-maintenanceVN operation<-delete",
        ("<", UPDATE): "Update tuple: PV<-CV tupleVN<-maintenanceVN operation<-delete",
        ("<", DELETE): "impossible",
        ("=", INSERT): "Delete tuple",
        ("=", UPDATE): "Update tuple: operation<-delete",
        ("=", DELETE): "impossible",
    },
}

ROWS = {"<": Row.EARLIER, "=": Row.OWN, "no": Row.ABSENT}


def printed(row: Row, cell: Cell) -> str:
    """A cell in the paper's words. Only the first and third rows print tupleVN <- maintenanceVN; in 5 they push."""
    parts = [f"PV<-{cell.pv.value}"] if cell.pv is not Source.KEEP else []
    parts += [f"CV<-{cell.cv.value}"] if cell.cv is not Source.KEEP else []
    parts += ["tupleVN<-maintenanceVN"] if cell.push or (row is Row.ABSENT and cell.operation) else []
    parts += [f"operation<-{cell.operation.name.lower()}"] if cell.operation else []
    return f"{cell.physical.value}: {' '.join(parts)}" if parts else cell.physical.value


@pytest.mark.conforms("Q3")
@pytest.mark.parametrize(("version", "operation"), PAPER_TABLE_1)
def test_table_1(version: str, operation: Operation) -> None:
    assert TABLE_1[Version(version), operation] is Extract(PAPER_TABLE_1[version, operation])


@pytest.mark.parametrize(
    ("act", "row", "previous"),
    [
        pytest.param(act, row, previous, marks=pytest.mark.conforms(item))
        for act, item in ((INSERT, "Q4"), (UPDATE, "Q5"), (DELETE, "Q6"))
        for row, previous in PAPER_TABLES[act]
    ],
)
def test_tables_2_to_4(act: Operation, row: str, previous: Operation | None) -> None:
    cell = TABLES[act][ROWS[row], previous]
    assert printed(ROWS[row], cell) == PAPER_TABLES[act][row, previous]


@pytest.mark.parametrize("act", TABLES)
@pytest.mark.parametrize("row", [Row.EARLIER, Row.OWN])
def test_a_void_tuple_is_as_good_as_none(act: Operation, row: Row) -> None:
    none, void = TABLES[act][Row.ABSENT, None], TABLES[act][row, VOID]
    assert (void.pv, void.cv, void.operation, void.push) == (none.pv, none.cv, none.operation, none.push)
    assert (void.physical is Physical.IMPOSSIBLE) == (none.physical is Physical.IMPOSSIBLE)


# single tuples --------------------------------------------------------------------------------------------------------


def versioned(*slots: Slot, current: Values = (9,), n: int = 2) -> VersionedTuple:
    return VersionedTuple(("k",), current, slots, n - 1)


@pytest.mark.conforms("Q3")
@pytest.mark.parametrize(
    ("operation", "session_vn", "expected"),
    [
        (INSERT, 5, (9,)),
        (UPDATE, 5, (9,)),
        (DELETE, 5, Unread.IGNORE),
        (INSERT, 9, (9,)),
        (INSERT, 4, Unread.IGNORE),
        (UPDATE, 4, (7,)),
        (DELETE, 4, (7,)),
        (INSERT, 3, Unread.EXPIRED),
        (UPDATE, 3, Unread.EXPIRED),
        (DELETE, 3, Unread.EXPIRED),
        (VOID, 5, Unread.IGNORE),
        (VOID, 4, Unread.IGNORE),
        (VOID, 3, Unread.IGNORE),
    ],
)
def test_the_three_cases_of_3_2(operation: Operation, session_vn: int, expected: object) -> None:
    slot = Slot(5, operation, (7,) if operation in (UPDATE, DELETE) else None)
    assert read(versioned(slot), session_vn) == expected


@pytest.mark.conforms("Q12")
def test_a_tuple_with_a_slot_to_spare_never_expires() -> None:
    once_updated = versioned(Slot(9, UPDATE, (7,)), Slot(5, INSERT), n=4)
    assert [read(once_updated, s) for s in (1, 4, 5, 8, 9)] == [Unread.IGNORE, Unread.IGNORE, (7,), (7,), (9,)]
    assert read(versioned(Slot(9, UPDATE, (7,)), Slot(5, INSERT), n=3), 3) is Unread.EXPIRED


@pytest.mark.conforms("Q4")
def test_a_null_value_is_a_value() -> None:
    held = insert(Held.of(None), ("k",), (None,), 2, 1)
    held = update(Held.of(held.now), (1,), 3)
    assert held.now is not None
    assert read(held.now, 2) == (None,)


# Q7: all nine pairs ---------------------------------------------------------------------------------------------------

IMPOSSIBLE = "impossible"
GONE = "as stored"
PAIRS: dict[tuple[Operation, Operation], tuple[Operation, Values, Values | None] | str] = {
    (INSERT, INSERT): IMPOSSIBLE,
    (INSERT, UPDATE): (INSERT, (2,), None),
    (INSERT, DELETE): GONE,
    (UPDATE, INSERT): IMPOSSIBLE,
    (UPDATE, UPDATE): (UPDATE, (2,), (0,)),
    (UPDATE, DELETE): (DELETE, (1,), (0,)),
    (DELETE, INSERT): (UPDATE, (2,), (0,)),
    (DELETE, UPDATE): IMPOSSIBLE,
    (DELETE, DELETE): IMPOSSIBLE,
}


def act(held: Held, operation: Operation, new: Values, vn: int, n: int) -> Held:
    match operation:
        case Operation.INSERT:
            return insert(held, ("k",), new, vn, n - 1)
        case Operation.UPDATE:
            return update(held, new, vn)
        case _:
            return delete(held, vn)


def starts(first: Operation, n: int) -> list[VersionedTuple | None]:
    """Everything that the first operation of a pair can meet."""
    inserted = versioned(Slot(3, INSERT), current=(0,), n=n)
    if first is INSERT:
        deleted = delete(Held.of(inserted), 5).now
        return [None, deleted]
    return [inserted, update(Held.of(versioned(Slot(3, INSERT), n=n)), (0,), 5).now]


@pytest.mark.conforms("Q7")
@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_net_effect_of_two_operations_in_one_transaction(first: Operation, second: Operation, n: int) -> None:
    for stored in starts(first, n):
        once = act(Held.of(stored), first, (1,), 8, n)
        if PAIRS[first, second] == IMPOSSIBLE:
            with pytest.raises((DuplicateKey, ImpossibleOperation)):
                act(once, second, (2,), 8, n)
            continue
        twice = act(once, second, (2,), 8, n)
        if PAIRS[first, second] == GONE:
            assert twice == Held(stored, stored)
            continue
        assert twice.now is not None
        assert (twice.now.newest.operation, twice.now.current, twice.now.newest.pre) == PAIRS[first, second]
        assert twice.now.newest.vn == 8
        assert twice.now.slots[1:] == (stored.slots if stored else ())[: n - 2]


@pytest.mark.conforms("Q6")
@pytest.mark.conforms("Q12")
def test_deleting_a_revived_tuple_gives_back_its_history() -> None:
    """Table 4's 'Delete tuple', taken at its word, would lose what sessions 3 and 4 read."""
    stored = versioned(Slot(5, DELETE, (7,)), Slot(3, INSERT), current=(7,), n=3)
    revived = insert(Held.of(stored), ("k",), (8,), 6, 2)
    assert revived.now is not None
    assert read(revived.now, 4) == (7,)
    assert read(revived.now, 3) is Unread.EXPIRED  # the insert of 3 was pushed out
    again = delete(revived, 6)
    assert again.now == stored
    assert [read(stored, s) for s in (2, 3, 4, 5)] == [Unread.IGNORE, (7,), (7,), Unread.IGNORE]
    assert delete(insert(again, ("k",), (9,), 6, 2), 6).now == stored


@pytest.mark.conforms("Q4")
@pytest.mark.conforms("Q6")
@pytest.mark.parametrize(
    ("operation", "stored", "error"),
    [
        (INSERT, versioned(Slot(3, INSERT)), DuplicateKey),
        (INSERT, versioned(Slot(3, UPDATE, (1,))), DuplicateKey),
        (UPDATE, versioned(Slot(3, DELETE, (1,))), ImpossibleOperation),
        (UPDATE, versioned(Slot(3, VOID)), ImpossibleOperation),
        (UPDATE, None, ImpossibleOperation),
        (DELETE, versioned(Slot(3, DELETE, (1,))), ImpossibleOperation),
        (DELETE, versioned(Slot(3, VOID)), ImpossibleOperation),
        (DELETE, None, ImpossibleOperation),
    ],
)
def test_an_impossible_cell_is_an_error(
    operation: Operation, stored: VersionedTuple | None, error: type[MatviewError]
) -> None:
    with pytest.raises(error) as raised:
        act(Held.of(stored), operation, (5,), 4, 2)
    assert raised.value.code in str(raised.value)
    assert raised.value.help


def test_a_void_tuple_is_inserted_anew() -> None:
    held = insert(Held.of(versioned(Slot(3, VOID), n=3)), ("k",), (5,), 4, 2)
    assert held.now == versioned(Slot(4, INSERT), current=(5,), n=3)


def test_an_older_transaction_cannot_follow_a_newer_one() -> None:
    with pytest.raises(ValueError, match="one at a time"):
        update(Held.of(versioned(Slot(5, INSERT))), (1,), 4)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Slot(0, INSERT),
        lambda: Slot(1, INSERT, (1,)),
        lambda: Slot(1, UPDATE),
        lambda: versioned(),
        lambda: versioned(Slot(2, UPDATE, (1,)), Slot(1, INSERT), n=2),
        lambda: versioned(Slot(2, UPDATE, (1,)), Slot(2, INSERT), n=3),
        lambda: versioned(Slot(2, UPDATE, (1,)), Slot(1, DELETE, (1,)), n=3),
        lambda: versioned(Slot(2, INSERT), Slot(1, UPDATE, (1,)), n=3),
        lambda: versioned(Slot(2, UPDATE, (1, 2))),
        lambda: Cell(Physical.UPDATE, pv=Source.MV),
        lambda: Cell(Physical.UPDATE, cv=Source.CV),
        lambda: Cell(Physical.DELETE, operation=DELETE),
    ],
)
def test_what_cannot_be_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        wrong()  # type: ignore[operator]
