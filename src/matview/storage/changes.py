"""How a table changed, read from the very files that the changes were written to: the table's log costs no copy.

A file of version v holds the tuples that v changed, each with what it was before:

    insert  + current        update  - previous, + current        delete  - previous        void  nothing
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from matview.algebra.nodes import OLD_SUFFIX, UPDATES, WEIGHT
from matview.storage.engine import relation_name
from matview.storage.snapshot import DataFile, Level
from matview.storage.table import VersionedTable
from matview.versions.layout import COUNT, Layout
from matview.versions.text import quoted
from matview.versions.tuples import Operation

INSERT, UPDATE, DELETE = int(Operation.INSERT), int(Operation.UPDATE), int(Operation.DELETE)


def changes(table: VersionedTable, files: Sequence[DataFile], columns: Sequence[str]) -> DataFrame:
    """The signed bag of some columns' rows; an update that changes none of them is not in it."""
    if UPDATES in columns:
        return _select(table, files, _paired(table.layout, columns))
    new = [f for f in files if f.level is Level.BASE]
    touched = [f for f in files if f.level is Level.OVERLAY]
    parts = []
    if new or not touched:
        parts.append(_select(table, new, _inserted(table.layout, columns)))
    if touched:
        parts.append(_select(table, touched, _signed(table.layout, columns)))
    return parts[0] if len(parts) == 1 else parts[0].unionAll(parts[1])


def _select(table: VersionedTable, files: Sequence[DataFile], query: str) -> DataFrame:
    name = relation_name()
    return table.engine.sql(query.replace("__relation", name), {name: table.at_hand(files)})


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
