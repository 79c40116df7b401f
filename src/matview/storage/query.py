"""A user's query over versioned tables, as a Spark data frame.

Few tuples that a query's constants lead to are looked up on the driver, and stand in the plan itself: of such tuples
alone Spark answers without a job.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from sqlglot import exp

from matview.errors import StaysRemote, UnknownColumn, UnsupportedStatement
from matview.sql.pieces import place_of
from matview.storage.engine import Engine, relation, relation_name
from matview.storage.few import most
from matview.storage.lookup import looked_up, wanted_of
from matview.storage.snapshot import DataFile, Level, Snapshot
from matview.storage.spelled import spelled
from matview.storage.table import VersionedTable
from matview.versions.expiry import Grain
from matview.versions.predicates import Predicate, constant, sargable
from matview.versions.pruning import may_match
from matview.versions.references import rewrite_query, unheard
from matview.versions.rewrite import reading


@dataclass(frozen=True, slots=True)
class Found:
    """What a table's name stands for: the table, and the snapshot of it to be read."""

    table: VersionedTable
    snapshot: Snapshot

    def files(self, predicates: tuple[Predicate, ...], version: int) -> tuple[DataFile, ...]:
        """The files that can hold a tuple that meets the predicates at a version, by their statistics."""
        layout = self.table.layout
        return tuple(
            f for f in self.snapshot.files if may_match(predicates, layout, f.minimum, f.maximum, session_vn=version)
        )

    def few(self, predicates: tuple[Predicate, ...], version: int) -> pa.Table | None:
        """The newest states of few tuples, all that can meet the predicates at a version; None: Spark shall look.

        Where a tuple may have changed since, its newest state leads back to it only by what an update leaves as it is.
        """
        layout = self.table.layout
        unchanged = not self.snapshot.facts(layout).later_slots(version)
        leading = [p for p in predicates if unchanged or p.column in layout.fixed]
        wanted = wanted_of(leading, self.table)
        limit = min(MOST_ASKED, most())
        if not wanted or limit <= 0:
            return None
        files = self.files(predicates, version)
        looked_at = (*(f for f in files if f.level is Level.BASE), *self.snapshot.overlay)
        return looked_up(self.table, looked_at, [name for name, _ in layout.columns], wanted, limit, MOST_LOOKED_AT)


Lookup = Callable[[exp.Table], Found]

MOST_ASKED = 1_000
"""More tuples than these do not come to stand in a plan."""
MOST_LOOKED_AT = 2_000_000
"""More values than these are not read to make one: some hundredths of a second."""
VERSIONED = frozenset({"version", "when", "system_time", "changes"})


def check_reference(reference: exp.Table) -> None:
    """A reading puts something else in the reference's place: whatever it could not say there is refused."""
    lost = unheard(reference)
    if not lost:
        return
    earlier = "open a session to read an earlier version: it keeps the version at which it was opened"
    raise UnsupportedStatement(
        f"`{reference.sql('spark')}` says more than the name of a table",
        where=place_of(reference),
        help=earlier if VERSIONED & set(lost) else f"write `{reference.name}`",
    )


def refuse_remote(table: VersionedTable, reference: exp.Table | None = None) -> None:
    """StaysRemote, if there is nothing here to be read."""
    if table.remote is not None:
        where = None if reference is None else place_of(reference)
        raise StaysRemote(f"{table.name} stays at source {table.remote}, and cannot be read here", where=where)


_PLAIN = (
    *(exp.Select, exp.From, exp.Join, exp.Where, exp.Group, exp.Order, exp.Ordered, exp.Limit, exp.Distinct),
    *(exp.Subquery, exp.With, exp.CTE, exp.Table, exp.TableAlias, exp.Alias, exp.Identifier, exp.Column, exp.Star),
    *(exp.Null, exp.Boolean, exp.Paren, exp.And, exp.Or, exp.Not, exp.Is, exp.Exists, exp.Count, exp.Min, exp.Max),
    *(exp.Literal, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.In, exp.Between, exp.Tuple),
)
_COMPARED = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.In, exp.Between)


def _is_plain(query: exp.Expr) -> bool:
    """Whether no value makes the query fail that would not anyway. Spark computes what is over rows in a plan before it
    leaves out what nobody asks for: a division by zero, say, in a column that is not used, or of a row that is then
    rejected. A comparison, too, may cast, and fail: it may stand in a condition, but be no value itself."""
    return all(
        (isinstance(node, _PLAIN) and not (isinstance(node, _COMPARED) and _is_value(node))) or _is_constant(node)
        for node in query.walk(prune=_is_constant)
    )


def _is_value(node: exp.Expr) -> bool:
    """Whether it stands in a list of what is selected, grouped by or ordered by."""
    above = node.find_ancestor(exp.Where, exp.Join, exp.Select)
    return not isinstance(above, exp.Where | exp.Join)


def _is_constant(node: exp.Expr) -> bool:
    """A negative number, DATE '...' and the like: a value that was read without a fault."""
    return isinstance(node, exp.Neg | exp.Cast) and constant(node) is not None


_QUOTED = re.compile("`((?:[^`]|``)+)`")


def run_query(
    engine: Engine,
    query: exp.Expr,
    lookup: Lookup,
    version: int,
    grain: Grain = "table",
    bound: Mapping[str, DataFrame] | None = None,
) -> DataFrame:
    """The query as of `version`, each table read from the snapshot that `lookup` gives; names in `bound` stay."""
    relations: dict[str, DataFrame | str] = dict(bound or {})
    is_plain = _is_plain(query)

    def replace(reference: exp.Table) -> exp.Expr:
        if bound and reference.name in bound:
            return relation(reference.name)
        check_reference(reference)
        found = lookup(reference)
        refuse_remote(found.table, reference)
        predicates = sargable(reference, found.table.schema)
        layout, overlay = found.table.layout, None
        tuples, few = relation_name(), found.few(predicates, version) if is_plain else None
        if few is not None:
            struct = engine.struct(layout.columns)
            relations[tuples] = spelled(few, struct) or engine.local(few, struct)
        else:
            relations[tuples] = found.table.tuples(found.files(predicates, version))
        if few is None and found.snapshot.overlay:
            name = relation_name()
            relations[name] = found.table.hiders(found.snapshot.overlay)
            overlay = relation(name)
        facts = found.snapshot.facts(layout)
        return reading(layout, version, facts, relation(tuples), overlay, grain=grain, predicates=predicates)

    rewritten = rewrite_query(query, replace)
    with _placing(query):
        return engine.sql(rewritten, relations)


@contextmanager
def _placing(query: exp.Expr) -> Iterator[None]:
    """Spark says which column it does not know; where that stands, the user's text says, if it does so once."""
    try:
        yield
    except UnknownColumn as error:
        wanted = [part.replace("``", "`") for part in _QUOTED.findall(error.what)]
        named = [c for c in query.find_all(exp.Column) if [part.name for part in c.parts] == wanted]
        where = place_of(named[0]) if len(named) == 1 else None
        raise UnknownColumn(error.what, where=where, help=error.help) from error
