"""An update that changes only what is added up stays one entry, not a delete and an insert (C17).

With g(r) what a row r adds to a state, an update from r to r' adds g(r') - g(r). The row that tells of it carries the
old values of the columns that changed beside the new ones, and goes through selections and joins once. That holds while
the changed columns are used in sums alone: not in a condition, not in a key.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from sqlglot import exp

from matview.algebra.nodes import OLD_SUFFIX, UPDATES, Filter, Join, Node, Project, Scan, transform, walk
from matview.algebra.scalars import column, columns_in, number, substituted
from matview.algebra.schema import Field
from matview.delta.derive import change
from matview.delta.signed import kept
from matview.plan.summary import State, Summary


def paired(summary: Summary, table: str, updated: Collection[str]) -> tuple[Summary, Node] | None:
    """The summary and the change of its input, when only `table` changes, and updates touch only `updated`.

    None where updates have to be told as pairs of rows.
    """
    core, outputs = _core(summary.aggregate.input)
    scans = [node for node in walk(core) if isinstance(node, Scan) and node.table == table]
    if len(scans) != 1 or summary.method != "additive":
        return None
    scan = scans[0]
    if any(name.endswith(OLD_SUFFIX) for name in scan.columns):
        return None  # a column of the user's own, which would be taken for an old value
    fields = {f.name for f, c in zip(scan.fields, scan.columns, strict=True) if c in updated}
    keys = [outputs[key] for key in summary.aggregate.keys]
    if not fields or not _only_read_above(core, fields) or any(columns_in(key) & fields for key in keys):
        return None
    moved = change(_with_old_values(core, scan, fields), {table})
    assert moved is not None
    given = dict(zip(summary.aggregate.keys, keys, strict=True))
    rows = Project(moved, (*given.items(), *kept(name for name in moved.names if name not in given)))
    old: dict[str, exp.Expr] = {name: column(name + OLD_SUFFIX) for name in fields}
    return replace(summary, states=tuple(_difference(state, outputs, old) for state in summary.states)), rows


def _core(input: Node) -> tuple[Node, dict[str, exp.Expr]]:
    """What is under the last projection, and what that gives."""
    if isinstance(input, Project):
        return input.input, dict(input.outputs)
    return input, {name: column(name) for name in input.names}


def _only_read_above(core: Node, fields: set[str]) -> bool:
    """Rows go through joins and selections, none of which looks at the fields."""
    for node in walk(core):
        match node:
            case Scan():
                continue
            case Filter(_, condition) if not columns_in(condition) & fields:
                continue
            case Join(_, on) if not any(columns_in(condition) & fields for condition in on):
                continue
        return False
    return True


def _with_old_values(core: Node, scan: Scan, fields: set[str]) -> Node:
    """The table as if it had the old values in columns of their own; only its change has."""
    old = [(c + OLD_SUFFIX, replace(f, name=f.name + OLD_SUFFIX, nullable=True)) for f, c in _pairs(scan, fields)]
    columns = (*scan.columns, *(c for c, _ in old), UPDATES)
    wide = Scan(scan.table, columns, (*scan.fields, *(f for _, f in old), Field(UPDATES, "int", False)), scan.key)
    return transform(core, lambda node: wide if node == scan else node)


def _pairs(scan: Scan, fields: set[str]) -> list[tuple[Field, str]]:
    return [(f, c) for f, c in zip(scan.fields, scan.columns, strict=True) if f.name in fields]


def _difference(state: State, outputs: dict[str, exp.Expr], old: dict[str, exp.Expr]) -> State:
    """sum(g) becomes sum(g' - g) for updates; where no changed column is in g, that is nothing."""
    new = substituted(state.gained.this, outputs)
    before = substituted(new, old)
    gained = number(0) if new == before else exp.paren(exp.Sub(this=_or_zero(new), expression=_or_zero(before)))
    is_update = exp.EQ(this=column(UPDATES), expression=number(1))
    return replace(state, gained=exp.Sum(this=exp.Case(ifs=[exp.If(this=is_update, true=gained)], default=new.copy())))


def _or_zero(value: exp.Expr) -> exp.Expr:
    return exp.Coalesce(this=value.copy(), expressions=[number(0)])
