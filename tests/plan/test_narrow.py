"""Tables beside few known rows are narrowed to what these can meet; nothing else is."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

import pytest
from tests.queries.tables import schema_of

from matview.algebra.nodes import Change, Stored
from matview.algebra.passes import normalised
from matview.delta import change
from matview.plan.narrow import Values, among, narrowed
from matview.sql.lower import lower
from matview.sql.parse import parse_one
from matview.sql.render import query
from matview.versions.predicates import Kind


@dataclass(frozen=True)
class Case:
    name: str
    sql: str
    changed: str
    values: Values
    said: tuple[str, ...]
    """Conditions in the text of the change; none: it is as it was."""


CASES = [
    Case(
        "a join by its key",
        "SELECT o.amount, c.name FROM orders o JOIN customers c ON o.customer = c.id",
        "orders",
        frozenset({2, 1, None}),
        ("`id` IN (1, 2)",),
    ),
    Case(
        "a join against its key",
        "SELECT o.amount, c.name FROM orders o JOIN customers c ON o.customer = c.id",
        "customers",
        frozenset({7}),
        ("`customer` IN (7)",),
    ),
    Case(
        "nulls that meet nulls",
        "SELECT o.amount, v.n FROM orders o JOIN visits v ON o.city <=> v.city",
        "visits",
        frozenset({"Oslo", None}),
        ("`city` IN ('Oslo') OR `city` IS NULL",),
    ),
    Case(
        "no value, no row",
        "SELECT o.amount, c.name FROM orders o JOIN customers c ON o.customer = c.id",
        "orders",
        frozenset({None}),
        ("FALSE",),
    ),
    Case(
        "a range of many",
        "SELECT o.amount, c.name FROM orders o JOIN customers c ON o.customer = c.id",
        "orders",
        frozenset(range(-3, 400)),
        ("`id` >= -3 AND `id` <= 399",),
    ),
    Case(
        "no equality",
        "SELECT o.amount, c.name FROM orders o JOIN customers c ON o.customer < c.id",
        "orders",
        frozenset({1}),
        (),
    ),
    Case(
        "columns of different kinds",
        "SELECT o.amount, c.name FROM orders o JOIN customers c ON o.city = c.credit",
        "orders",
        frozenset({"1"}),
        (),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_narrowing(case: Case) -> None:
    node = normalised(lower(parse_one(case.sql).query, schema_of))
    delta = change(node, {case.changed})
    assert delta is not None

    def known(leaf: Change | Stored, name: str) -> Values | None:
        return case.values if isinstance(leaf, Change) else None

    text = query(narrowed(delta, known)).sql("spark")
    for condition in case.said:
        assert f"WHERE {condition}" in text or f"AND {condition}" in text or f"({condition})" in text, text
    if not case.said:
        assert text == query(delta).sql("spark")


def test_what_is_not_known_narrows_nothing() -> None:
    node = normalised(lower(parse_one(CASES[0].sql).query, schema_of))
    delta = change(node, {"orders"})
    assert delta is not None
    assert narrowed(delta, lambda leaf, name: None) == delta


@pytest.mark.parametrize(
    ("values", "kind", "text"),
    [
        (frozenset({dt.date(2024, 2, 1)}), Kind.DATE, "`c` IN (CAST('2024-02-01' AS DATE))"),
        (frozenset({"it's", "a\\b"}), Kind.STRING, "`c` IN ('a\\\\b', 'it\\'s')"),
        (frozenset({1.5}), Kind.FLOATING, None),
        (frozenset({"x" * 1000}), Kind.STRING, None),
        (frozenset({"${a}"}), Kind.STRING, "`c` IN ('${a}')"),
    ],
)
def test_conditions(values: Values, kind: Kind, text: str | None) -> None:
    condition = among("c", values, kind)
    assert (condition and condition.sql("spark")) == text
