"""INSERT, UPDATE, DELETE and MERGE on one table of a transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType
from sqlglot import exp

from matview.algebra.nodes import WEIGHT
from matview.errors import SqlSyntaxError, UnknownColumn
from matview.maintain.change import rows
from matview.maintain.change.assign import check_assignable, conformed
from matview.maintain.change.given import given
from matview.maintain.change.merge import (
    MergePlan,
    asked_of_target,
    assigned,
    columns_of,
    parsed,
    refuse_stored,
    signed_rows,
    weight_of,
)
from matview.maintain.change.stage import stage
from matview.maintain.change.staged import Staged
from matview.maintain.change.working import Counts, Working
from matview.sql import statements as st
from matview.sql.parse import place_of
from matview.storage.engine import relation_name
from matview.storage.query import Found
from matview.storage.snapshot import Level
from matview.versions import setwise
from matview.versions.layout import COUNT
from matview.versions.predicates import sargable
from matview.versions.pruning import current
from matview.versions.text import quoted, spark_text
from matview.versions.tuples import Operation

Run = Callable[[exp.Expr, Mapping[str, DataFrame]], DataFrame]
"""Runs a query in the transaction's own state; the names of the mapping are relations in hand."""


def insert_rows(working: Working, new: DataFrame) -> Counts:
    """New rows, whose columns are matched by name."""
    table = working.table
    conforming = conformed(new, table.schema, table.engine.struct(table.layout.columns))
    return stage(working, rows.inserted(working, conforming))


def insert(working: Working, statement: st.Insert, run: Run) -> Counts:
    names = statement.columns or working.table.schema.names
    source = run(statement.source, {})
    if len(source.columns) != len(names):
        raise SqlSyntaxError(
            f"{working.table.name} takes {len(names)} values here, {len(source.columns)} are given",
            where=place_of(statement.source),
            help=f"the columns are {', '.join(names)}",
        )
    return insert_rows(working, source.toDF(*names))


def delete(working: Working, statement: st.Delete, run: Run) -> Counts:
    refuse_stored(working, statement.alias, [statement.where])
    return _in_place(working, Operation.DELETE, {}, statement.alias, statement.where, run)


def update(working: Working, statement: st.Update, run: Run) -> Counts:
    new = assigned(working, statement.assignments)
    refuse_stored(working, statement.alias, [statement.where, *statement.assignments.values()])
    _check_types(working, statement, run)
    if set(new) <= set(working.table.layout.updatable):
        return _in_place(working, Operation.UPDATE, new, statement.alias, statement.where, run)
    return _as_delete_and_insert(working, statement, new, run)


def _as_delete_and_insert(working: Working, statement: st.Update, new: Mapping[str, str], run: Run) -> Counts:
    """An update of what names a tuple: its key, or any column of a bag. The old row goes, the new one comes."""
    relation, layout = relation_name(), working.table.layout
    kept = columns_of(working, statement.alias)
    weight = weight_of(working, statement.alias)
    condition = f"{setwise.live(layout, row=statement.alias)} AND ({_condition(statement.where)})"
    named = f"{relation} AS {quoted(statement.alias)}"
    select = signed_rows(named, condition, (f"-{weight}", kept), (weight, {**kept, **new}))
    changes = run(parsed(select), {relation: working.latest()})
    return stage(working, rows.applied(working, changes))


def _check_types(working: Working, statement: st.Update, run: Run) -> None:
    """Each value's type may go into its column; Spark tells the types, nothing runs."""
    relation, table = relation_name(), working.table
    values = [f"{spark_text(value)} AS v{i}" for i, value in enumerate(statement.assignments.values())]
    select = parsed(f"SELECT {', '.join(values)} FROM {relation} AS {quoted(statement.alias)}")
    found = run(select, {relation: table.tuples(())}).schema
    struct = table.engine.struct(table.layout.columns)
    for name, field in zip(statement.assignments, found.fields, strict=True):
        column = table.schema.column(name)
        assert column is not None
        check_assignable(field.dataType, struct[column.name].dataType, column.name)


def _condition(where: exp.Expr | None) -> str:
    return "TRUE" if where is None else spark_text(where)


