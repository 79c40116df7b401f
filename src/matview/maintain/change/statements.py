"""INSERT, UPDATE, DELETE and MERGE on one table of a transaction."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial, reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType
from sqlglot import exp

from matview.algebra.nodes import WEIGHT
from matview.errors import SqlSyntaxError, UnknownColumn
from matview.maintain.change import rows
from matview.maintain.change.assign import check_assignable, conformed
from matview.maintain.change.given import given
from matview.maintain.change.in_place import InPlace, Run
from matview.maintain.change.merge import (
    MergePlan,
    asked_of_target,
    assigned,
    columns_of,
    looked_up_near,
    parsed,
    refuse_random,
    refuse_stored,
    signed_rows,
    weight_of,
)
from matview.maintain.change.stage import stage
from matview.maintain.change.working import Counts, Working
from matview.maintain.change.written import written
from matview.sql import statements as st
from matview.sql.lower.functions import is_random
from matview.sql.parse import place_of
from matview.storage.engine import relation_name
from matview.versions import setwise
from matview.versions.layout import COUNT
from matview.versions.text import quoted, spark_text
from matview.versions.tuples import Operation


def insert_rows(working: Working, new: DataFrame) -> Counts:
    """New rows, whose columns are matched by name."""
    table = working.table
    conforming = conformed(new, table.schema, table.engine.struct(table.layout.columns))
    return stage(working, rows.inserted(working, conforming))


def insert(working: Working, statement: st.Insert, run: Run) -> Counts:
    names = statement.columns or working.table.schema.names
    if (here := written(working.table, names, statement.source)) is not None:
        return stage(working, rows.inserted_given(working, here))
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
    if working.table.schema.is_bag and _is_random(statement.where):
        return _as_delete_and_insert(working, statement, None, run)
    return InPlace(working, Operation.DELETE, {}, statement.alias, statement.where).run(run, lambda: None)


def update(working: Working, statement: st.Update, run: Run) -> Counts:
    new = assigned(working, statement.assignments)
    refuse_stored(working, statement.alias, [statement.where, *statement.assignments.values()])
    check = partial(_check_types, working, statement, run)
    if set(new) <= set(working.table.layout.updatable):
        return InPlace(working, Operation.UPDATE, new, statement.alias, statement.where).run(run, check)
    check()
    return _as_delete_and_insert(working, statement, new, run)


def _as_delete_and_insert(
    working: Working, statement: st.Update | st.Delete, new: Mapping[str, str] | None, run: Run
) -> Counts:
    """The old row goes; the new one, if there is one, comes: an update of a key, or of any column of a bag.

    Equal rows of a bag are one tuple, which is taken apart where chance may treat them differently.
    """
    relation, alias = relation_name(), statement.alias
    kept, weight = columns_of(working, alias), weight_of(working, alias)
    named = f"{relation} AS {quoted(alias)}"
    asked = [statement.where, *(statement.assignments.values() if isinstance(statement, st.Update) else ())]
    if working.table.schema.is_bag and any(map(_is_random, asked)):
        named, weight = f"(SELECT *, explode(sequence(1L, {COUNT})) AS __one FROM {relation}) AS {quoted(alias)}", "1L"
    condition = f"{setwise.live(working.table.layout, row=alias)} AND ({_condition(statement.where)})"
    comes = [] if new is None else [(weight, {**kept, **new})]
    select = signed_rows(named, condition, (f"-{weight}", kept), *comes)
    changes = run(parsed(select), {relation: working.latest()})
    return stage(working, rows.applied(working, changes))


def _is_random(expression: exp.Expr | None) -> bool:
    return expression is not None and is_random(expression)


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
    refuse_random(clause.condition for clause in statement.clauses)
    source = given(working, run(parsed(f"SELECT * FROM {spark_text(statement.source)}"), {}))
    refuse_stored(working, statement.alias, asked_of_target(statement), source.schema.names)
    plan = MergePlan(working, statement, relation_name(), relation_name(), relation_name(), tuple(source.schema.names))
    live, near = F.expr(setwise.live(working.table.layout)), looked_up_near(working, statement, source)
    bound = {plan.source: source.rows}
    if near is None or plan.reads_all:
        bound[plan.target] = working.latest().where(live)
    looked_at = bound[plan.target] if near is None else near.rows.where(live)
    bound[plan.near] = given(working, run(parsed(plan.select_near()), {**bound, plan.target: looked_at})).rows
    changes = reduce(DataFrame.unionByName, (run(parsed(text), bound) for text in plan.selects()))
    return stage(working, rows.applied_hits(working, changes))
