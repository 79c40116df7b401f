"""Tables 1 to 4 of the paper as data, and what they do to one tuple; section 5 adds only where slots are pushed back.

The set-oriented form (`setwise`) and the reader's rewrite (`rewrite`) are made from this same data.

One thing the paper leaves out. Table 4's 'Delete tuple' undoes an insert of the same transaction. If that insert had
revived a logically deleted tuple, then deleting it physically would also destroy the history below, which sessions
still read. So a transaction holds each tuple twice, as *stored* before it and as it stands *now*, and 'Delete tuple'
gives back the stored one; only where there was none does the tuple go. The storage gets the same effect by leaving the
tuple out of the files it adds. Rollback is that for all tuples: the files go, and the rows as they were come back. A
tuple alone could tell less, for what was pushed out of its last slot is lost (`revert`, a model in tests/versions).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from matview.errors import DuplicateKey, ImpossibleOperation
from matview.versions.tuples import Operation, Slot, Unread, Values, VersionedTuple

INSERT, UPDATE, DELETE, VOID = Operation


class Version(Enum):
    """The two rows of Table 1."""

    CURRENT = "Current Version"
    PRE_UPDATE = "Pre-Update Version"


class Extract(Enum):
    """What a cell of Table 1 says to read."""

    CURRENT = "read current attribute values"
    PRE_UPDATE = "read pre-update attribute values"
    IGNORE = "ignore tuple"


class Row(Enum):
    """The rows of Tables 2-4: who changed the tuple last."""

    EARLIER = "tupleVN < maintenanceVN"
    OWN = "tupleVN = maintenanceVN"
    ABSENT = "No Conflicting Tuple"


class Source(Enum):
    """What stands to the right of `PV <-` and `CV <-`."""

    KEEP = "unchanged"
    NULLS = "nulls"
    CV = "CV"
    MV = "MV"


class Physical(Enum):
    """The physical operation that a cell of Tables 2-4 asks for."""

    UPDATE = "Update tuple"
    INSERT = "Insert tuple"
    DELETE = "Delete tuple"
    IMPOSSIBLE = "impossible"


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of Tables 2-4. `operation` None leaves it as it is; `push` is section 5's push-back of the slots.

    tupleVN <- maintenanceVN always: in the row OWN it is that already.
    """

    physical: Physical
    pv: Source = Source.KEEP
    cv: Source = Source.KEEP
    operation: Operation | None = None
    push: bool = False

    def __post_init__(self) -> None:
        if self.pv is Source.MV or self.cv in (Source.NULLS, Source.CV):
            raise ValueError(f"no table says so: {self}")
        assigns = (self.pv, self.cv, self.operation, self.push) != (Source.KEEP, Source.KEEP, None, False)
        if assigns and self.physical in (Physical.DELETE, Physical.IMPOSSIBLE):
            raise ValueError(f"nothing is assigned when the tuple is not written: {self}")


_IMPOSSIBLE = Cell(Physical.IMPOSSIBLE)
_KEEP, _NULLS, _CV, _MV = Source.KEEP, Source.NULLS, Source.CV, Source.MV

TABLE_1: dict[tuple[Version, Operation], Extract] = {
    (Version.CURRENT, INSERT): Extract.CURRENT,
    (Version.CURRENT, UPDATE): Extract.CURRENT,
    (Version.CURRENT, DELETE): Extract.IGNORE,
    (Version.CURRENT, VOID): Extract.IGNORE,
    (Version.PRE_UPDATE, INSERT): Extract.IGNORE,
    (Version.PRE_UPDATE, UPDATE): Extract.PRE_UPDATE,
    (Version.PRE_UPDATE, DELETE): Extract.PRE_UPDATE,
    (Version.PRE_UPDATE, VOID): Extract.IGNORE,
}

Table = dict[tuple[Row, Operation | None], Cell]

TABLE_2: Table = {  # insert
    (Row.EARLIER, INSERT): _IMPOSSIBLE,
    (Row.EARLIER, UPDATE): _IMPOSSIBLE,
    (Row.EARLIER, DELETE): Cell(Physical.UPDATE, pv=_NULLS, cv=_MV, operation=INSERT, push=True),
    (Row.EARLIER, VOID): Cell(Physical.UPDATE, pv=_NULLS, cv=_MV, operation=INSERT),
    (Row.OWN, INSERT): _IMPOSSIBLE,
    (Row.OWN, UPDATE): _IMPOSSIBLE,
    (Row.OWN, DELETE): Cell(Physical.UPDATE, cv=_MV, operation=UPDATE),
    (Row.OWN, VOID): Cell(Physical.UPDATE, pv=_NULLS, cv=_MV, operation=INSERT),
    (Row.ABSENT, None): Cell(Physical.INSERT, pv=_NULLS, cv=_MV, operation=INSERT),
}

TABLE_3: Table = {  # update
    (Row.EARLIER, INSERT): Cell(Physical.UPDATE, pv=_CV, cv=_MV, operation=UPDATE, push=True),
    (Row.EARLIER, UPDATE): Cell(Physical.UPDATE, pv=_CV, cv=_MV, operation=UPDATE, push=True),
    (Row.EARLIER, DELETE): _IMPOSSIBLE,
    (Row.EARLIER, VOID): _IMPOSSIBLE,
    (Row.OWN, INSERT): Cell(Physical.UPDATE, cv=_MV),
    (Row.OWN, UPDATE): Cell(Physical.UPDATE, cv=_MV),
    (Row.OWN, DELETE): _IMPOSSIBLE,
    (Row.OWN, VOID): _IMPOSSIBLE,
    (Row.ABSENT, None): _IMPOSSIBLE,
}

