"""MERGE as signed rows: what each clause takes away and adds, in one SELECT per way of meeting."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import sqlglot
from sqlglot import exp

from matview.algebra.nodes import WEIGHT
from matview.algebra.scalars import conjuncts
from matview.algebra.schema import Schema
from matview.errors import UnknownColumn, UnsupportedStatement
from matview.local.reach import MOST_ROWS
from matview.maintain.change.assign import assigned_sql
from matview.maintain.change.given import Given
from matview.maintain.change.rows import HITS
from matview.maintain.change.working import Working
from matview.plan.narrow import LISTED
from matview.spelling import meant
from matview.sql import statements as st
from matview.sql.lower.functions import is_random
from matview.sql.parse import DIALECT, place_of
from matview.storage.few import arrow_schema
from matview.storage.lookup import looked_up
from matview.versions.layout import COUNT, LEVEL
from matview.versions.predicates import kind_of
from matview.versions.text import quoted, spark_text


def parsed(text: str) -> exp.Expr:
    return sqlglot.parse_one(text, dialect=DIALECT)


def columns_of(working: Working, alias: str) -> dict[str, str]:
    return {c: f"{quoted(alias)}.{quoted(c)}" for c in working.table.schema.names}


def weight_of(working: Working, alias: str) -> str:
    """How often a stored tuple stands for a row."""
    return f"{quoted(alias)}.{COUNT}" if working.table.schema.is_bag else "1L"


def assigned(working: Working, assignments: Mapping[str, exp.Expr]) -> dict[str, str]:
    """Each assigned column with its value, as SQL on its way into the column."""
    made: dict[str, str] = {}
    for name, value in assignments.items():
        column = working.table.schema.column(name)
        if column is None:
            asked = meant(name, working.table.schema.visible)
            raise UnknownColumn(f"{working.table.name} has no column {name!r}", help=asked)
        made[column.name] = assigned_sql(spark_text(value), column)
    return made


def refuse_stored(working: Working, alias: str, asked: Iterable[exp.Expr | None], others: Sequence[str] = ()) -> None:
    """UnknownColumn, where a user speaks of a column that is stored and not the user's; `others` are none of these."""
    own = {name.casefold() for name, _ in working.table.layout.columns} | {LEVEL}
    own -= {name.casefold() for name in working.table.schema.names}
    free = {name.casefold() for name in others}
    for column in (c for one in asked if one is not None for c in one.find_all(exp.Column)):
        name, of = column.name.casefold(), column.table.casefold()
        if name in own and (of == alias.casefold() or (not of and name not in free)):
            raise UnknownColumn(f"{working.table.name} has no column {column.name!r}", where=place_of(column))


def refuse_random(conditions: Iterable[exp.Expr | None]) -> None:
    """A condition decides about all columns of a row: it has to be the same for each."""
    for condition in conditions:
        if condition is not None and is_random(condition):
            raise UnsupportedStatement(
                f"`{condition.sql('spark')}` may be true for one column of a row and false for another",
                where=place_of(condition),
                help="compute it in the source: USING (SELECT ..., rand() AS chance FROM ...), then ask for chance",
            )


def asked_of_target(statement: st.Merge) -> Iterator[exp.Expr | None]:
    """Every expression of a MERGE in which a column of the target may stand."""
    yield statement.on
    for clause in statement.clauses:
        yield clause.condition
        values = clause.assignments if isinstance(clause, st.WhenMatched) else clause.values
        yield from () if values is None or isinstance(values, st.SetAll) else values.values()


def signed_rows(relation: str, condition: str, *weighted: tuple[str, Mapping[str, str]]) -> str:
    """The SELECT of several rows for each of a relation, each with its weight; one with a weight of 0 is not meant.

    Values are computed below the generator of rows: a subquery may stand there, and not in it. What rows have in common
    with the first is computed once; two values that are spelled alike may be different draws of a random one.
    """
    first = weighted[0][1]
    names = {sql: f"__first_{i}" for i, sql in enumerate(dict.fromkeys(first.values()))}
    items = [f"{sql} AS {name}" for sql, name in names.items()]
    structs = []
    for weight, values in weighted:
        fields = []
        for column, sql in {WEIGHT: f"CAST({weight} AS bigint)", **values}.items():
            name = names.get(sql) or f"__value_{len(items)}"
            items += [] if sql in names else [f"{sql} AS {name}"]
            fields.append(f"{name} AS {quoted(column)}")
        structs.append(f"struct({', '.join(fields)})")
    computed = ", ".join(items)
    return f"SELECT inline(array({', '.join(structs)})) FROM (SELECT {computed} FROM {relation} WHERE {condition})"


def looked_up_near(working: Working, statement: st.Merge, source: Given) -> Given | None:
    """The tuples that few rows of the source can meet, on the driver, by the columns that ON sets equal.

    None if none can be looked up, or if they are for Spark to find.
    """
    table = working.table
    stored = arrow_schema(table.engine.struct(table.layout.columns))
    if stored is None or source.few is None:
        return None
    wanted = {}
    for condition in conjuncts(statement.on):
        pair = _equated(condition, statement, table.schema, source.schema.names)
        if pair is None or kind_of(table.layout.type_of(pair[0])) not in LISTED:
            continue
        mine, theirs = stored.field(pair[0]).type, source.few.column(source.place(pair[1])).unique()
        if theirs.type == mine or (pa.types.is_signed_integer(theirs.type) and mine == pa.int64()):
            wanted[pair[0]] = theirs.cast(mine)
    found = looked_up(table, working.current.files, stored.names, wanted, MOST_ROWS) if wanted else None
    return None if found is None else Given.local(table.engine, found, table.engine.struct(table.layout.columns))


