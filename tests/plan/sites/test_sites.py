"""Who is asked what: one query for each site where that can be, and never for a whole table beside few rows."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from tests.algebra.fuzzing import EXAMPLES
from tests.delta.harness import bag, summed
from tests.plan.sites.asking import Asking
from tests.queries.cases import Loaded, Prepared
from tests.queries.tables import world

from matview.algebra.nodes import Change, Filter, Scan, Stored, parts
from matview.plan.cost import Estimates, TableFacts
from matview.plan.sites import MOST_SENT, Ask, Where, cut, located, question, stages
from matview.sources.sayable import sayable


@dataclass(frozen=True)
class Case:
    """A view, the sites of tables (others are in the warehouse), the tables that change, and who is asked, stage by
    stage."""

    sql: str
    sites: str
    changed: str
    stages: str

    @property
    def prepared(self) -> Prepared:
        return Prepared(self.sql, self.changed.split())

    @property
    def where(self) -> dict[str, str]:
        return dict(pair.split("@") for pair in self.sites.split())


ALL = "orders customers items visits"
CHAIN = (
    "SELECT v.day, c.name, o.amount, i.part FROM visits v JOIN customers c ON v.city = c.city "
    "JOIN orders o ON o.customer = c.id JOIN items i ON i.order_id = o.id"
)
STAR = (
    "SELECT o.id, c.name, i.part, v.n FROM orders o JOIN customers c ON o.customer = c.id "
    "JOIN items i ON i.order_id = o.id JOIN visits v ON v.city = o.city"
)
CYCLE = (
    "SELECT o.id, c.id AS other FROM orders o JOIN customers c ON o.customer = c.id "
    "JOIN visits v ON v.city = c.city AND v.city = o.city"
)
SELF = "SELECT a.id, b.id AS other FROM orders a JOIN orders b ON a.customer = b.customer WHERE a.amount > 1"
OUTER = "SELECT o.id, i.part FROM orders o LEFT JOIN items i ON i.order_id = o.id"
MISSING = "SELECT o.id FROM orders o WHERE NOT EXISTS (SELECT 1 FROM items i WHERE i.order_id = o.id)"
SUMMED = "SELECT c.city, max(o.amount) AS m FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.city"
UNITED = "SELECT city FROM orders WHERE id > 1 UNION ALL SELECT city FROM customers WHERE credit = 2"

CASES = {
    "all at one site": Case(CHAIN, "orders@e customers@e items@e visits@e", ALL, "e"),
    "a star at one site": Case(STAR, "orders@e customers@e items@e visits@e", ALL, "e"),
    "a cycle at one site": Case(CYCLE, "orders@e customers@e visits@e", "orders customers visits", "e"),
    "a table joined with itself": Case(SELF, "orders@e", "orders", "e"),
    "two tables of one site, two of another": Case(CHAIN, "visits@e customers@e orders@f items@f", ALL, "e, f, e"),
    "only the other one changes": Case(CHAIN, "visits@e customers@e orders@f items@f", "items", "f, e"),
    "sites take turns": Case(CHAIN, "visits@e customers@f orders@e items@f", "visits", "f, e, f"),
    "a site apart, the rest here": Case(CHAIN, "customers@e orders@e", ALL, "e"),
    "a site at both ends": Case(CHAIN, "visits@e items@e", "customers orders", "e"),
    "three sites, all change": Case(CYCLE, "orders@e customers@f visits@g", "orders customers visits", "e f g"),
    "a site called as the warehouse is in print": Case(CHAIN, "customers@dw orders@dw", ALL, "dw"),
    "an outer join at one site": Case(OUTER, "orders@e items@e", "orders items", "e"),
    "an outer join of two sites": Case(OUTER, "orders@e items@f", "orders items", "e, f"),
    "an outer join with a table here": Case(OUTER, "items@e", "orders items", "e"),
    "what is missing": Case(MISSING, "orders@e items@e", "orders items", "e"),
    "a greatest value": Case(SUMMED, "orders@e customers@e", "orders customers", "e"),
    "a union": Case(UNITED, "orders@e customers@f", "orders customers", ""),
    "nothing of it changes": Case(UNITED, "orders@e", "customers", ""),
}


@pytest.mark.conforms("M3", "M4", "M15")
@pytest.mark.parametrize("name", CASES)
def test_who_is_asked(name: str) -> None:
    case = CASES[name]
    prepared = case.prepared
    assert prepared.change is not None
    found = cut(prepared.change, Where(case.where, sayable))
    shown = ", ".join(" ".join(sorted(site for site, _ in stage)) for stage in stages(found.asks))
    assert shown == case.stages
    assert [ask for ask in found.asks if _is_whole(ask)] == [], "the changes lead to what is asked for"
    loaded = Loaded()
    for seed in range(EXAMPLES // 10):
        loaded.load(world(seed))
        asking = Asking(loaded.connection, prepared._name, case.where)
        told = summed((row[-1], row[:-1]) for row in asking.rows(prepared.change))  # type: ignore[misc]
        assert told == loaded.signed(prepared.change_sql or ""), seed


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("here", [False, True])
def test_many_changes_are_not_sent(name: str, *, here: bool) -> None:
    """Sites find what their own changes lead to; if they do not have these, they are asked for whole tables."""
    case = CASES[name]
    prepared = case.prepared
    assert prepared.change is not None
    changed = dict.fromkeys(case.changed.split(), MOST_SENT + 1)
    where = located(case.where, sayable, {}, changed, changed if here else ())
    found = cut(prepared.change, where)
    assert [ask.sent for ask in found.asks if ask.sent] == []
    leaves = [leaf for ask in found.asks for leaf in parts(ask.node)]
    assert not here or not any(isinstance(leaf, Change) for leaf in leaves)
    loaded = Loaded()
    for seed in range(EXAMPLES // 10):
        loaded.load(world(seed))
        asking = Asking(loaded.connection, prepared._name, case.where, where)
        told = summed((row[-1], row[:-1]) for row in asking.rows(prepared.change))  # type: ignore[misc]
        assert told == loaded.signed(prepared.change_sql or ""), seed


def test_many_changes_at_their_own_site() -> None:
    """What they are joined with there is not fetched whole."""
    for sql in (SELF, OUTER, MISSING, SUMMED):
        case = Case(sql, "orders@e customers@e items@e", "orders", "e")
        assert case.prepared.change is not None
        where = located(case.where, sayable, {}, {"orders": MOST_SENT + 1}, ())
        for ask in cut(case.prepared.change, where).asks:
            assert any(isinstance(leaf, Change) for leaf in parts(ask.node)), sql


def test_a_table_of_few_rows_leads_where_many_changes_do_not() -> None:
    case = Case("SELECT o.id, v.n FROM orders o JOIN visits v ON o.city = v.city", "orders@e", "visits", "")
    assert case.prepared.change is not None
    (ask,) = cut(case.prepared.change, located(case.where, sayable, {}, {"visits": MOST_SENT}, ())).asks
    assert ask.sent
    many = located(case.where, sayable, {}, {"visits": MOST_SENT + 1}, ())
    (ask,) = cut(case.prepared.change, many).asks
    assert _is_whole(ask)
    (ask,) = cut(case.prepared.node, located(case.where, sayable, {"visits": 1000}, {}, ())).asks
    assert ask.sent
    (ask,) = cut(case.prepared.node, many.sending_nothing(frozenset())).asks
    assert _is_whole(ask)


def _is_whole(ask: Ask) -> bool:
    """Nothing narrows what it reads."""
    return not any(isinstance(leaf, Change | Stored) for leaf in parts(ask.node))


def test_a_first_fill_asks_for_what_the_view_reads_and_no_more() -> None:
    case = Case(CHAIN + " WHERE c.credit = 2 AND upper(c.name) = 'ANN'", "visits@e customers@e orders@e", "items", "")
    found = cut(case.prepared.node, Where(case.where, sayable))
    (ask,) = found.asks
    read = {leaf.table: leaf.columns for leaf in parts(ask.node) if isinstance(leaf, Scan)}
    assert read == {
        "visits": ("city", "day"),
        "customers": ("id", "name", "city", "credit"),
        "orders": ("id", "customer", "amount"),
    }
    told = [node.condition.sql() for node in parts(ask.node) if isinstance(node, Filter)]
    assert told == ['"customers.credit" = 2'], "what the site can be told it is told, the rest is seen to here"


def test_a_small_table_is_looked_up() -> None:
    case = Case("SELECT o.id, v.n FROM orders o JOIN visits v ON o.city = v.city", "orders@e", "", "")
    (whole,) = cut(case.prepared.node, Where(case.where, sayable)).asks
    assert _is_whole(whole)
    (ask,) = cut(case.prepared.node, Where(case.where, sayable, frozenset({"visits"}))).asks
    assert [name for name, _ in ask.sent] == ["__keys_0_0"]


@pytest.mark.parametrize("text", [OUTER, MISSING, CHAIN])
def test_spark_is_not_told_that_an_answer_is_small(text: str) -> None:
    """However few rows its table had when it was added: what is sent to all is measured when it is there."""
    case = Case(text, "items@e", "", "")
    facts = {name: TableFacts(2 if name == "items" else 10**9, 0) for name in ALL.split()}
    node = Estimates(facts).arranged(case.prepared.node)
    found = cut(node, Where(case.where, sayable))
    assert found.asks
    for one in parts(found.node):
        sent = getattr(one, "sent", None)
        assert sent is None or not any(isinstance(leaf, Stored) for leaf in parts(one.inputs[sent]))


def test_names_are_short_on_the_way() -> None:
    """PostgreSQL cuts them off after 63 letters, MariaDB refuses more than 64."""
    long = "a" * 60
    inner = f"SELECT id, customer AS {long}c FROM orders"
    sql = f"SELECT o.id AS {long}, b.id AS {long}b FROM ({inner}) o JOIN orders b ON o.{long}c = b.id"
    change = Prepared(sql, ["orders"]).change
    assert change is not None
    found = cut(change, Where({"orders": "e"}, sayable))
    for _, asks in (one for stage in stages(found.asks) for one in stage):
        names = [name for node in parts(question(asks).node) for name in node.names]
        assert max(map(len, names)) <= 8


def test_a_site_sees_its_own_tables_only() -> None:
    """The tables of a site, what is sent along, and nothing of the warehouse or of another site: `Asking` looks."""
    prepared = CASES["two tables of one site, two of another"].prepared
    where = CASES["two tables of one site, two of another"].where
    loaded = Loaded()
    for seed in range(3):
        loaded.load(world(seed))
        asking = Asking(loaded.connection, prepared._name, where)
        assert bag(asking.rows(prepared.node)) == loaded.bag(prepared.new_sql)
        assert sorted(site for site, _ in asking.asked) == ["e", "f"]
