"""Running relational expressions inside a maintenance transaction, and writing what they give."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame
from sqlglot import exp

from matview.algebra.nodes import WEIGHT, Change, Node, Scan, Stored, own_column, parts
from matview.algebra.schema import Field
from matview.delta.signed import difference
from matview.local.reach import MOST_ROWS
from matview.maintain.change import rows
from matview.maintain.change.given import Given, computed, given
from matview.maintain.change.held import Held
from matview.maintain.change.meeting import NEW as NEW_ROW
from matview.maintain.change.stage import stage
from matview.maintain.change.working import Counts, Working
from matview.maintain.context import Context
from matview.maintain.remote.tables import fetched, no_more_than_sent
from matview.maintain.views.at_hand import at_hand, given_rows
from matview.plan.definition import Part
from matview.plan.narrow import Values, narrowed
from matview.plan.steps import NEW, OLD, Apply, Merge
from matview.remembered import Remembered
from matview.sql.render import query
from matview.storage.changes import changes
from matview.storage.engine import relation, relation_name
from matview.storage.few import distinct_values
from matview.storage.snapshot import DataFile
from matview.versions import setwise
from matview.versions.text import quoted, spark_text

Changed = Mapping[str, tuple[DataFile, ...]]
"""For each table that changed, the files that hold its changed tuples."""


class Common:
    """Relations that several steps use, each computed once."""

    def __init__(self) -> None:
        self._relations: dict[str, Given] = {}
        self._held = Held()

    def add(self, name: str, context: Context, node: Node, changed: Changed) -> None:
        """Computed now, so that the plans that use it know its size."""
        found = _here(context, node, changed, self)
        if found is None:
            found = computed(context.runtime.engine, self._held, result(context, node, changed, self))
        if found.few is None:
            found.rows.count()
        self._relations[name] = found

    def __len__(self) -> int:
        return len(self._relations)

    def get(self, name: str) -> Given | None:
        return self._relations.get(name)

    def beside(self, answers: Mapping[str, Given]) -> Common:
        """These, and the answers of sources under their names."""
        made = Common()
        made._relations = {**self._relations, **answers}
        return made

    def let_go(self) -> None:
        self._held.let_go()


NOTHING_COMMON = Common()


def result(context: Context, node: Node, changed: Changed, common: Common = NOTHING_COMMON) -> DataFrame:
    """The rows of a node: tables in the transaction's own state, changes from the files that hold them.

    What it needs of tables that stay at their sources is asked for first, now.
    """
    node, common = _brought(context, node, changed, common)
    bound: dict[str, DataFrame] = {}
    node = narrowed(node, lambda leaf, column: _values(context, leaf, column, changed, common))

    def name(leaf: Scan | Change | Stored) -> exp.Table:
        match leaf:
            case Scan(table):
                return exp.Table(this=exp.to_identifier(table, quoted=True))
            case Change(scan):
                made = relation_name()
                bound[made] = changes(context.tables[scan.table].table, changed[scan.table], scan.columns)
                return relation(made)
            case Stored(view, fields):
                made = relation_name()
                shared = common.get(view)
                names = tuple(f.name for f in fields)
                bound[made] = _stored(context.tables[view], names) if shared is None else shared.rows
                return relation(made)

    return context.query(query(node, name), bound)


def _brought(context: Context, node: Node, changed: Changed, common: Common) -> tuple[Node, Common]:
    """The node over the answers of sources, where it reads tables that stay there."""
    remote = context.remote
    if not remote.reads(node):
        return node, common
    read = {leaf.table for leaf in parts(node) if isinstance(leaf, Scan)} - remote.sites.keys()
    rows = {name: sum(f.rows for f in context.tables[name].current.files) for name in read}
    counts = {name: sum(f.rows for f in files) for name, files in changed.items()}
    here = frozenset(name for name, files in changed.items() if not _is_of_now(context.tables[name], files))

    def compute(inner: Node, answers: Mapping[str, Given]) -> pa.Table:
        beside = common.beside(answers)
        here = _here(context, inner, changed, beside)
        if here is None or here.few is None:
            return fetched(result(context, inner, changed, beside))
        return no_more_than_sent(here.few)

    found, answers = remote.brought(node, remote.where(rows, counts, here), here, compute)
    return found, common.beside(answers)


def _is_of_now(working: Working, files: Sequence[DataFile]) -> bool:
    """The changes are those of this very transaction: then a source whose round it installs has them, too."""
    return {f.path for f in files} == {f.path for f in working.staged}


def _values(context: Context, leaf: Change | Stored, column: str, changed: Changed, common: Common) -> Values | None:
    """What few rows have in a column; changed ones before and after."""
    if isinstance(leaf, Stored):
        shared = common.get(leaf.view)
        return None if shared is None or shared.few is None else distinct_values(shared.few[column])
    table = context.tables[leaf.scan.table].table
    few = table.few(changed[leaf.scan.table])
    if few is None:
        return None
    own = own_column(leaf.scan.columns[leaf.scan.names.index(column)], leaf.scan.columns)
    stored = [own, table.layout.pre(1, own)] if own in table.layout.updatable else [own]
    return distinct_values(*(few[name] for name in stored))


def _stored(working: Working, names: tuple[str, ...]) -> DataFrame:
    """What a view holds, hidden columns included; a bag's rows as often as they are in it."""
    layout = working.table.layout
    live = working.latest().where(setwise.live(layout))
    columns = [quoted(name) for name in names]
    if layout.schema.is_bag:
        return live.selectExpr(*columns, "explode(array_repeat(0, CAST(`__count` AS INT))) AS __time").drop("__time")
    return live.selectExpr(*columns)