def _in_place(
    working: Working, act: Operation, new: Mapping[str, str], alias: str, where: exp.Expr | None, run: Run
) -> Counts:
    relation = relation_name()
    select = parsed(rows.select_changed(working, act, new, relation, alias, _condition(where)))
    reference = next(t for t in select.find_all(exp.Table) if t.name == relation)
    table = working.table
    predicates = sargable(reference, table.schema)
    files = Found(table, working.current).files(predicates, working.vn)
    if not files:
        return Counts()
    changed = run(select, {relation: working.latest(files, spark_text(current(predicates)))})
    return stage(working, Staged(lambda: changed.hint("rebalance", 1), (Level.OVERLAY,), sum(f.rows for f in files)))


def delete_rows(working: Working, gone: DataFrame) -> Counts:
    """Rows to delete, each of which must be there: by the key alone, or with all their values."""
    table = working.table
    given = {name.casefold() for name in gone.columns}
    by_key = bool(table.schema.key) and given == {name.casefold() for name in table.schema.key}
    if not by_key and given != {name.casefold() for name in table.schema.names}:
        raise UnknownColumn(
            f"rows to delete from {table.name} need the columns {', '.join(table.schema.key or table.schema.names)}",
            help="give the key's columns, or all of the table's",
        )
    changes = _conforming(working, gone.withColumn(WEIGHT, F.lit(-1).cast("bigint")))
    return stage(working, rows.deleted_by_key(working, changes) if by_key else rows.applied(working, changes))


def apply_changes(working: Working, changes: DataFrame) -> Counts:
    """A signed bag: the table's columns, and `weight`, positive for rows that come and negative for rows that go.

    Where the table has a column of that name, the weight is called `__weight`; it may be anywhere.
    """
    weights = [WEIGHT] if working.table.schema.column("weight") is not None else [WEIGHT, "weight"]
    weight = next((name for name in changes.columns if name.casefold() in weights), None)
    if weight is None:
        raise UnknownColumn(f"changes need a column `{weights[-1]}`: how often a row comes (1) or goes (-1)")
    check_assignable(changes.schema[weight].dataType, LongType(), weight)
    weighted = changes.withColumnRenamed(weight, WEIGHT).withColumn(WEIGHT, F.expr(_whole(WEIGHT)))
    return stage(working, rows.applied(working, _conforming(working, weighted)))


def apply_captured(working: Working, changes: DataFrame) -> Counts:
    """The same, from a source: the weights are in `__weight`, and a column of the table may be called as it likes."""
    return stage(working, rows.applied(working, _conforming(working, changes)))


def fill(working: Working, new: DataFrame) -> Counts:
    """All rows of a table that has none yet; their keys are known to differ."""
    return stage(working, rows.filled(working, new))


def replace_rows(working: Working, new: DataFrame | None) -> Counts:
    """These rows instead of those that are there: what they have in common stays untouched."""
    names = [quoted(name) for name in working.table.schema.names]
    stored = working.latest().where(F.expr(setwise.live(working.table.layout)))
    times = COUNT if working.table.schema.is_bag else "1L"
    gone = stored.selectExpr(*names, f"-{times} AS {WEIGHT}")
    if new is None:
        return stage(working, rows.applied(working, gone))
    come = new.selectExpr(*names, f"1L AS {WEIGHT}")
    return stage(working, rows.applied(working, gone.unionByName(come)))


def _whole(weight: str) -> str:
    """The SQL of a weight; one that is no whole number fails."""
    name = quoted(weight)
    message = "[MV204] a weight of the changes is null or no whole number"
    return f"CASE WHEN {name} = floor({name}) THEN CAST({name} AS bigint) ELSE raise_error('{message}') END"


def _conforming(working: Working, changes: DataFrame) -> DataFrame:
    table = working.table
    return conformed(changes, table.schema, table.engine.struct(table.layout.columns), beside=(WEIGHT,))


def merge(working: Working, statement: st.Merge, run: Run) -> Counts:
    """Every clause gives signed rows; together they are one net change."""
    source = given(working, run(parsed(f"SELECT * FROM {spark_text(statement.source)}"), {})).rows
    refuse_stored(working, statement.alias, asked_of_target(statement), source.columns)
    live = working.latest().where(F.expr(setwise.live(working.table.layout)))
    plan = MergePlan(working, statement, relation_name(), relation_name(), relation_name(), tuple(source.columns))
    bound = {plan.target: live, plan.source: source}
    bound[plan.near] = given(working, run(parsed(plan.select_near()), bound)).rows
    changes = reduce(DataFrame.unionByName, (run(parsed(text), bound) for text in plan.selects()))
    return stage(working, rows.applied_hits(working, changes))
