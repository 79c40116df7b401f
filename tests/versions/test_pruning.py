"""Skipping under the rewrite (Q18): never a file with a row that counts, and whatever else it can."""

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp, parse_one

from matview.algebra.schema import Column, Schema
from matview.versions.decide import read
from matview.versions.expiry import table_expired
from matview.versions.facts import Facts
from matview.versions.layout import Layout
from matview.versions.pruning import Comparison, Constant, Predicate, implied, may_match, sargable
from matview.versions.rewrite import reading
from matview.versions.text import spark_text
from matview.versions.tuples import Unread

from .model import KEYED, History, Transaction, fetch, histories, physical, register_stored

SALES = Schema(
    (
        Column("id", "bigint"),
        Column("city", "string"),
        Column("amount", "int"),
        Column("price", "decimal(9,2)"),
        Column("day", "date"),
        Column("at", "timestamp"),
        Column("weight", "double"),
        Column("paid", "boolean"),
        Column("code", "char(3)"),
        Column("folded", "string collate UTF8_LCASE"),
    ),
    key=("id",),
)


def cases() -> list[object]:
    lines = [*(Path(__file__).parent / "fixtures" / "sargable.sql").read_text().rstrip("\n").split("\n"), ""]
    return [pytest.param(q, p, id=t[3:]) for t, q, p in zip(lines[::3], lines[1::3], lines[2::3], strict=False)]


def printed(predicate: Predicate) -> str:
    return f"{predicate.column} {predicate.comparison} {', '.join(c.sql for c in predicate.constants)}"


@pytest.mark.conforms("Q18")
@pytest.mark.parametrize(("query", "expected"), cases())
def test_what_every_row_that_counts_must_satisfy(query: str, expected: str) -> None:
    parsed = parse_one(query, dialect="spark")
    reference = next(t for t in parsed.find_all(exp.Table) if t.name == "sales")
    assert " & ".join(printed(p) for p in sargable(reference, SALES)) == expected


def test_a_long_list_is_left_alone() -> None:
    def found(length: int) -> int:
        query = parse_one(f"SELECT * FROM sales WHERE id IN ({', '.join(map(str, range(length)))})")
        return len(sargable(next(query.find_all(exp.Table)), SALES))

    assert (found(100), found(101)) == (1, 0)


def test_a_predicate_refuses_to_be_wrong() -> None:
    one = Constant("1", 1)
    for comparison, constants in (("=", ()), ("<", (one, one))):
        with pytest.raises(ValueError, match="constant"):
            Predicate("id", comparison, constants)  # type: ignore[arg-type]


# files ----------------------------------------------------------------------------------------------------------------

LAYOUT = Layout(SALES, 3)
NO_SLOTS = frozenset(name for name, _ in LAYOUT.columns if name[:5] in ("__vn2", "__op2", "__pre"))


def on(column: str, comparison: Comparison, *values: object) -> Predicate:
    return Predicate(column, comparison, tuple(Constant(repr(v), v) for v in values))  # type: ignore[arg-type]


