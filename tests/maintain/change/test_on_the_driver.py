"""Statements about few rows start no Spark job, and do what Spark would have done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from tests.counting import jobs

import matview
from matview.maintain.change import meeting
from matview.storage import few as few_rows
from matview.storage.lookup import looked_up

COLUMNS = "id BIGINT, n INT, city STRING, amount DECIMAL(9,2), day DATE, ok BOOLEAN, x DOUBLE, `odd.name` INT"


@pytest.fixture(scope="module")
def warehouse(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[matview.Warehouse]:
    with matview.open(tmp_path_factory.mktemp("driver") / "wh", spark=spark) as opened:
        yield opened


STATEMENTS = (
    "INSERT INTO few VALUES (1, 'Oslo', 1.5, DATE '2020-01-01'), (2, 'Rome', -2, NULL)",
    "INSERT INTO few (city, id) SELECT 'Bern', 3",
    "UPDATE few SET amount = amount + 1, city = 'Paris' WHERE id IN (1, 2)",
    "UPDATE few AS f SET f.day = '2021-02-03' WHERE F.City = 'Paris' AND amount > 2",
    "DELETE FROM few WHERE id = 2",
    "DELETE FROM few",
    "INSERT INTO bag VALUES (1, 'a'), (1, 'a'), (NULL, 'b')",
    "DELETE FROM bag WHERE s = 'a'",
)


def test_no_job(warehouse: matview.Warehouse) -> None:
    warehouse.sql("CREATE TABLE few (id BIGINT PRIMARY KEY, city STRING, amount DECIMAL(9,2), day DATE)")
    warehouse.sql("CREATE TABLE bag (n INT, s STRING)")
    assert {text: jobs(warehouse, lambda text=text: warehouse.sql(text)) for text in STATEMENTS} == dict.fromkeys(
        STATEMENTS, 0
    )
    assert [tuple(row) for row in warehouse.sql("SELECT * FROM bag").collect()] == [(None, "b")]
    assert warehouse.sql("SELECT count(*) FROM few").collect()[0][0] == 0


def test_rows_of_other_libraries(warehouse: matview.Warehouse) -> None:
    warehouse.sql("CREATE TABLE given (id BIGINT PRIMARY KEY, s STRING)")
    with warehouse.transaction() as tx:
        tx.insert("given", pa.table({"s": ["a", "b"], "id": [1, 2]}))
        tx.delete("given", pa.table({"id": [1]}))
        for rows in ("a.csv", None, [(1, "a")]):
            with pytest.raises(matview.errors.TypeMismatch, match=r"rows are a Spark DataFrame, a pyarrow Table or a"):
                tx.insert("given", rows)
    assert [tuple(row) for row in warehouse.sql("SELECT * FROM given").collect()] == [(2, "b")]


# as Spark does --------------------------------------------------------------------------------------------------------

_VALUES: dict[str, tuple[str, ...]] = {
    "id": ("1", "2", "3", "NULL", "9223372036854775807", "'x'"),
    "n": ("0", "-7", "n + 1", "2147483647", "n * n", "NULL", "3000000000", "CAST(id AS INT)", "1.5", "length(city)"),
    "city": ("'Oslo'", "''", "'it''s'", "NULL", "upper(city)", "CASE WHEN n > 0 THEN 'p' ELSE city END", "5"),
    "amount": ("1.25", "-amount", "amount * 3", "9999999.99", "1.555", "n", "NULL", "coalesce(amount, 0) + 0.5"),
    "day": ("DATE '2020-02-29'", "'2021-03-04'", "'20210304'", "NULL", "day", "'no day'"),
    "ok": ("TRUE", "n > 1", "NULL", "NOT ok", "city = 'Oslo' OR amount IS NULL"),
    "x": ("n", "x", "1.5D", "NULL", "1e300", "x * 2"),
    "odd.name": ("`odd.name` + 1", "4", "NULL"),
}
_CONDITIONS = (
    *(
        "id = 1",
        "id IN (2, 3)",
        "id = 2 AND n IS NULL",
        "city = 'Oslo'",
        "day = '2020-02-29'",
        "n >= 0",
        "amount < 2.5",
    ),
    *("ok", "NOT ok", "x > 1", "id = 1 OR n = 0", "day = DATE '2020-02-29' AND city <> 'Oslo'", "city LIKE 'O%'"),
    *("id = 1.0", "n = 3000000000", "id = '2'", "`odd.name` = 4", "T.id = 3", "EXISTS (SELECT 1 WHERE n = 1)"),
)


def some_statement(random: Random, keyed: bool) -> str:
    kind = random.choice(["insert", "insert", "update", "update", "update", "delete"])
    if kind == "insert":
        lines = [[random.choice(_plain(values)) for values in _VALUES.values()] for _ in range(random.randint(1, 2))]
        if keyed:
            lines = [[str(random.randint(1, 6)), *line[1:]] for line in lines]
        return "INSERT INTO t VALUES " + ", ".join(f"({', '.join(line)})" for line in lines)
    where = random.choice(_CONDITIONS)
    if kind == "delete":
        return f"DELETE FROM t WHERE {where}"
    set_ = random.sample([name for name in _VALUES if name != "id"], random.randint(1, 2))
    assigned = ", ".join(f"`{name}` = {random.choice(_VALUES[name])}" for name in set_)
    return f"UPDATE t SET {assigned} WHERE {where}"


def _plain(values: tuple[str, ...]) -> list[str]:
    """Those without columns."""
    names = ("n ", "n)", "city", "amount", "x ", "id", "odd", "ok")
    return [value for value in values if not any(name in f"{value} " for name in (*names, "day "))]


@pytest.mark.parametrize(("seed", "keyed"), [(1, True), (2, False)], ids=["keyed", "bag"])
def test_as_spark_does(seed: int, keyed: bool, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same statements, one warehouse with few rows on the driver, one without: the same rows, counts and errors."""
    random = Random(seed)
    texts = [some_statement(random, keyed) for _ in range(12)]
    outcomes = []
    for few in (20_000, -1):
        monkeypatch.setattr(few_rows, "FEW_ROWS", few)
        with matview.open(tmp_path / f"wh{few}", spark=spark) as warehouse:
            warehouse.sql(f"CREATE TABLE t ({COLUMNS}{', PRIMARY KEY (id)' if keyed else ''})")
            outcomes.append([outcome(warehouse, text) for text in texts])
    assert outcomes[0] == outcomes[1]


