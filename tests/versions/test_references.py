"""Which names are tables, and queries with readings in their place: wherever a column stands (Q9)."""

from collections import Counter
from pathlib import Path

import pytest
from sqlglot import exp, parse_one

from matview.algebra.schema import Column, Schema
from matview.versions.facts import Facts
from matview.versions.layout import Layout
from matview.versions.pruning import sargable
from matview.versions.rewrite import reading, rewrite_query, table_references
from matview.versions.text import spark_text
from matview.versions.tuples import Operation

from .model import History, Step, Transaction, database, fetch, register, register_stored

FIXTURES = Path(__file__).parent / "fixtures"


def pairs(file: str) -> list[object]:
    """(query, rewritten) of a fixture file: blocks of a title and two statements."""
    found = []
    for block in (FIXTURES / file).read_text().strip().split("\n\n"):
        title, rest = block.removeprefix("-- ").split("\n", 1)
        query, rewritten, _ = (part.strip() for part in rest.split(";"))
        found.append(pytest.param(query, rewritten, id=title))
    return found


def titled(file: str) -> list[object]:
    lines = (FIXTURES / file).read_text().strip().split("\n")
    return [pytest.param(q, id=t.removeprefix("-- ")) for t, q in zip(lines[::2], lines[1::2], strict=True)]


def versioned(reference: exp.Table) -> exp.Expr:
    return exp.select("*").from_(exp.Table(this=reference.this.copy(), db=exp.to_identifier("v")))


@pytest.fixture(scope="module")
def tables() -> None:
    """The same tables three times: where the queries look, where the rewritten ones do, and qualified."""
    database().execute("CREATE SCHEMA v; CREATE SCHEMA shop")
    contents = {
        "sales": "(VALUES (1, 'Oslo', 3), (2, 'Voss', 1)) t(id, city, amount)",
        "cities": "(VALUES ('Oslo'), ('Moss')) t(city)",
        "odd": '(VALUES (1, 2, 3)) t("a b", "select", "x.y")',
    }
    for where in ("main", "v", "shop"):
        for name, rows in contents.items():
            database().execute(f"CREATE TABLE {where}.{name} AS SELECT * FROM {rows}")


@pytest.mark.conforms("Q9")
@pytest.mark.parametrize(("query", "rewritten"), pairs("references.sql"))
@pytest.mark.usefixtures("tables")
def test_each_reference_and_nothing_else_is_replaced(query: str, rewritten: str) -> None:
    before = parse_one(query, dialect="spark")
    after = rewrite_query(before, versioned)
    assert spark_text(after) == rewritten
    assert spark_text(before) == spark_text(parse_one(query, dialect="spark"))
    assert Counter(fetch(before.sql("duckdb"))) == Counter(fetch(after.sql("duckdb")))


@pytest.mark.conforms("Q9")
@pytest.mark.parametrize(("query", "rewritten"), pairs("references_spark.sql"))
def test_what_only_spark_has(query: str, rewritten: str) -> None:
    assert spark_text(rewrite_query(parse_one(query, dialect="spark"), versioned)) == rewritten


def test_a_reference_may_become_another_table_or_a_subquery() -> None:
    query = parse_one("SELECT sales.id FROM sales TABLESAMPLE (5 ROWS) JOIN shop.x AS y ON TRUE", dialect="spark")
    assert [t.sql() for t in table_references(query)] == ["sales TABLESAMPLE (5 ROWS)", "shop.x AS y"]
    table = rewrite_query(query, lambda t: exp.to_table(f"tmp_{t.name}"))
    assert spark_text(table) == "SELECT sales.id FROM tmp_sales TABLESAMPLE (5 ROWS) AS sales JOIN tmp_x AS y ON TRUE"
    shared = exp.select("1").subquery()
    both = rewrite_query(query, lambda _: shared)
    assert spark_text(both).count("(SELECT 1)") == 2


def test_what_a_reference_says_of_versions_is_for_replace_to_see() -> None:
    query = parse_one("SELECT * FROM sales VERSION AS OF 3", dialect="spark")
    seen: list[str] = []

    def replace(reference: exp.Table) -> exp.Expr:
        seen.append(reference.args["version"].expression.sql())
        return versioned(reference)

    assert spark_text(rewrite_query(query, replace)) == "SELECT * FROM (SELECT * FROM v.sales) AS sales"
    assert seen == ["3"]


# every position, over stored tuples ----------------------------------------------------------------------------------

INSERT, UPDATE, DELETE = Operation.INSERT, Operation.UPDATE, Operation.DELETE
SALES = Layout(
    Schema((Column("id", "int"), Column("city", "string"), Column("amount", "int")), key=("id",)),
    4,
)
VISITS = Layout(Schema((Column("shop", "int"),)), 4)

SALES_HISTORY = [
    [(INSERT, 1, ("Oslo", 10)), (INSERT, 2, ("Oslo", 12)), (INSERT, 3, ("Bergen", 7)), (INSERT, 4, (None, None))],
    [(UPDATE, 1, ("Oslo", 15)), (DELETE, 3, ()), (INSERT, 5, ("Voss", 11)), (UPDATE, 4, ("Voss", None))],
    [(INSERT, 3, ("Bergen", 12)), (UPDATE, 2, ("Bergen", 12)), (UPDATE, 2, (None, 3)), (DELETE, 5, ())],
    [(DELETE, 1, ()), (UPDATE, 3, ("Oslo", None)), (INSERT, 6, ("Oslo", 9)), (DELETE, 6, ())],
]
VISITS_HISTORY = [
    [(INSERT, 1, (2,)), (INSERT, 2, (1,))],
    [(UPDATE, 1, (1,)), (INSERT, 12, (3,))],
    [(DELETE, 2, ()), (UPDATE, 12, (4,))],
    [(INSERT, 2, (2,)), (DELETE, 1, ())],
]


