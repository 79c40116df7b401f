"""UPDATE and DELETE of tuples that stay where they are: Tables 3 and 4 on every live tuple that meets the condition.

Few tuples that values in the condition lead to are looked up, and change, on the driver: no job is run. Others Spark
finds and changes in one scan, by the same expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from sqlglot import exp

from matview.maintain.change.beside import Side, computed_once
from matview.maintain.change.faults import Fault, first_fault, required
from matview.maintain.change.meeting import after
from matview.maintain.change.merge import parsed
from matview.maintain.change.stage import stage
from matview.maintain.change.staged import ACT, FAULT, TIMES, Staged, staged_schema
from matview.maintain.change.working import Counts, Working
from matview.remembered import cached_property
from matview.sql.lower.functions import is_random
from matview.storage.engine import relation_name
from matview.storage.few import most
from matview.storage.lookup import looked_up, wanted_of
from matview.storage.query import Found
from matview.storage.snapshot import DataFile, Level
from matview.versions import setwise
from matview.versions.layout import COUNT, LEVEL
from matview.versions.predicates import Predicate, sargable
from matview.versions.pruning import current
from matview.versions.text import quoted, spark_text
from matview.versions.tuples import Operation

Run = Callable[[exp.Expr, Mapping[str, DataFrame]], DataFrame]
"""Runs a query in the transaction's own state; the names of the mapping are relations in hand."""

_DRAWN = "__drawn_"
MOST_HERE = 5_000
"""More tuples than these are for Spark to change."""


@dataclass(frozen=True)
class InPlace:
    """What is to be done to the tuples that meet a condition: `new` is the SQL of the columns that change."""

    working: Working
    act: Operation
    new: Mapping[str, str]
    alias: str
    where: exp.Expr | None

    def run(self, run: Run, check: Callable[[], None]) -> Counts:
        """`check` is for what Spark computes: on the driver, values that do not fit their columns are not computed."""
        relation = relation_name()
        columns = self._columns()
        select = self._select(columns, relation)
        reference = next(t for t in select.find_all(exp.Table) if t.name == relation)
        predicates = sargable(reference, self.working.table.schema)
        files = Found(self.working.table, self.working.current).files(predicates, self.working.vn)
        here = None if self._draws else self._here(select, list(columns), predicates, files)
        if here is None:
            check()
        if not files or (here is not None and not here.num_rows):
            return Counts()

        def made() -> DataFrame:
            found = self.working.latest(files, spark_text(current(predicates)))
            return run(select, {relation: found}).hint("rebalance", 1)

        expected = sum(f.rows for f in files) if here is None else here.num_rows
        return stage(self.working, Staged(made, (Level.OVERLAY,), expected, here=here))

    @cached_property
    def _draws(self) -> bool:
        """A new value may be another one when it is computed again."""
        return any(is_random(parsed(sql)) for sql in self.new.values())

    def _columns(self) -> dict[str, str]:
        """The stored columns afterwards, and those beside them, as SQL over the tuple."""
        layout, new = self.working.table.layout, self.new
        if self._draws:
            new = {c: f"{quoted(self.alias)}.{_DRAWN}{i}" for i, c in enumerate(self.new)}
        stored = setwise.changed(layout, self.working.vn, self.act, new, row=self.alias)
        nulls = {f"({sql}) IS NULL": (Fault.NULL_VALUE, c) for c, sql in new.items() if c in required(layout)}
        return stored | {
            LEVEL: after(self.working, self.act, self.alias),
            ACT: str(int(self.act)),
            TIMES: f"{quoted(self.alias)}.{COUNT}" if layout.schema.is_bag else "1L",
            FAULT: first_fault(nulls, layout, self.alias),
        }

    def _select(self, columns: Mapping[str, str], relation: str) -> exp.Expr:
        """What is drawn is drawn once, below: a value is stored as it was found to be allowed."""
        items = ", ".join(f"{sql} AS {quoted(name)}" for name, sql in columns.items())
        asked = "TRUE" if self.where is None else spark_text(self.where)
        alias = quoted(self.alias)
        found = f"{relation} AS {alias} WHERE {setwise.live(self.working.table.layout, row=self.alias)} AND ({asked})"
        if not self._draws:
            return parsed(f"SELECT {items} FROM {found}")
        drawn = ", ".join(f"{sql} AS {_DRAWN}{i}" for i, sql in enumerate(self.new.values()))
        return parsed(f"SELECT {items} FROM (SELECT {alias}.*, {drawn} FROM {found}) AS {alias}")

    # on the driver ----------------------------------------------------------------------------------------------------

    def _here(
        self, select: exp.Expr, names: Sequence[str], predicates: Sequence[Predicate], files: Sequence[DataFile]
    ) -> pa.Table | None:
        """The tuples afterwards; None if they are for Spark."""
        table = self.working.table
        struct = table.engine.struct(table.layout.columns)
        schema = staged_schema(table, names)
        limit = min(MOST_HERE, most())
        if schema is None or limit <= 0:
            return None
        overlay = self.working.current.overlay
        looked_at = (*(f for f in files if f.level is Level.BASE), *overlay)
        wanted = wanted_of(predicates, table)
        if not wanted and sum(f.rows for f in looked_at) > limit:
            return None
        found = looked_up(table, looked_at, struct.names, wanted, limit)
        if found is None:
            return None
        own = self._qualified(select)
        side = Side.alone(self.alias, found, struct)
        return computed_once([side], [own.args["where"].this], own.expressions, schema)

    def _qualified(self, select: exp.Expr) -> exp.Expr:
        """Every column of the tuple under its alias, spelled as it is stored; others are for Spark to know."""
        stored = {name.casefold(): name for name, _ in self.working.table.layout.columns}
        own = select.copy()
        for column in list(own.find_all(exp.Column)):
            name = stored.get(column.name.casefold())
            if name is not None and len(column.parts) <= 2 and column.table.casefold() in ("", self.alias.casefold()):
                column.replace(exp.column(exp.to_identifier(name, quoted=True), exp.to_identifier(self.alias)))
        return own