def outcome(warehouse: matview.Warehouse, text: str) -> object:
    """What a statement says, and what it leaves."""
    try:
        said: object = str(warehouse.sql(text)).split(" at version")[0]
    except matview.MatviewError as error:
        said = error.code
    return text, said, sorted(map(repr, warehouse.sql("SELECT * FROM t").collect()))


# chance ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def chance(warehouse: matview.Warehouse) -> Iterator[Callable[[str], object]]:
    """Runs statements about the tables k, with a key, and b, without, and gives a query's only value."""
    with warehouse.transaction() as tx:
        tx.sql("CREATE TABLE k (id BIGINT PRIMARY KEY, x DOUBLE, y DOUBLE, s VARCHAR(3), v STRING NOT NULL)")
        tx.sql("CREATE TABLE b (x STRING, y STRING)")
        tx.sql("INSERT INTO k SELECT id, 0, 0, '', '' FROM range(40)")
        tx.sql("INSERT INTO b SELECT '', '' FROM range(100)")
        yield lambda text: tx.sql(text).collect()[0][0] if text.startswith("SELECT") else tx.sql(text)
        tx.rollback()


def test_each_value_is_drawn_for_itself(chance: Callable[[str], object]) -> None:
    chance("UPDATE b SET x = uuid(), y = uuid()")
    assert chance("SELECT count(DISTINCT x) + count(DISTINCT y) + count_if(x = y) FROM b") == 200
    chance("UPDATE k SET id = id + 100, x = rand(), y = rand()")
    assert chance("SELECT count_if(x = y) FROM k") == 0


def test_what_is_checked_is_what_is_stored(chance: Callable[[str], object]) -> None:
    for _ in range(4):
        for text in ("v = CASE WHEN rand() < 0.98 THEN 'z' END", "s = repeat('x', CAST(rand() * 4.05 AS INT))"):
            with suppress(matview.errors.BadValue, matview.errors.NullKey):
                chance(f"UPDATE k SET {text}")
    assert chance("SELECT count_if(v IS NULL) + count_if(length(s) > 3) FROM k") == 0


def test_equal_rows_of_a_bag_have_chances_of_their_own(chance: Callable[[str], object]) -> None:
    chance("DELETE FROM b WHERE rand() < 0.5")
    assert 0 < int(str(chance("SELECT count(*) FROM b"))) < 100


def test_a_condition_of_a_merge_is_not_left_to_chance(chance: Callable[[str], object]) -> None:
    merge = "MERGE INTO k USING (SELECT id, rand() AS r FROM range(40)) AS s ON k.id = s.id WHEN MATCHED AND {} < 0.5"
    with pytest.raises(matview.errors.UnsupportedStatement, match=r"may be true for one column"):
        chance(merge.format("rand()") + " THEN UPDATE SET x = 1, y = 1")
    chance(merge.format("s.r") + " THEN UPDATE SET x = 1, y = 1")
    assert chance("SELECT count_if(x <> y) + 1000 * count(*) FROM k") == 40_000


# what is too much for it ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", ["n INT, s STRING", "n INT PRIMARY KEY, s STRING"], ids=["bag", "keyed"])
def test_weights_that_no_number_holds(columns: str, spark: Any, tmp_path: Path) -> None:
    """Added up without a look they would be nothing, and the change would be lost."""
    with matview.open(tmp_path / "wh", spark=spark) as opened:
        opened.sql(f"CREATE TABLE t ({columns})")
        many = pa.table({"n": pa.array([1] * 4, pa.int32()), "s": ["a"] * 4, "weight": [2**62] * 4})
        with pytest.raises(matview.MatviewError), opened.transaction() as tx:
            tx.apply("t", many)
        assert opened.sql("SELECT count(*) FROM t").collect()[0][0] == 0


def test_a_value_that_many_tuples_have(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are not brought here to meet one row."""
    brought: list[int | None] = []

    def counted(*arguments: Any) -> pa.Table | None:
        found = looked_up(*arguments)
        brought.append(None if found is None else found.num_rows)
        return found

    monkeypatch.setattr(meeting, "looked_up", counted)
    monkeypatch.setattr(meeting, "MOST_ROWS", 5)
    with matview.open(tmp_path / "wh", spark=spark) as opened:
        opened.sql("CREATE TABLE clicks (kind STRING, amount DECIMAL(10,2))")
        rows = ", ".join(f"('{'buy' if n else 'look'}', {n}.5)" for n in range(20))
        opened.sql(f"INSERT INTO clicks VALUES {rows}")
        brought.clear()
        opened.sql("INSERT INTO clicks VALUES ('look', 0.5)")
        opened.sql("INSERT INTO clicks VALUES ('buy', 1.5)")
        assert brought == [1, None]
        assert opened.sql("SELECT count(*) FROM clicks WHERE amount = 1.5").collect()[0][0] == 2