SESSIONS = (2, 3, 4)  # version 1 has expired: row 3 has changed in 3, 4 and 5


def run(layout: Layout, steps: list[list[tuple[Operation, int, tuple[object, ...]]]]) -> History:
    """All but the last transaction commit; the last one is in the middle of its work."""
    history = History(layout)
    for transaction in steps[:-1]:
        history.run(Transaction(tuple(Step(*step) for step in transaction)))
    last = Transaction(tuple(Step(*step) for step in steps[-1]))
    history.store(history.hold(last, history.current_vn + 1), history.current_vn + 1, fold=False)
    return history


@pytest.fixture(scope="module")
def warehouse() -> dict[str, History]:
    found = {"sales": run(SALES, SALES_HISTORY), "visits": run(VISITS, VISITS_HISTORY)}
    for name, history in found.items():
        register_stored(history.layout, history.rows(), prefix=f"{name}_")
        columns = [(c.name, c.type) for c in history.layout.schema.columns]
        for s, relation in history.logical.items():
            register(f"{name}_at_{s}", columns, logical_rows(history, relation))
    return found


def logical_rows(history: History, relation: dict[tuple[object, ...], tuple[object, ...]]) -> list[dict[str, object]]:
    names = history.layout.schema.names
    if history.layout.schema.is_bag:
        return [dict(zip(names, key, strict=True)) for key, (count,) in relation.items() for _ in range(count)]  # type: ignore[call-overload]
    return [dict(zip(names, key + values, strict=True)) for key, values in relation.items()]


@pytest.mark.conforms("Q9")
@pytest.mark.conforms("Q18")
@pytest.mark.parametrize("query", titled("positions.sql"))
def test_every_position_reads_the_sessions_version(query: str, warehouse: dict[str, History]) -> None:
    parsed = parse_one(query, dialect="spark")
    ordered = "ORDER BY" in query and "OVER" not in query
    for s in SESSIONS:
        plain = rewrite_query(parsed, lambda t, s=s: exp.to_table(f"{t.name}_at_{s}"))  # type: ignore[misc]
        expected = fetch(plain.sql("duckdb"))
        for known in (True, False):
            found = fetch(at_version(parsed, warehouse, s, known=known).sql("duckdb"))
            assert found == expected if ordered else Counter(found) == Counter(expected)


def at_version(query: exp.Expr, warehouse: dict[str, History], s: int, *, known: bool) -> exp.Expr:
    """The query over stored tuples; with facts and predicates, or without."""

    def replace(reference: exp.Table) -> exp.Expr:
        history = warehouse[reference.name]
        return reading(
            history.layout,
            s,
            history.facts() if known else Facts.unknown(history.layout),
            exp.to_table(f"{reference.name}_stored"),
            exp.to_table(f"{reference.name}_overlay"),
            hide="not_exists",
            predicates=sargable(reference, history.layout.schema) if known else (),
            dialect="duckdb",
        )

    return rewrite_query(query, replace)


# Example 4.1 ----------------------------------------------------------------------------------------------------------

DAILY = Layout(
    Schema(
        (*(Column(c, "string") for c in ("city", "state", "product_line", "date")), Column("total_sales", "int")),
        key=("city", "state", "product_line", "date"),
    ),
    2,
)
FIGURE_4 = [
    (3, 1, "San Jose", "CA", "golf equip", "10/14/96", 10_000, None),
    (4, 1, "San Jose", "CA", "golf equip", "10/15/96", 1_500, None),
    (4, 2, "Berkeley", "CA", "racquetball", "10/14/96", 12_000, 10_000),
    (4, 3, "Novato", "CA", "rollerblades", "10/13/96", 8_000, 8_000),
]
QUERY = "SELECT city, state, SUM(total_sales) FROM DailySales GROUP BY city, state"
PAPER = """
    SELECT city, state, SUM(CASE WHEN :s >= __vn1 THEN total_sales ELSE __pre1_total_sales END) FROM stored
    WHERE (:s >= __vn1 AND __op1 <> 3) OR (:s < __vn1 AND __op1 <> 1) GROUP BY city, state
"""


@pytest.mark.conforms("Q9")
def test_example_4_1() -> None:
    names = ("__vn1", "__op1", *DAILY.schema.names, "__pre1_total_sales")
    rows = [dict(zip(names, line, strict=True)) | {"__rid": i, "__level": "base"} for i, line in enumerate(FIGURE_4)]
    register_stored(DAILY, rows)
    at_3 = rewrite_query(
        parse_one(QUERY), lambda _: reading(DAILY, 3, Facts((4,), 3), exp.to_table("stored"), None, dialect="duckdb")
    )
    assert spark_text(at_3) == (
        "SELECT city, state, SUM(total_sales) FROM (SELECT `__t`.`city` AS `city`, `__t`.`state` AS `state`, "
        "`__t`.`product_line` AS `product_line`, `__t`.`date` AS `date`, "
        "CASE WHEN `__t`.`__vn1` > 3 THEN `__t`.`__pre1_total_sales` ELSE `__t`.`total_sales` END AS `total_sales` "
        "FROM stored AS __t "
        "WHERE CASE WHEN `__t`.`__vn1` > 3 THEN `__t`.`__op1` <> 1 ELSE `__t`.`__op1` <> 3 END"
        ") AS DailySales GROUP BY city, state"
    )
    found = Counter(fetch(at_3.sql("duckdb")))
    assert found == Counter(fetch(PAPER.replace(":s", "3")))
    assert found == Counter([("San Jose", "CA", 10_000), ("Berkeley", "CA", 10_000), ("Novato", "CA", 8_000)])
