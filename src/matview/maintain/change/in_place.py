"""UPDATE and DELETE of tuples that stay where they are: Tables 3 and 4 on every live tuple that meets the condition.

Few tuples that values in the condition lead to are looked up, and change, on the driver: no job is run. Others Spark
finds and changes in one scan, by the same expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
from pyspark.sql import DataFrame
from sqlglot import exp

from matview.maintain.change.beside import NOW, Now, Side, computed, met, now
from matview.maintain.change.faults import Fault, first_fault, required
from matview.maintain.change.meeting import after
from matview.maintain.change.merge import parsed
from matview.maintain.change.stage import stage
from matview.maintain.change.staged import ACT, FAULT, TIMES, Staged, staged_schema
from matview.maintain.change.working import Counts, Working
from matview.remembered import cached_property
from matview.sql.lower.functions import is_random
from matview.storage.engine import relation_name
from matview.storage.few import arrow_schema, most
from matview.storage.lookup import looked_up, wanted_of
from matview.storage.query import Found
from matview.storage.snapshot import DataFile, Level
from matview.versions import setwise
from matview.versions.layout import COUNT, LEVEL, Layout
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
        predicates = self._predicates()
        files = Found(self.working.table, self.working.current).files(predicates, self.working.vn)
        here = None if self._draws else self._here(predicates, files)
        if here is None:
            check()
        if not files or (here is not None and not here.num_rows):
            return Counts()

        def made() -> DataFrame:
            found = self.working.latest(files, spark_text(current(predicates)))
            relation = relation_name()
            return run(self._select(relation), {relation: found}).hint("rebalance", 1)

        expected = sum(f.rows for f in files) if here is None else here.num_rows
        return stage(self.working, Staged(made, (Level.OVERLAY,), expected, here=here))

    def _predicates(self) -> tuple[Predicate, ...]:
        alias = exp.TableAlias(this=exp.to_identifier(self.alias, quoted=True))
        reference = exp.Table(this=exp.to_identifier(relation_name()), alias=alias)
        select = exp.Select(expressions=[exp.Star()]).from_(reference, copy=False)
        if self.where is not None:
            select.where(self.where.copy(), copy=False)
        return sargable(reference, self.working.table.schema)

    @cached_property
    def _draws(self) -> bool:
        """A new value may be another one when it is computed again."""
        return any(is_random(parsed(sql)) for sql in self.new.values())

    def _columns(self, new: Mapping[str, str], at: Now) -> dict[str, str]:
        """The stored columns afterwards, and those beside them, as SQL over the tuple."""
        layout = self.working.table.layout
        nulls = {f"({sql}) IS NULL": (Fault.NULL_VALUE, c) for c, sql in new.items() if c in required(layout)}
        return {
            **_changed(layout, self.act, tuple(new.items()), self.alias, at),
            LEVEL: after(self.working, self.act, self.alias, at),
            ACT: str(int(self.act)),
            TIMES: f"{quoted(self.alias)}.{COUNT}" if layout.schema.is_bag else "1L",
            FAULT: first_fault(nulls, layout, self.alias),
        }

    def _select(self, relation: str) -> exp.Expr:
        """What is drawn is drawn once, below: a value is stored as it was found to be allowed."""
        alias, new, found = quoted(self.alias), self.new, f"{relation} AS {quoted(self.alias)} WHERE {self._live}"
        if self.where is not None:
            found += f" AND ({spark_text(self.where)})"
        if self._draws:
            drawn = ", ".join(f"{sql} AS {_DRAWN}{i}" for i, sql in enumerate(new.values()))
            new = {c: f"{alias}.{_DRAWN}{i}" for i, c in enumerate(new)}
            found = f"(SELECT {alias}.*, {drawn} FROM {found}) AS {alias}"
        columns = self._columns(new, Now.told(self.working))
        return parsed(f"SELECT {', '.join(f'{sql} AS {quoted(name)}' for name, sql in columns.items())} FROM {found}")

    @property
    def _live(self) -> str:
        return setwise.live(self.working.table.layout, row=self.alias)

    # on the driver ----------------------------------------------------------------------------------------------------

    def _here(self, predicates: Sequence[Predicate], files: Sequence[DataFile]) -> pa.Table | None:
        """The tuples afterwards; None if they are for Spark."""
        if (found := self._found_here(predicates, files)) is None:
            return None
        asked = None if self.where is None else self._qualified(self.where)
        if (side := met(found, self._live, asked)) is None:
            return None
        columns = self._columns({c: spark_text(self._qualified(parsed(sql))) for c, sql in self.new.items()}, NOW)
        schema = staged_schema(self.working.table, columns)
        assert schema is not None  # they have been read
        return computed((side, now(self.working, len(side.places))), (), columns.values(), schema)

    def _found_here(self, predicates: Sequence[Predicate], files: Sequence[DataFile]) -> Side | None:
        """The tuples that may meet the condition; None if they are many, or of types that do not travel."""
        table = self.working.table
        struct = table.engine.struct(table.layout.columns)
        limit = min(MOST_HERE, most())
        if arrow_schema(struct) is None or limit <= 0:
            return None
        looked_at = (*(f for f in files if f.level is Level.BASE), *self.working.current.overlay)
        wanted = wanted_of(predicates, table)
        if not wanted and sum(f.rows for f in looked_at) > limit:
            return None
        found = looked_up(table, looked_at, struct.names, wanted, limit)
        return None if found is None else Side.alone(self.alias, found, struct)

    def _qualified(self, expression: exp.Expr) -> exp.Expr:
        """Every column of the tuple under its alias, spelled as it is stored; others are for Spark to know."""
        stored = {name.casefold(): name for name, _ in self.working.table.layout.columns}

        def under_alias(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, exp.Column) or len(node.parts) > 2:
                return node
            name = stored.get(node.name.casefold())
            if name is None or node.table.casefold() not in ("", self.alias.casefold()):
                return node
            return exp.column(exp.to_identifier(name, quoted=True), exp.to_identifier(self.alias, quoted=True))

        return expression.transform(under_alias)


@lru_cache(256)
def _changed(
    layout: Layout, act: Operation, new: tuple[tuple[str, str], ...], alias: str, at: Now
) -> Mapping[str, str]:
    return setwise.changed(layout, at.vn, act, dict(new), row=alias)