def _equated(condition: exp.Expr, statement: st.Merge, target: Schema, source: Sequence[str]) -> tuple[str, str] | None:
    """The columns of target and source that a condition sets equal, each named with its relation."""
    if not isinstance(condition, exp.EQ):
        return None
    sides = [condition.left.unnest(), condition.right.unnest()]
    named = {
        side.table.casefold(): side.name for side in sides if isinstance(side, exp.Column) and len(side.parts) == 2
    }
    mine, theirs = named.get(statement.alias.casefold()), named.get(statement.source_alias.casefold())
    own = None if mine is None else target.column(mine)
    there = theirs is not None and [name.casefold() for name in source].count(theirs.casefold()) == 1
    return (own.name, theirs) if own is not None and theirs is not None and there else None


@dataclass(frozen=True, slots=True)
class MergePlan:
    """`target` names the live stored tuples, `near` those that meet a row of the source, `source` the rows of USING."""

    working: Working
    statement: st.Merge
    target: str
    near: str
    source: str
    source_columns: tuple[str, ...]

    @property
    def reads_all(self) -> bool:
        """Some clause is about tuples that no row of the source meets."""
        return any(isinstance(c, st.WhenMatched) and not c.has_source for c in self.statement.clauses)

    def selects(self) -> list[str]:
        """One SELECT each for pairs that match, source rows without a match, tuples without one; where clauses ask."""
        clauses = self.statement.clauses
        matched = [c for c in clauses if isinstance(c, st.WhenMatched) and c.has_source]
        lonely = [c for c in clauses if isinstance(c, st.WhenMatched) and not c.has_source]
        new = [c for c in clauses if isinstance(c, st.WhenNotMatched)]
        all_, near, s = (f"{self.target} AS {self._t}", f"{self.near} AS {self._t}", f"{self.source} AS {self._s}")
        made = []
        if matched:
            made.append(self._changing(matched, f"{near} JOIN {s} ON {self._on}"))
        if new:
            made.append(self._inserting(new, f"{s} LEFT ANTI JOIN {near} ON {self._on}"))
        if lonely:
            made.append(self._changing(lonely, f"{all_} LEFT ANTI JOIN {s} ON {self._on}"))
        return made

    def select_near(self) -> str:
        """The one look at the whole target that matching takes."""
        relation = f"{self.target} AS {self._t} LEFT SEMI JOIN {self.source} AS {self._s} ON {self._on}"
        columns = ", ".join(f"{self._t}.{quoted(name)}" for name in self.working.table.layout.current)
        return f"SELECT {columns} FROM {relation}"

    @property
    def _on(self) -> str:
        return spark_text(self.statement.on)

    @property
    def _t(self) -> str:
        return quoted(self.statement.alias)

    @property
    def _s(self) -> str:
        return quoted(self.statement.source_alias)

    def _changing(self, clauses: Sequence[st.WhenMatched], relation: str) -> str:
        """The old row goes, which is one hit; unless the clause deletes, a new one comes."""
        old = columns_of(self.working, self.statement.alias)
        weight = weight_of(self.working, self.statement.alias)
        choice = _choice([c.condition for c in clauses])
        news = [None if c.assignments is None else self._values(c.assignments) for c in clauses]
        comes = " ".join(f"WHEN {i} THEN {0 if new is None else weight}" for i, new in enumerate(news))
        values = {c: _chosen(choice, [(new or {}).get(c, old[c]) for new in news], old[c]) for c in old}
        goes, new = (f"-{weight}", old | {HITS: "1L"}), (f"CASE {choice} {comes} END", values | {HITS: "0L"})
        return signed_rows(relation, f"{choice} IS NOT NULL", goes, new)

    def _inserting(self, clauses: Sequence[st.WhenNotMatched], relation: str) -> str:
        choice = _choice([c.condition for c in clauses])
        nulls = {c.name: f"CAST(NULL AS {c.type})" for c in self.working.table.schema.columns}
        news = [nulls | self._values(c.values) for c in clauses]
        values = {c: _chosen(choice, [new[c] for new in news], nulls[c]) for c in nulls}
        items = [f"1L AS {WEIGHT}", f"0L AS {HITS}", *(f"{sql} AS {quoted(c)}" for c, sql in values.items())]
        return f"SELECT {', '.join(items)} FROM {relation} WHERE {choice} IS NOT NULL"

    def _values(self, given: Mapping[str, exp.Expr] | st.SetAll) -> dict[str, str]:
        if not isinstance(given, st.SetAll):
            return assigned(self.working, given)
        made = {}
        by_folded = {name.casefold(): name for name in self.source_columns}
        for column in self.working.table.schema.columns:
            source = by_folded.get(column.name.casefold())
            if source is None:
                raise UnknownColumn(f"`*` in MERGE: the source has no column {column.name!r}")
            made[column.name] = assigned_sql(f"{self._s}.{quoted(source)}", column)
        return made


def _choice(conditions: Sequence[exp.Expr | None]) -> str:
    """The number of the first clause whose condition holds; null where none does."""
    whens = " ".join(f"WHEN {'TRUE' if c is None else spark_text(c)} THEN {i}" for i, c in enumerate(conditions))
    return f"(CASE {whens} END)"


def _chosen(choice: str, values: Sequence[str], otherwise: str) -> str:
    """The value that the chosen clause gives."""
    if set(values) == {otherwise}:
        return otherwise
    whens = " ".join(f"WHEN {i} THEN {value}" for i, value in enumerate(values))
    return f"CASE {choice} {whens} ELSE {otherwise} END"
