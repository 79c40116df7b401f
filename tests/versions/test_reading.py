"""The rewrite, run in DuckDB over stored tuples of random histories, reads every version as it was."""

from collections import Counter
from dataclasses import replace

import duckdb
import pytest
from hypothesis import given, settings
from sqlglot import exp

from matview.algebra.schema import Column, Schema
from matview.versions.decide import read
from matview.versions.expiry import table_expired
from matview.versions.facts import BROADCAST_ROWS, Facts
from matview.versions.layout import LEVEL, RID, Layout
from matview.versions.rewrite import reading
from matview.versions.text import spark_text
from matview.versions.tuples import Unread

from .model import BAG, KEYED, History, Transaction, facts_of, fetch, histories, register_stored

STORED, OVERLAY = exp.to_table("stored"), exp.to_table("overlay")


def rows_at(layout: Layout, s: int, facts: Facts, **options: object) -> Counter[object]:
    query = reading(layout, s, facts, STORED, OVERLAY, hide="not_exists", dialect="duckdb", **options)  # type: ignore[arg-type]
    return Counter(fetch(query.sql("duckdb")))


def expected(history: History, s: int) -> Counter[object]:
    rows: Counter[object] = Counter()
    for key, values in history.logical[s].items():
        rows[key if history.layout.schema.is_bag else key + values] = values[0] if history.layout.schema.is_bag else 1  # type: ignore[assignment]
    return rows


@pytest.mark.conforms("Q9")
@pytest.mark.conforms("Q11")
@pytest.mark.conforms("Q12")
@settings(max_examples=25, deadline=None)
@given(histories(KEYED, BAG))
def test_every_version_reads_as_it_was(drawn: tuple[Layout, list[Transaction]]) -> None:
    layout, transactions = drawn
    history = History(layout)
    for transaction in transactions[:-1]:
        history.run(transaction)
    history.store(history.hold(transactions[-1], history.current_vn + 1), history.current_vn + 1, fold=False)
    register_stored(layout, history.rows())
    for s in range(1, history.current_vn + 1):
        facts = history.facts()
        if not table_expired(s, facts, layout):
            assert rows_at(layout, s, facts) == expected(history, s)
            assert rows_at(layout, s, Facts.unknown(layout)) == expected(history, s)
        elif any(read(t, s) is Unread.EXPIRED for t in history.tuples.values()):
            with pytest.raises(duckdb.InvalidInputException, match="MV301"):
                rows_at(layout, s, facts, grain="tuple")
        else:
            assert rows_at(layout, s, facts, grain="tuple") == expected(history, s)


SMALL = Layout(Schema((Column("k", "int"), Column("v", "int")), key=("k",)), 3)


def tuple_row(level: str = "base", **columns: object) -> dict[str, object]:
    return dict.fromkeys(name for name, _ in SMALL.columns) | {LEVEL: level} | columns


def test_a_void_tuple_is_seen_at_no_version_and_hides_what_is_below() -> None:
    rows = [
        tuple_row(__rid=1, k=1, v=1, __vn1=2, __op1=1),
        tuple_row("overlay", __rid=1, k=1, v=1, __vn1=5, __op1=3, __pre1_v=1, __vn2=2, __op2=1),
        tuple_row("overlay", __rid=1, k=1, v=1, __vn1=6, __op1=4, __vn2=5, __op2=3, __pre2_v=1),
        tuple_row(__rid=2, k=2, v=2, __vn1=2, __op1=1),
    ]
    register_stored(SMALL, rows)
    for s in range(2, 8):
        assert rows_at(SMALL, s, facts_of(SMALL, rows), grain="tuple") == Counter([(2, 2)])


