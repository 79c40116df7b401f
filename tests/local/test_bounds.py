"""What is too deep, too much or not known for the driver is for Spark to compute; nothing else is raised."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from sqlglot import exp, parse_one
from tests.local.rows import batch_of, rows_of, values_of

import matview
from matview.local.kinds import BIGINT, FOR_SPARK, NULL, STRING, UNKNOWN, Kind, NotLocal
from matview.local.reach import MOST_PAIRS
from matview.local.relations import Rows, _grouped, _joined, _outer, _semi, repeated
from matview.local.scalars import Scope, scalar
from matview.maintain.change.beside import _stored

A, D, INT = "a", "d", Kind("int")
KINDS = (INT, Kind("decimal", 30, 10))
SCOPE = Scope.of((A, D), KINDS)


def parsed(text: str) -> exp.Expr:
    return parse_one(text, dialect="spark")


def value(text: str, a: int | None) -> object:
    (found,) = scalar(parsed(text), SCOPE).rows(batch_of(KINDS, [(a, None)])).to_pylist()
    return found


def test_long_lists_and_long_conditions() -> None:
    listed = ", ".join(map(str, range(1200)))  # more than Python nests
    assert value(f"a IN ({listed})", 1199) is True
    assert value(f"a IN ({listed})", 1200) is False
    assert value(f"a IN ({listed}, NULL)", 1200) is None
    assert value(f"a IN ({listed})", None) is None
    for word, last in (("AND", False), ("OR", True)):
        long = f" {word} ".join(f"a {'<>' if word == 'AND' else '='} {n}" for n in range(1200))
        assert (value(long, 1199), value(long, 1200), value(long, None)) == (last, not last, None)


def test_what_is_nested_deeply() -> None:
    with pytest.raises(FOR_SPARK):
        value(" + ".join(["a"] * 3000), 1)


@pytest.mark.parametrize("text", ["20200101", "2020-W01-1", "2020-1-1", "2020-01-01T00", "٢٠٢٠-01-01", "2020-02-30"])
def test_dates_in_other_spellings(text: str) -> None:
    for cast in ("CAST", "TRY_CAST"):
        with pytest.raises(NotLocal):
            scalar(parsed(f"{cast}('{text}' AS DATE)"), SCOPE)


def test_digits() -> None:
    assert scalar(parsed("-7 * d"), SCOPE).kind == Kind("decimal", 32, 10)
    with pytest.raises(NotLocal):
        scalar(parsed("-(7) * d"), SCOPE)  # rounded by Spark, which takes it for an INT
    assert scalar(parsed("0."), SCOPE).kind == Kind("decimal", 1, 0)


def test_many_pairs() -> None:
    many = [(1, n) for n in range(int(MOST_PAIRS**0.5) + 1)]
    left, right = rows_of(("k", "x"), (INT, INT), many), rows_of(("j", "y"), (INT, INT), many)
    on: list[exp.Expr] = [parsed("k = j"), parsed("x + y < 0")]
    for join in (_joined, _outer, lambda *given: _semi(*given, "semi")):
        with pytest.raises(NotLocal, match="pairs"):
            join(left, right, on)  # type: ignore[operator]


def test_views_of_such_expressions(spark: Any, tmp_path: Path) -> None:
    """Filled by Spark, then refreshed after one row."""
    listed = ", ".join(map(str, range(400)))
    with matview.open(tmp_path / "wh", spark=spark) as warehouse, warehouse.transaction() as tx:
        tx.sql("CREATE TABLE t (id INT, a INT, s STRING, PRIMARY KEY (id))")
        tx.sql("INSERT INTO t VALUES (1, 1, 'x'), (2, 200, 'y')")
        tx.sql(f"CREATE MATERIALIZED VIEW listed AS SELECT * FROM t WHERE a IN ({listed})")
        tx.sql(f"CREATE MATERIALIZED VIEW deep AS SELECT id, {' + '.join(['a'] * 300)} AS x FROM t")
        tx.sql(
            "CREATE MATERIALIZED VIEW branches AS "
            "SELECT CASE WHEN a > 100 THEN upper(s) ELSE s END AS k, count(*) AS n FROM t GROUP BY 1"
        )
        tx.commit()
        for statement in ("INSERT INTO t VALUES (3, 2, 'z')", "UPDATE t SET a = 300 WHERE id = 1"):
            warehouse.sql(statement)
            warehouse.refresh("listed", "deep", "branches")
            assert warehouse.audit() == {"branches": 0, "deep": 0, "listed": 0}


def test_groups_of_values_whose_type_is_not_known() -> None:
    """They may be floating numbers, of which zeros are alike and so are all that are none."""
    nan = float("nan")
    columns = pa.array([nan, -nan, -0.0, 0.0]), pa.array([1, 1, 1, 1], pa.int32())
    found = _grouped(Rows(("k", "n"), (UNKNOWN, INT), columns, 4), ("k",), (("n", parsed("sum(n)")),))
    assert found.column("n").to_pylist() == [2, 2]


def test_sums_that_do_not_fit() -> None:
    """Arrow does not say if a sum has overflowed."""
    great = Kind("decimal", 38, 0)
    told = (("s", parsed("sum(n)")), ("t", parsed("sum(m)")))
    most, digits = (1 << 63) - 1, Decimal(10**38 - 1)
    fits = rows_of(
        ("n", "m"), (BIGINT, great), [(1 << 61, digits), (-(1 << 61), digits.copy_negate()), (5, Decimal(7))]
    )
    assert values_of(_grouped(fits, (), told)) == [(5, Decimal(7))]
    for rows in ([(most, Decimal(0)), (1, Decimal(0))], [(0, digits), (0, Decimal(1))]):
        with pytest.raises(NotLocal):
            _grouped(rows_of(("n", "m"), (BIGINT, great), rows), (), told)


@pytest.mark.parametrize("text", ["d", "CAST(a AS DOUBLE)"])
def test_no_number_is_cut_off(text: str) -> None:
    one = scalar(parsed(text), SCOPE)
    with pytest.raises(NotLocal):
        _stored(one, batch_of(KINDS, [(1, Decimal("1.5"))]), pa.int32())


@pytest.mark.parametrize("digits", [36, 38])
def test_no_decimal_runs_out_of_bits_unnoticed(digits: int) -> None:
    """Arrow's own cast gives 0.097... for 3.5 in a DECIMAL(38,38), and says nothing."""
    for whole in range(1, 400):
        text = f"CAST({whole}.5 AS DECIMAL(38,{digits}))"
        if whole < 10 ** (38 - digits):
            assert value(text, 1) == Decimal(f"{whole}.5")
        else:
            with pytest.raises(NotLocal):
                value(text, 1)


@pytest.mark.parametrize("condition", ["NULL", "n", "x = y AND NULL"])
def test_a_condition_that_is_null(condition: str) -> None:
    left = rows_of(("x", "n"), (INT, NULL), [(1, None), (2, None)])
    right, on = rows_of(("y",), (INT,), [(1,)]), [parsed(condition)]
    assert (_joined(left, right, on).size, _outer(left, right, on).size) == (0, 2)
    assert (_semi(left, right, on, "semi").size, _semi(left, right, on, "anti").size) == (0, 2)


def test_more_text_than_a_column_has_room_for() -> None:
    long = Rows(("s",), (STRING,), (pa.array(["x" * (1 << 20)]),), 1)
    with pytest.raises(FOR_SPARK):
        repeated(long, pa.array([2100]))


def test_a_column_that_is_called_as_an_aggregate_might_be() -> None:
    given = rows_of(("a0", "d"), (INT, INT), [(2, 5)])
    with pytest.raises(NotLocal):
        _grouped(given, ("a0",), (("n", parsed("a0 + sum(d)")),))