@pytest.mark.conforms("Q18")
@pytest.mark.parametrize(
    ("predicate", "least", "greatest", "expected"),
    [
        (on("id", "=", 5), 1, 9, True),
        (on("id", "=", 5), 6, 9, False),
        (on("id", "=", 5), 1, 4, False),
        (on("id", "=", 0, 5, 20), 6, 9, False),
        (on("id", "=", 0, 7, 20), 6, 9, True),
        (on("id", "<", 5), 5, 9, False),
        (on("id", "<=", 5), 5, 9, True),
        (on("id", ">", 5), 1, 5, False),
        (on("id", ">=", 5), 1, 5, True),
        (on("id", ">", Decimal("4.5")), 1, 5, True),
        (on("id", "=", 5), None, 4, False),
        (on("id", "=", 5), None, None, True),
        (on("id", "=", 5), "6", True, True),
        (on("city", "=", "Oslo"), "Bergen", "Moss", False),
        (on("city", "=", "Oslo"), "Bergen", "Voss", True),
        (on("city", "=", "Oslofjord"), "Bergen", "Oslo", True),
        (on("city", ">", "Oslo"), "Bergen", "Oslo", True),
        (on("city", ">", "Oslp"), "Bergen", "Oslo", False),
        (on("city", "<", "Bergen"), "Bergen", "Oslo", False),
        (on("city", "=", "ø"), "a", "z", False),
        (on("price", "<", Decimal("1.50")), 1.5, 3.0, False),
        (on("price", "<", Decimal("1.50")), Decimal("1.49"), None, True),
        (on("price", "=", 7), "6.99", "7.01", True),
        (on("price", ">", 7), 1, 2, False),
        (on("price", ">", 12345678901234567), None, 1.2345678901234567e16, True),
        (on("price", ">", 7), float("nan"), float("nan"), True),
        (on("price", ">", 7), "x", "x", True),
        (on("day", "=", date(2026, 1, 31)), "2026-02-01", "2026-02-28", False),
        (on("day", "=", date(2026, 1, 31)), date(2026, 1, 1), date(2026, 2, 28), True),
        (on("day", "=", "2026-01-31"), "2026-02-01", "2026-02-28", False),
        (on("day", "<", date(2026, 1, 31)), "+12026-02-01", None, True),
        (on("at", ">", datetime(2026, 1, 3)), None, "2026-01-01T00:00:00.000Z", False),
        (on("at", ">", datetime(2026, 1, 3)), None, "2026-01-02T12:00:00.000Z", True),
        (on("at", "<", datetime(2026, 1, 3)), datetime(2026, 1, 3, 20, tzinfo=UTC), None, True),
        (on("at", "<", datetime(2026, 1, 3)), datetime(2026, 1, 4, 20, tzinfo=UTC), None, False),
        (on("at", "<", datetime(2026, 1, 3)), datetime.max, datetime.max, True),
        (on("at", "<", datetime(2026, 1, 3)), None, datetime.max, True),
        (on("at", "<", datetime(2026, 1, 3)), "soon", 5, True),
        (on("weight", ">", 5), 1.0, 2.0, True),
    ],
)
def test_one_column_of_one_file(predicate: Predicate, least: object, greatest: object, expected: bool) -> None:
    minimum, maximum = {predicate.column: least}, {predicate.column: greatest}
    assert may_match([predicate], LAYOUT, minimum, maximum, all_null=NO_SLOTS | {"__vn1"}) is expected


@pytest.mark.conforms("Q18")
def test_an_updatable_column_prunes_on_current_or_previous() -> None:
    predicate = [on("amount", "=", 7)]
    low, high = {"amount": 10, "__vn1": 3}, {"amount": 20, "__vn1": 5, "__op1": 2}
    empty = {"__vn2", "__op2", "__pre2_amount"}
    pre_low, pre_high = {"__pre1_amount": 1}, {"__pre1_amount": 9}
    assert not may_match(predicate, LAYOUT, low, high, all_null=empty | {"__pre1_amount"})
    assert may_match(predicate, LAYOUT, low, high, all_null=empty)
    assert may_match(predicate, LAYOUT, low | pre_low, high | pre_high, all_null=empty)
    assert may_match(predicate, LAYOUT, low | pre_low, high | pre_high, all_null=empty, session_vn=4)
    assert not may_match(predicate, LAYOUT, low | pre_low, high | pre_high, all_null=empty, session_vn=5)
    assert not may_match(predicate, LAYOUT, low, high | {"__op1": 1}, all_null=empty, session_vn=4)
    assert may_match(predicate, LAYOUT, low, high)


@pytest.mark.conforms("Q18")
def test_the_newest_slot_bounds_the_older_ones() -> None:
    """Even where nothing says that slot 2 is empty: its tupleVN is less than that of slot 1."""
    predicate = [on("amount", "=", 7)]
    low, high = {"amount": 10, "__pre1_amount": 10}, {"amount": 20, "__pre1_amount": 20, "__vn1": 5}
    assert [may_match(predicate, LAYOUT, low, high, session_vn=s) for s in (3, 4, 5)] == [True, False, False]


@pytest.mark.conforms("Q18")
@pytest.mark.conforms("Q11")
def test_a_file_with_an_expired_tuple_is_always_read() -> None:
    predicate = [on("amount", "=", 7)]
    low = {"amount": 10, "__pre1_amount": 10, "__pre2_amount": 10, "id": 1}
    high = {"amount": 20, "__pre1_amount": 10, "__pre2_amount": 10, "__vn1": 9, "__vn2": 8, "__op1": 2, "id": 5}
    assert not may_match(predicate, LAYOUT, low, high, session_vn=7)
    assert may_match(predicate, LAYOUT, low, high, session_vn=6)
    assert not may_match([*predicate, on("id", "=", 6)], LAYOUT, low, high, session_vn=6)  # key values never change