TABLE_4: Table = {  # delete
    (Row.EARLIER, INSERT): Cell(Physical.UPDATE, pv=_CV, operation=DELETE, push=True),
    (Row.EARLIER, UPDATE): Cell(Physical.UPDATE, pv=_CV, operation=DELETE, push=True),
    (Row.EARLIER, DELETE): _IMPOSSIBLE,
    (Row.EARLIER, VOID): _IMPOSSIBLE,
    (Row.OWN, INSERT): Cell(Physical.DELETE),
    (Row.OWN, UPDATE): Cell(Physical.UPDATE, operation=DELETE),
    (Row.OWN, DELETE): _IMPOSSIBLE,
    (Row.OWN, VOID): _IMPOSSIBLE,
    (Row.ABSENT, None): _IMPOSSIBLE,
}

TABLES: dict[Operation, Table] = {INSERT: TABLE_2, UPDATE: TABLE_3, DELETE: TABLE_4}


def seen(version: Version) -> frozenset[Operation]:
    """The operations under which that version of a tuple is there to be read (a row of Table 1)."""
    return frozenset(o for o in Operation if TABLE_1[version, o] is not Extract.IGNORE)


def read(tuple_: VersionedTuple, session_vn: int) -> Values | Unread:
    """The updatable values at `session_vn`: the three cases of section 5 (of 3.2 if n = 2), then Table 1.

    1. sessionVN >= tupleVN_1: the current version.
    2. tupleVN_{n-1} - 1 <= sessionVN < tupleVN_1: the pre-update version of the least tupleVN_j > sessionVN.
    3. sessionVN < tupleVN_{n-1} - 1: expired. A tuple with a slot to spare has lost nothing and so never is.
    """
    if tuple_.newest.operation is VOID:
        return Unread.IGNORE
    if tuple_.full and session_vn < tuple_.slots[-1].vn - 1:
        return Unread.EXPIRED
    later = [slot for slot in tuple_.slots if slot.vn > session_vn]
    slot, version = (later[-1], Version.PRE_UPDATE) if later else (tuple_.newest, Version.CURRENT)
    match TABLE_1[version, slot.operation]:
        case Extract.CURRENT:
            return tuple_.current
        case Extract.PRE_UPDATE if slot.pre is not None:
            return slot.pre
        case _:
            return Unread.IGNORE


@dataclass(frozen=True, slots=True)
class Held:
    """A tuple in the hands of a maintenance transaction: as stored before it (None: not there), and as it is now."""

    stored: VersionedTuple | None
    now: VersionedTuple | None

    @classmethod
    def of(cls, stored: VersionedTuple | None) -> Held:
        """A tuple that the transaction has not touched yet."""
        return cls(stored, stored)


def insert(held: Held, fixed: Values, new: Values, vn: int, capacity: int) -> Held:
    """Table 2. A live tuple of that key is `DuplicateKey`; a deleted one is revived."""
    cell = _cell(INSERT, held.now, vn)
    if cell.physical is Physical.IMPOSSIBLE:
        raise DuplicateKey(f"a row with key {fixed!r} is there already")
    if held.now is None:
        return Held(held.stored, VersionedTuple(fixed, new, (Slot(vn, INSERT),), capacity))
    return Held(held.stored, _written(held.now, cell, new, vn))


def update(held: Held, new: Values, vn: int) -> Held:
    """Table 3. A tuple that is not there is `ImpossibleOperation`."""
    now, cell = _found(UPDATE, held.now, vn)
    return Held(held.stored, _written(now, cell, new, vn))


def delete(held: Held, vn: int) -> Held:
    """Table 4; 'Delete tuple' gives back the tuple stored before this transaction, if there was one."""
    now, cell = _found(DELETE, held.now, vn)
    if cell.physical is Physical.DELETE:
        return Held.of(held.stored)
    return Held(held.stored, _written(now, cell, now.current, vn))


def _found(act: Operation, now: VersionedTuple | None, vn: int) -> tuple[VersionedTuple, Cell]:
    cell = _cell(act, now, vn)
    if now is None or cell.physical is Physical.IMPOSSIBLE:
        raise ImpossibleOperation(f"no row to {act.name.lower()}" + (f" with key {now.fixed!r}" if now else ""))
    return now, cell


def _cell(act: Operation, now: VersionedTuple | None, vn: int) -> Cell:
    if now is None:
        return TABLES[act][Row.ABSENT, None]
    if now.newest.vn > vn:
        raise ValueError(f"maintenance transactions run one at a time: {vn} meets a tuple of {now.newest.vn}")
    return TABLES[act][Row.OWN if now.newest.vn == vn else Row.EARLIER, now.newest.operation]


def _written(now: VersionedTuple, cell: Cell, new: Values, vn: int) -> VersionedTuple:
    """The tuple after a cell's assignments; `push` makes room in front and lets the n-th version fall off the end."""
    newest = now.newest
    pre = {Source.KEEP: newest.pre, Source.NULLS: None, Source.CV: now.current}[cell.pv]
    first = Slot(vn, cell.operation or newest.operation, pre)
    older = now.slots if cell.push else now.slots[1:]
    current = new if cell.cv is Source.MV else now.current
    return replace(now, current=current, slots=(first, *older)[: now.capacity])
