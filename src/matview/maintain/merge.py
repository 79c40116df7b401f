"""MERGE as signed rows: what each clause takes away and adds, in one SELECT per way of meeting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from matview.errors import UnknownColumn
from matview.maintain.assign import assigned_sql, quoted
from matview.maintain.rows import WEIGHT
from matview.maintain.working import Working
from matview.sql import statements as st
from matview.sql.parse import DIALECT, place_of
from matview.versions.layout import COUNT


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
            raise UnknownColumn(f"{working.table.name} has no column {name!r}", where=place_of(value))
        made[column.name] = assigned_sql(value.sql(DIALECT), column)
    return made


def signed_rows(*weighted: tuple[str, Mapping[str, str]]) -> str:
    """A generator of rows, each with its weight; a weight of 0 is a row that is not meant."""
    structs = []
    for weight, values in weighted:
        named = ", ".join(f"{sql} AS {quoted(c)}" for c, sql in values.items())
        structs.append(f"struct(CAST({weight} AS bigint) AS {WEIGHT}, {named})")
    return f"inline(array({', '.join(structs)}))"


@dataclass(frozen=True, slots=True)
class MergePlan:
    """`target` names the live stored tuples, `source` the rows that USING gives."""

    working: Working
    statement: st.Merge
    target: str
    source: str
    source_columns: tuple[str, ...]

    def selects(self) -> list[str]:
        """One SELECT each for pairs that match, source rows without a match, tuples without one; where clauses ask."""
        clauses = self.statement.clauses
        matched = [c for c in clauses if isinstance(c, st.WhenMatched) and c.has_source]
        lonely = [c for c in clauses if isinstance(c, st.WhenMatched) and not c.has_source]
        new = [c for c in clauses if isinstance(c, st.WhenNotMatched)]
        t, s = f"{self.target} AS {self._t}", f"{self.source} AS {self._s}"
        on = self.statement.on.sql(DIALECT)
        made = []
        if matched:
            made.append(self._changing(matched, f"{t} JOIN {s} ON {on}"))
        if new:
            made.append(self._inserting(new, f"{s} LEFT ANTI JOIN {t} ON {on}"))
        if lonely:
            made.append(self._changing(lonely, f"{t} LEFT ANTI JOIN {s} ON {on}"))
        return made

    @property
    def _t(self) -> str:
        return quoted(self.statement.alias)

    @property
    def _s(self) -> str:
        return quoted(self.statement.source_alias)

    def _changing(self, clauses: Sequence[st.WhenMatched], relation: str) -> str:
        """The old row goes; unless the clause deletes, a new one comes."""
        old = columns_of(self.working, self.statement.alias)
        weight = weight_of(self.working, self.statement.alias)
        choice = _choice([c.condition for c in clauses])
        news = [None if c.assignments is None else self._values(c.assignments) for c in clauses]
        comes = " ".join(f"WHEN {i} THEN {0 if new is None else weight}" for i, new in enumerate(news))
        values = {c: _chosen(choice, [(new or {}).get(c, old[c]) for new in news], old[c]) for c in old}
        pair = signed_rows((f"-{weight}", old), (f"CASE {choice} {comes} END", values))
        return f"SELECT {pair} FROM {relation} WHERE {choice} IS NOT NULL"

    def _inserting(self, clauses: Sequence[st.WhenNotMatched], relation: str) -> str:
        choice = _choice([c.condition for c in clauses])
        nulls = {c.name: f"CAST(NULL AS {c.type})" for c in self.working.table.schema.columns}
        news = [nulls | self._values(c.values) for c in clauses]
        values = {c: _chosen(choice, [new[c] for new in news], nulls[c]) for c in nulls}
        items = [f"1L AS {WEIGHT}", *(f"{sql} AS {quoted(c)}" for c, sql in values.items())]
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
    whens = " ".join(f"WHEN {'TRUE' if c is None else c.sql(DIALECT)} THEN {i}" for i, c in enumerate(conditions))
    return f"(CASE {whens} END)"


def _chosen(choice: str, values: Sequence[str], otherwise: str) -> str:
    """The value that the chosen clause gives."""
    if set(values) == {otherwise}:
        return otherwise
    whens = " ".join(f"WHEN {i} THEN {value}" for i, value in enumerate(values))
    return f"CASE {choice} {whens} ELSE {otherwise} END"
