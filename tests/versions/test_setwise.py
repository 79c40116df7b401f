"""The set-oriented form says what the pure functions say, over every decision that random histories meet."""

from functools import cache

import pytest
import sqlglot
from hypothesis import given, settings

from matview.algebra.schema import Column, Schema
from matview.versions.decide import Held, insert
from matview.versions.layout import LEVEL, RID, Layout
from matview.versions.setwise import changed, inserted, live, own_insert_deleted
from matview.versions.tuples import Operation

from .model import BAG, KEYED, Case, History, Transaction, fetch_named, histories, physical, register, shifted

VN = 100  # every decision is moved to this transaction, so that few different texts need parsing
ACTS: tuple[str, ...] = ("`act`", "1", "2", "3")


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@cache
def decision_sql(layout: Layout, act: str) -> str:
    """Everything about `act` on the rows of `cases`, for DuckDB."""
    new = {name: f"`n`.`new{i}`" for i, name in enumerate(layout.updatable)}
    texts = changed(layout, VN, act, new, row="n") | {
        "own_insert_deleted": own_insert_deleted(layout, VN, act, row="n"),
        "live": live(layout, row="n"),
    }
    select = f"SELECT {', '.join(f'{sql} AS {quoted(name)}' for name, sql in texts.items())} FROM cases AS n"
    return sqlglot.transpile(f"{select} WHERE `act` = {act} ORDER BY `nr`", read="spark", write="duckdb")[0]


def case_row(layout: Layout, nr: int, case: Case) -> dict[str, object]:
    none: dict[str, object] = dict.fromkeys(name for name, _ in layout.columns)
    before = physical(layout, nr, shifted(case.before, VN - case.vn)) if case.before else none
    new = {f"new{i}": value for i, value in enumerate(case.step.new)}
    return before | new | {"nr": nr, "act": int(case.step.act)}


def expected(layout: Layout, nr: int, before: object, after: Held | None, vn: int) -> dict[str, object] | None:
    return physical(layout, nr, shifted(after.now, VN - vn)) if before and after and after.now else None


@pytest.mark.conforms("Q4")
@pytest.mark.conforms("Q5")
@pytest.mark.conforms("Q6")
@pytest.mark.conforms("Q7")
@settings(max_examples=25, deadline=None)
@given(histories(KEYED, BAG))
def test_sets_and_single_tuples_agree(drawn: tuple[Layout, list[Transaction]]) -> None:
    layout, transactions = drawn
    history = History(layout)
    for transaction in transactions:
        history.run(transaction)
    rows = [case_row(layout, nr, case) for nr, case in enumerate(history.cases)]
    kinds = [(f"new{i}", layout.types[name]) for i, name in enumerate(layout.updatable)]
    register("cases", [*layout.columns, *kinds, ("nr", "int"), ("act", "int")], rows)
    for act in ACTS:
        found = fetch_named(decision_sql(layout, act))
        asked = [(nr, c) for nr, c in enumerate(history.cases) if act in ("`act`", str(int(c.step.act)))]
        for row, (nr, case) in zip(found, asked, strict=True):
            check(layout, row, nr, case)


def check(layout: Layout, row: dict[str, object], nr: int, case: Case) -> None:
    was_live = row.pop("live")
    assert was_live == (case.before and case.before.newest.operation in (Operation.INSERT, Operation.UPDATE))
    goes = case.after is not None and case.step.act is Operation.DELETE and case.after.now == case.after.stored
    assert row.pop("own_insert_deleted") == goes
    if goes:
        assert row["__op1"] == Operation.VOID
    elif case.before and case.after:
        assert row == expected(layout, nr, case.before, case.after, case.vn)


@pytest.mark.conforms("Q4")
@pytest.mark.parametrize("versions", [2, 3, 5])
@pytest.mark.parametrize("schema", [KEYED, BAG], ids=["keyed", "bag"])
def test_a_new_tuple_is_the_third_row_of_table_2(schema: Schema, versions: int) -> None:
    layout = Layout(schema, versions)
    values = {name: str(i) for i, name in enumerate(layout.current)}
    new = tuple(int(values[name]) for name in layout.updatable)
    fixed = tuple(int(values[name]) for name in layout.fixed)
    texts = inserted(layout, 7, values, "42")
    assert tuple(texts) == tuple(name for name, _ in layout.columns)
    select = "SELECT " + ", ".join(f"{sql} AS {quoted(name)}" for name, sql in texts.items())
    found = fetch_named(sqlglot.transpile(select, read="spark", write="duckdb")[0])
    held = insert(Held.of(None), fixed, new, 7, layout.slots)
    assert held.now is not None
    assert found == [physical(layout, 42, held.now)]


def test_text_is_short_where_the_act_is_known() -> None:
    layout = Layout(Schema((Column("k", "int"), Column("v", "decimal(9,2)")), key=("k",)), 3)
    assert changed(layout, 5, Operation.UPDATE, {"v": "new.v"}) == {
        "__rid": "`__rid`",
        "k": "`k`",
        "v": "new.v",
        "__vn1": "CAST(5 AS bigint)",
        "__op1": "CASE WHEN `__vn1` < 5 THEN CAST(2 AS tinyint) ELSE `__op1` END",
        "__pre1_v": "CASE WHEN `__vn1` < 5 THEN `v` ELSE `__pre1_v` END",
        "__vn2": "CASE WHEN `__vn1` < 5 THEN `__vn1` ELSE `__vn2` END",
        "__op2": "CASE WHEN `__vn1` < 5 THEN `__op1` ELSE `__op2` END",
        "__pre2_v": "CASE WHEN `__vn1` < 5 THEN `__pre1_v` ELSE `__pre2_v` END",
    }
    assert changed(layout, 5, "3", {})["v"] == "`v`"
    assert own_insert_deleted(layout, 5, "2") == "FALSE"
    assert live(layout, row="a b") == "`a b`.`__op1` IN (1, 2)"


def test_a_column_without_a_new_value_keeps_its_own() -> None:
    layout = Layout(KEYED, 2)
    texts = changed(layout, 5, Operation.UPDATE, {"a b": "1"})
    assert texts["a b"] == "1"
    assert texts['x."y'] == '`x."y`'
    assert texts['__pre1_x."y'] == 'CASE WHEN `__vn1` < 5 THEN `x."y` ELSE `__pre1_x."y` END'


def test_a_table_of_keys_alone_can_be_inserted_and_deleted() -> None:
    layout = Layout(Schema((Column("k", "int"),), key=("k",)), 2)
    assert set(changed(layout, 5, "act", {})) == {RID, "k", "__vn1", "__op1"}
    assert LEVEL not in inserted(layout, 5, {"k": "1"}, "1")


@pytest.mark.parametrize(
    "wrong",
    [
        lambda layout: changed(layout, 5, "2", {"se`lect": "1"}),
        lambda layout: changed(layout, 5, "1", {"a b": "1"}),
        lambda layout: inserted(layout, 5, {"a b": "1"}, "1"),
    ],
)
def test_columns_that_do_not_fit_are_refused(wrong: object) -> None:
    with pytest.raises(KeyError):
        wrong(Layout(KEYED, 2))  # type: ignore[operator]