def test_a_revived_tuple_is_read_through_its_deletion_though_every_last_change_is_an_insert() -> None:
    rows = [
        tuple_row(__rid=1, k=1, v=9, __vn1=5, __op1=1, __vn2=4, __op2=3, __pre2_v=7),
        tuple_row(__rid=2, k=2, v=2, __vn1=5, __op1=1),
    ]
    register_stored(SMALL, rows)
    found = {s: sorted(rows_at(SMALL, s, facts_of(SMALL, rows))) for s in (3, 4, 5)}  # type: ignore[type-var]
    assert found == {3: [(1, 7)], 4: [], 5: [(1, 9), (2, 2)]}


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        (Facts((4, 3), 2), "SELECT `__t`.`k` AS `k`, `__t`.`v` AS `v` FROM stored AS __t"),
        (Facts((4, 3), 3), "SELECT `__t`.`k` AS `k`, `__t`.`v` AS `v` FROM stored AS __t WHERE `__t`.`__op1` <> 3"),
        (
            Facts((4, 3), 4),
            "SELECT `__t`.`k` AS `k`, `__t`.`v` AS `v` FROM stored AS __t WHERE `__t`.`__op1` IN (1, 2)",
        ),
        (Facts((5, 0), 1), "SELECT `__t`.`k` AS `k`, `__t`.`v` AS `v` FROM stored AS __t WHERE `__t`.`__vn1` <= 4"),
        (
            Facts((5, 4), 3),
            "SELECT `__t`.`k` AS `k`, CASE WHEN `__t`.`__vn1` > 4 THEN `__t`.`__pre1_v` ELSE `__t`.`v` END AS `v` "
            "FROM stored AS __t WHERE CASE WHEN `__t`.`__vn1` > 4 THEN `__t`.`__op1` <> 1 ELSE `__t`.`__op1` <> 3 END",
        ),
        (
            Facts((4, 3), 2, has_overlay=True),
            "SELECT /*+ BROADCAST(__o) */ CASE WHEN `__o`.`__rid` IS NULL THEN `__t`.`k` ELSE NULL END AS `k`, "
            "CASE WHEN `__o`.`__rid` IS NULL THEN `__t`.`v` ELSE NULL END AS `v` FROM stored AS __t LEFT JOIN overlay "
            "AS __o ON `__t`.`__rid` = `__o`.`__rid` AND (`__t`.`__level` = 'base' OR `__o`.`__vn1` > `__t`.`__vn1`) "
            "WHERE `__o`.`__rid` IS NULL",
        ),
    ],
    ids=["nothing later", "some deleted", "some void", "only inserts", "slot 1 later", "overlay"],
)
def test_what_the_facts_rule_out_is_left_out(facts: Facts, text: str) -> None:
    assert spark_text(reading(SMALL, 4, facts, STORED, OVERLAY)) == text


@pytest.mark.parametrize(("rows", "hinted"), [(BROADCAST_ROWS, True), (BROADCAST_ROWS + 1, False)])
def test_only_a_small_overlay_is_sent_everywhere(rows: int, hinted: bool) -> None:
    facts = Facts((4, 3), 2, has_overlay=True, overlay_rows=rows)
    assert ("BROADCAST" in spark_text(reading(SMALL, 4, facts, STORED, OVERLAY))) is hinted


@pytest.mark.conforms("Q11")
def test_exact_expiry_stands_before_the_branches_that_would_read_wrongly() -> None:
    facts = Facts((9, 8), 4)
    text = spark_text(reading(SMALL, 4, facts, STORED, None, grain="tuple"))
    where = text[text.index("WHERE") :]
    assert where.startswith(
        "WHERE CASE WHEN `__t`.`__op1` = 4 THEN FALSE WHEN `__t`.`__vn2` > 5 THEN CAST(RAISE_ERROR("
    )
    assert "MV301" in where
    assert "RAISE_ERROR" not in spark_text(reading(SMALL, 7, facts, STORED, None, grain="tuple"))
    assert "ERROR" not in reading(SMALL, 4, facts, STORED, None, grain="tuple", dialect="postgres").sql("postgres")


def test_a_bag_is_expanded_only_where_rows_may_repeat() -> None:
    bag = Layout(BAG, 2)
    once = Facts((3,), 1)
    assert "EXPLODE" not in spark_text(reading(bag, 3, once, STORED, None))
    twice = replace(once, greatest_count=2)
    assert spark_text(reading(bag, 3, twice, STORED, None)) == (
        "SELECT `__t`.`größe.m` AS `größe.m` FROM stored AS __t "
        "LATERAL VIEW EXPLODE(ARRAY_REPEAT(0, CAST(`__t`.`__count` AS INT))) __r AS __i"
    )
    assert "GENERATE_SERIES(1" in reading(bag, 3, twice, STORED, None, dialect="postgres").sql("postgres")


def test_facts_of_another_number_of_versions_are_refused() -> None:
    with pytest.raises(ValueError, match="slots"):
        reading(SMALL, 4, Facts((4,)), STORED, None)


@pytest.mark.parametrize("wrong", [((), 1, 1), ((-1,), 1, 1), ((1,), 5, 1), ((1,), 1, -1)])
def test_facts_refuse_to_be_wrong(wrong: tuple[tuple[int, ...], int, int]) -> None:
    with pytest.raises(ValueError, match=r"bound|operation|count"):
        Facts(wrong[0], wrong[1], False, wrong[2])


def test_names_of_the_tuples_relation_are_kept_apart_from_the_users() -> None:
    nested = exp.select("*").from_("files")
    text = spark_text(reading(SMALL, 4, Facts((4, 4), 1), nested, None))
    assert text.endswith("FROM (SELECT * FROM files) AS __t")
    assert RID not in text
