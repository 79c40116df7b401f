"""How a table changed, read from the very files that the changes were written to: the table's log costs no copy.

A file of version v holds the tuples that v changed, each with what it was before:

    insert  + current        update  - previous, + current        delete  - previous        void  nothing

The changes of several versions are those from before the first of them to after the last.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from matview.algebra.nodes import OLD_SUFFIX, UPDATES, WEIGHT, own_column
from matview.storage.engine import relation_name
from matview.storage.snapshot import DataFile, Level
from matview.storage.table import VersionedTable
from matview.versions.layout import COUNT, RID, Layout
from matview.versions.text import quoted
from matview.versions.tuples import Operation

INSERT, UPDATE, DELETE = int(Operation.INSERT), int(Operation.UPDATE), int(Operation.DELETE)


def changes(table: VersionedTable, files: Sequence[DataFile], columns: Sequence[str]) -> DataFrame:
    """The signed bag of some columns' rows; an update that changes none of them is not in it."""
    if table.remote is not None and len(files) > 1:
        return _summed(_each(table, files, columns), columns)
    return _each(table, files, columns)


def _summed(signed: DataFrame, columns: Sequence[str]) -> DataFrame:
    """The log of a table that stays at its source tells of rows, not of tuples: what came and went cancels out."""
    summed = signed.groupBy(*map(quoted, columns)).agg(F.sum(WEIGHT).alias(WEIGHT))
    return summed.where(F.col(WEIGHT) != 0)


def _each(table: VersionedTable, files: Sequence[DataFile], columns: Sequence[str]) -> DataFrame:
    new = [f for f in files if f.level is Level.BASE]
    touched = [f for f in files if f.level is Level.OVERLAY]
    tuples = _net(table, new, touched, columns) if touched and len(files) > 1 else table.at_hand(files)
    if UPDATES in columns:
        return _select(table, tuples, _paired(table.layout, columns))
    return _select(table, tuples, (_signed if touched else _inserted)(table.layout, columns))


def _select(table: VersionedTable, tuples: DataFrame, query: str) -> DataFrame:
    name = relation_name()
    return table.engine.sql(query.replace("__relation", name), {name: tuples})


def _net(
    table: VersionedTable, new: Sequence[DataFile], touched: Sequence[DataFile], columns: Sequence[str]
) -> DataFrame:
    """Each tuple once, from what it was before all of the changes to what it is after them.

    A tuple may stand in several files: changed by several versions, or made and changed by one. What it was in between
    is nobody's business: no expression may be computed of it (C10).
    """
    layout, op = table.layout, table.layout.op(1)
    asked = {own_column(c, columns) for c in columns if c != UPDATES}
    kept = [c for c in layout.current if c in asked or c == COUNT]
    before = [layout.pre(1, c) for c in kept if c in layout.updatable]
    when = f"struct({layout.vn(1)}, __later)"
    first = f"min_by(struct({', '.join([op, *map(quoted, before)])}), {when}) AS f"
    last = f"max_by(struct({', '.join([op, *map(quoted, kept)])}), {when}) AS l"
    was, is_ = f"f.{op} IN ({UPDATE}, {DELETE})", f"l.{op} IN ({INSERT}, {UPDATE})"
    kind = (
        f"CASE WHEN {was} AND {is_} THEN {UPDATE} WHEN {is_} THEN {INSERT} WHEN {was} THEN {DELETE} "
        f"ELSE {int(Operation.VOID)} END AS {op}"
    )
    values = [f"l.{quoted(c)}" for c in kept] + [f"f.{quoted(c)}" for c in before]
    states = table.at_hand(touched).withColumn("__later", F.lit(1))
    if new:
        states = table.at_hand(new).withColumn("__later", F.lit(0)).unionAll(states)
    inner = f"SELECT {first}, {last} FROM __relation GROUP BY {RID}"
    return _select(table, states, f"SELECT {', '.join([kind, *values])} FROM ({inner})")


def _inserted(layout: Layout, columns: Sequence[str]) -> str:
    """Files of new tuples hold nothing but inserts."""
    weight = COUNT if layout.schema.is_bag else "1L"
    names = "".join(f"{quoted(c)}, " for c in columns)
    return f"SELECT {names}{weight} AS {WEIGHT} FROM __relation WHERE {layout.op(1)} = {INSERT}"


def _signed(layout: Layout, columns: Sequence[str]) -> str:
    op = layout.op(1)
    if layout.schema.is_bag:
        names = "".join(f"{quoted(c)}, " for c in columns)
        before = layout.pre(1, COUNT)
        weight = f"CASE {op} WHEN {INSERT} THEN {COUNT} WHEN {UPDATE} THEN {COUNT} - {before} ELSE -{before} END"
        return f"SELECT {names}{weight} AS {WEIGHT} FROM __relation WHERE {op} <= {DELETE}"
    new = ", ".join(f"{quoted(c)} AS c{i}" for i, c in enumerate(columns))
    old = ", ".join(f"{quoted(_before(layout, c))} AS c{i}" for i, c in enumerate(columns))
    comes = f"CASE WHEN {op} IN ({INSERT}, {UPDATE}) THEN 1L END AS w"
    goes = f"CASE WHEN {op} IN ({UPDATE}, {DELETE}) THEN -1L END AS w"
    rows = f"inline(array(struct({comes}{', ' * bool(new)}{new}), struct({goes}{', ' * bool(old)}{old})))"
    named = "".join(f"c{i} AS {quoted(c)}, " for i, c in enumerate(columns))
    matters = f"{op} <> {UPDATE}{_differing(layout, columns)}"
    inner = f"SELECT {rows} FROM __relation WHERE {op} <= {DELETE} AND ({matters})"
    return f"SELECT {named}w AS {WEIGHT} FROM ({inner}) WHERE w IS NOT NULL"


def _paired(layout: Layout, columns: Sequence[str]) -> str:
    """An update as one row, its old values beside the new; a row that goes has the values it had."""
    op = layout.op(1)
    own = [c for c in columns if c != UPDATES and not c.endswith(OLD_SUFFIX)]
    old = [c for c in columns if c.endswith(OLD_SUFFIX)]
    gone = f"{op} = {DELETE}"
    values = [f"CASE WHEN {gone} THEN {quoted(_before(layout, c))} ELSE {quoted(c)} END AS {quoted(c)}" for c in own]
    values += [f"{quoted(_before(layout, c.removesuffix(OLD_SUFFIX)))} AS {quoted(c)}" for c in old]
    values.append(f"CASE WHEN {op} = {UPDATE} THEN 1 ELSE 0 END AS {UPDATES}")
    values.append(f"CASE WHEN {gone} THEN -1L ELSE 1L END AS {WEIGHT}")
    matters = f"{op} <> {UPDATE}{_differing(layout, [c.removesuffix(OLD_SUFFIX) for c in old])}"
    return f"SELECT {', '.join(values)} FROM __relation WHERE {op} <= {DELETE} AND ({matters})"


def _differing(layout: Layout, columns: Sequence[str]) -> str:
    """Or some column that is asked for changed; what cannot be compared is taken to have changed."""
    updatable = [c for c in columns if c in layout.updatable]
    if any(_incomparable(layout.type_of(c)) for c in updatable):
        return " OR TRUE"
    return "".join(f" OR NOT ({quoted(c)} <=> {quoted(layout.pre(1, c))})" for c in updatable)


def _incomparable(kind: str) -> bool:
    return "map<" in kind.lower() or "variant" in kind.lower()


def _before(layout: Layout, name: str) -> str:
    return layout.pre(1, name) if name in layout.updatable else name
