"""What is too deep, too much or not known for Python is for Spark to compute; nothing else is raised."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from sqlglot import exp, parse_one

import matview
from matview.local import relations
from matview.local.kinds import FOR_SPARK, UNKNOWN, Kind, NotLocal
from matview.local.relations import Rows, _grouped, _joined, _outer, _semi
from matview.local.scalars import Scope, scalar
from matview.storage.values import column_of

A, D, INT = "a", "d", Kind("int")
SCOPE = Scope.of((A, D), (INT, Kind("decimal", 30, 10)))


def parsed(text: str) -> exp.Expr:
    return parse_one(text, dialect="spark")


def value(text: str, a: int | None) -> object:
    return scalar(parsed(text), SCOPE).of((a, None))


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


def test_many_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relations, "MOST_PAIRS", 900)
    many = [(1, n) for n in range(31)]
    left, right = Rows(("k", "x"), (INT, INT), many), Rows(("j", "y"), (INT, INT), many)
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
    given = Rows(("k", "n"), (UNKNOWN, INT), [(nan, 1), (float("nan"), 1), (-0.0, 1), (0.0, 1)])
    found = _grouped(given, ("k",), (("n", parsed("sum(n)")),))
    assert sorted(row[1] for row in found.rows) == [2, 2]


@pytest.mark.parametrize("value", [Decimal("1.5"), 1.5])
def test_no_number_is_cut_off(value: Any) -> None:
    with pytest.raises(NotLocal):
        column_of([1, value], pa.int32())