@pytest.mark.conforms("Q18")
def test_row_groups_are_skipped_by_what_the_predicates_imply() -> None:
    predicates = [on("amount", ">", 10), on("id", "=", 1)]
    condition = implied(predicates, LAYOUT, 4, Facts((6, 5), 3))
    assert condition is not None
    assert spark_text(condition) == "`amount` > 10 OR `__pre1_amount` > 10 OR `__pre2_amount` > 10"
    assert spark_text(implied(predicates, LAYOUT, 4, Facts((6, 4), 3)) or exp.null()).count("__pre") == 1
    assert implied(predicates, LAYOUT, 6, Facts((6, 5), 3)) is None
    exact = implied(predicates, LAYOUT, 3, Facts((6, 5), 3), "tuple")
    assert exact is not None
    assert spark_text(exact).endswith(" OR `__vn2` > 4) AND `id` = 1")  # before the check that stops the query
    text = spark_text(reading(LAYOUT, 4, Facts((6, 5), 3), exp.to_table("t"), None, predicates=predicates))
    assert "WHERE (`__t`.`amount` > 10 OR `__t`.`__pre1_amount` > 10 OR `__t`.`__pre2_amount` > 10) AND CASE" in text


# random histories -----------------------------------------------------------------------------------------------------

PREDICATES = st.builds(
    lambda column, comparison, value: on(column, comparison, value),
    st.sampled_from(KEYED.names),
    st.sampled_from(["=", "<", "<=", ">", ">="]),
    st.integers(-1, 4),
)
HOLDS = {
    "=": lambda x, y: x == y,
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
}


def holds(predicate: Predicate, row: dict[str, object]) -> bool:
    value = row[predicate.column]
    return value is not None and bool(HOLDS[predicate.comparison](value, predicate.constants[0].value))  # type: ignore[operator]


@pytest.mark.conforms("Q18")
@settings(max_examples=40, deadline=None)
@given(histories(KEYED), st.lists(PREDICATES, min_size=1, max_size=3))
def test_no_tuple_that_counts_is_skipped(drawn: tuple[Layout, list[Transaction]], predicates: list[Predicate]) -> None:
    """One tuple is one file here: the tightest statistics there can be."""
    layout, transactions = drawn
    history = History(layout)
    for transaction in transactions:
        history.run(transaction)
    for key, tuple_ in history.tuples.items():
        row = physical(layout, key, tuple_)
        known = {name: value for name, value in row.items() if value is not None}
        null = [name for name, value in row.items() if value is None]
        matched = False
        for s in range(1, history.current_vn + 1):
            values = read(tuple_, s)
            logical = dict(zip(layout.fixed, tuple_.fixed, strict=True))
            if isinstance(values, tuple):
                logical |= dict(zip(layout.updatable, values, strict=True))
            counts = values is not Unread.IGNORE and all(holds(p, logical) for p in predicates if p.column in logical)
            matched |= counts and values is not Unread.EXPIRED
            assert counts <= may_match(predicates, layout, known, known, all_null=null, session_vn=s)
        assert matched <= may_match(predicates, layout, known, known, all_null=null)
        assert matched <= may_match(predicates, layout, known, known)


@pytest.mark.conforms("Q18")
@settings(max_examples=20, deadline=None)
@given(histories(KEYED), st.lists(PREDICATES, min_size=1, max_size=2))
def test_what_is_implied_changes_no_answer(
    drawn: tuple[Layout, list[Transaction]], predicates: list[Predicate]
) -> None:
    layout, transactions = drawn
    history = History(layout)
    for transaction in transactions:
        history.run(transaction)
    register_stored(layout, history.rows())
    facts = history.facts()
    where = [f'"{p.column.replace(chr(34), chr(34) * 2)}" {p.comparison} {p.constants[0].sql}' for p in predicates]
    for s in range(1, history.current_vn + 1):
        if not table_expired(s, facts, layout):
            found = [
                fetch(f"SELECT * FROM ({query}) WHERE {' AND '.join(where)} ORDER BY ALL")
                for query in (read_at(layout, s, facts, ()), read_at(layout, s, facts, predicates))
            ]
            assert found[0] == found[1]


def read_at(layout: Layout, s: int, facts: Facts, predicates: list[Predicate] | tuple[()]) -> str:
    stored, overlay = exp.to_table("stored"), exp.to_table("overlay")
    query = reading(layout, s, facts, stored, overlay, hide="not_exists", predicates=predicates, dialect="duckdb")
    return query.sql("duckdb")
