"""Examples 3.2, 3.3 and 5.1: Figures 4, 5, 6 and 7 come out exactly."""

import pytest

from matview.versions.decide import DELETE, INSERT, UPDATE, Held, delete, insert, read, update
from matview.versions.tuples import Operation, Slot, Unread, Values, VersionedTuple

GOLF_14 = ("San Jose", "CA", "golf equip", "10/14/96")
GOLF_15 = ("San Jose", "CA", "golf equip", "10/15/96")
GOLF_16 = ("San Jose", "CA", "golf equip", "10/16/96")
RACQUET = ("Berkeley", "CA", "racquetball", "10/14/96")
BLADES = ("Novato", "CA", "rollerblades", "10/13/96")

# tupleVN, operation, key, total_sales, pre_total_sales
Line = tuple[int, Operation, Values, int, int | None]

FIGURE_4: list[Line] = [
    (3, INSERT, GOLF_14, 10_000, None),
    (4, INSERT, GOLF_15, 1_500, None),
    (4, UPDATE, RACQUET, 12_000, 10_000),
    (4, DELETE, BLADES, 8_000, 8_000),
]

FIGURE_6: list[Line] = [
    (5, UPDATE, GOLF_14, 10_200, 10_000),
    (4, INSERT, GOLF_15, 1_500, None),
    (5, DELETE, RACQUET, 12_000, 12_000),
    (5, INSERT, BLADES, 6_000, None),
    (5, INSERT, GOLF_16, 11_000, None),
]


def stored(line: Line) -> VersionedTuple:
    vn, operation, key, total, pre = line
    return VersionedTuple(key, (total,), (Slot(vn, operation, None if pre is None else (pre,)),), 1)


def line(tuple_: VersionedTuple) -> Line:
    slot = tuple_.newest
    return (slot.vn, slot.operation, tuple_.fixed, tuple_.current[0], slot.pre[0] if slot.pre else None)  # type: ignore[return-value]


def test_figure_4_is_what_its_history_gives() -> None:
    racquet = insert(Held.of(None), RACQUET, (10_000,), 2, 1)
    blades = insert(Held.of(None), BLADES, (8_000,), 2, 1)
    after = [
        insert(Held.of(None), GOLF_14, (10_000,), 3, 1),
        insert(Held.of(None), GOLF_15, (1_500,), 4, 1),
        update(Held.of(racquet.now), (12_000,), 4),
        delete(Held.of(blades.now), 4),
    ]
    assert [line(held.now) for held in after if held.now] == FIGURE_4


@pytest.mark.conforms("Q8")
def test_example_3_2_a_reader_at_version_3() -> None:
    seen = {t.fixed: read(t, 3) for t in map(stored, FIGURE_4)}
    assert seen == {GOLF_14: (10_000,), GOLF_15: Unread.IGNORE, RACQUET: (10_000,), BLADES: (8_000,)}


@pytest.mark.conforms("Q8")
def test_example_3_3_figure_5_applied_to_figure_4_is_figure_6() -> None:
    table = {t.fixed: Held.of(t) for t in map(stored, FIGURE_4)}
    table[GOLF_16] = insert(Held.of(None), GOLF_16, (11_000,), 5, 1)
    table[BLADES] = insert(table[BLADES], BLADES, (6_000,), 5, 1)
    table[GOLF_14] = update(table[GOLF_14], (10_200,), 5)
    table[RACQUET] = delete(table[RACQUET], 5)
    assert [line(table[key].now) for key in (GOLF_14, GOLF_15, RACQUET, BLADES, GOLF_16)] == FIGURE_6  # type: ignore[arg-type]


@pytest.mark.conforms("Q12")
def test_example_5_1_figure_7() -> None:
    held = insert(Held.of(None), GOLF_14, (10_000,), 3, 3)
    held = update(Held.of(held.now), (10_200,), 5)
    held = delete(Held.of(held.now), 6)
    figure_7 = VersionedTuple(
        GOLF_14, (10_200,), (Slot(6, DELETE, (10_200,)), Slot(5, UPDATE, (10_000,)), Slot(3, INSERT)), 3
    )
    assert held.now == figure_7
    readers = {s: read(figure_7, s) for s in range(9)}
    assert readers == {
        **dict.fromkeys((0, 1), Unread.EXPIRED),
        2: Unread.IGNORE,
        **dict.fromkeys((3, 4), (10_000,)),
        5: (10_200,),
        **dict.fromkeys((6, 7, 8), Unread.IGNORE),
    }