def filled(context: Context, working: Working, part: Part, expected: float = math.inf) -> Counts:
    """The whole contents of a table that is new, about so many rows."""
    return stage(working, rows.filled(working, result(context, part.full, {}), expected))


def rebuilt(context: Context, working: Working, part: Part, expected: float) -> Counts:
    """Everything anew: in a new table under the same name, or, where others follow its changes, as a difference."""
    if working.logged or working.staged:
        stored = Stored(part.name, tuple(Field(c.name, c.type) for c in working.table.schema.columns))
        return applied(context, working, Apply(difference(part.full, stored)), {})
    new = context.tables.replace(working)
    assert new.view is not None
    context.notes.views[new.table.id] = new.view
    for hidden in context.tables.owned(working.table.id):
        assert hidden.view is not None
        hidden.view = replace(hidden.view, owner_id=new.table.id)
        context.notes.views[hidden.table.id] = hidden.view
    return filled(context, new, part, expected)


def applied(
    context: Context,
    working: Working,
    action: Apply,
    changed: Changed,
    common: Common = NOTHING_COMMON,
    expected: float = math.inf,
) -> Counts:
    """A signed bag, of about so many rows, is added to what is stored."""
    types = working.table.layout.types | {WEIGHT: "bigint"}
    here = None if _are_many(expected) else _here(context, action.change, changed, common, types)
    if here is None:
        here = rows.net_change(working, result(context, action.change, changed, common), expected)
    return stage(working, rows.applied_net(working, here))


def merged(
    context: Context, working: Working, action: Merge, changed: Changed, common: Common, expected: float
) -> Counts:
    """Rows, about so many, are put together with the stored ones of the same key."""
    values, gone = _merging(working, action)
    new = None if _are_many(expected) else _here(context, action.rows, changed, common)
    if new is None:
        new = given(working, result(context, action.rows, changed, common), expected)
    return stage(working, rows.merged(working, new, values, gone))


_MERGING: Remembered[tuple[Merge, tuple[dict[str, str], str]]] = Remembered(500)


def _merging(working: Working, action: Merge) -> tuple[dict[str, str], str]:
    """The values of an action's columns, and whether a row goes, as SQL; made once for as long as they are the same."""
    key = (id(action.values), id(action.gone), working.table.layout)

    def made() -> tuple[Merge, tuple[dict[str, str], str]]:
        values = {name: _sql(working, value) for name, value in action.values}
        return action, (values, _sql(working, action.gone))

    return _MERGING.get(key, made)[1]


def _are_many(expected: float) -> bool:
    """So many that it would be in vain to begin to compute them on the driver. Without an estimate it is tried."""
    return expected / 2 > MOST_ROWS and expected != math.inf


def _here(
    context: Context, node: Node, changed: Changed, common: Common, types: Mapping[str, str] | None = None
) -> Given | None:
    """The rows of a node, if they can be computed on the driver, from few."""
    found = at_hand(context, node, changed, common.get)
    return None if found is None else given_rows(context.runtime.engine, found, types)


def _sql(working: Working, expression: exp.Expr) -> str:
    """The text of an expression over the new row and the stored one."""

    def place(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and node.table == NEW:
            return exp.column(node.this.copy(), table=NEW_ROW)
        if isinstance(node, exp.Column) and node.table == OLD:
            return exp.maybe_parse(rows.stored_value(working, node.name), dialect="spark")
        return node

    return spark_text(expression.copy().transform(place))
