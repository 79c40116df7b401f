"""A maintenance transaction: statements are staged, then committed as one version, or leave nothing behind.

    lease, repair, begin  ->  statements (files nobody refers to)  ->  wait for the commit policy
      ->  journal  ->  a Delta commit per table  ->  the catalog: currentVN, tables, identities  ->  tail: fold, release

A crash before the step in the catalog is undone by the next who takes the lease; after it, only the tail is repeated.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType

from pyspark.sql import DataFrame
from sqlglot import exp

from matview.algebra.schema import Column, Schema
from matview.catalog.records import CatalogChanges, GarbageFile, Lease, NewTable
from matview.errors import BadDefinition, LeaseLost, MatviewError, TableExists, TransactionOver, UnsupportedStatement
from matview.maintain import statements
from matview.maintain.folding import fold_if_due
from matview.maintain.keeper import LeaseKeeper
from matview.maintain.policy import AtOnce, CommitPolicy, wait_to_commit
from matview.maintain.recovery import remove_uncommitted, repair
from matview.maintain.working import Counts, Working
from matview.spark.errors import translated
from matview.sql import statements as st
from matview.sql.parse import parse_one
from matview.storage.query import Found, run_query
from matview.storage.runtime import Runtime
from matview.storage.snapshot import Snapshot

Step = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a change did: how many rows, and the version that shows it (None inside an open transaction)."""

    counts: Counts
    version: int | None = None

    def __str__(self) -> str:
        parts = [f"{n} {what}" for n, what in self._parts if n]
        shown = ", ".join(parts) or "nothing changed"
        return shown if self.version is None else f"{shown} (version {self.version})"

    @property
    def _parts(self) -> list[tuple[int, str]]:
        counts = self.counts
        return [(counts.inserted, "inserted"), (counts.updated, "updated"), (counts.deleted, "deleted")]


class MaintenanceTransaction:
    """Use as a context manager: commits at the end of the block, rolls back when the block raises."""

    def __init__(
        self,
        runtime: Runtime,
        *,
        wait: float | None = None,
        policy: CommitPolicy | None = None,
        step: Step | None = None,
    ) -> None:
        self._runtime = runtime
        self._policy = policy or AtOnce()
        self._step = step or (lambda _: None)
        self._working: dict[str, Working] = {}
        self._over: str | None = None
        settings = runtime.settings
        patience = settings.lease_wait if wait is None else wait
        lease = runtime.catalog.lease.acquire(runtime.holder, settings.lease_ttl, patience)
        self._keeper = LeaseKeeper(runtime.catalog, lease, settings.lease_ttl)
        try:
            repair(runtime, lease)
            self.version = runtime.catalog.transactions.begin(lease)
        except BaseException:
            self._let_go()
            raise
        self._versions = runtime.catalog.version().versions
        self._step("begun")

    @property
    def lease(self) -> Lease:
        return self._keeper.lease

    # statements -------------------------------------------------------------------------------------------------------

    def sql(self, text: str) -> DataFrame | Outcome:
        """One statement; a query reads the transaction's own state."""
        return self.run(parse_one(text))

    def run(self, statement: st.Statement) -> DataFrame | Outcome:
        self._require_open()
        with translated("running a statement"):
            return self._run(statement)

    def _run(self, statement: st.Statement) -> DataFrame | Outcome:
        match statement:
            case st.Query(query):
                return self._query(query, {})
            case st.CreateTable():
                return self._create(statement)
            case st.DropTable():
                return self._drop(statement)
            case st.Insert():
                return self._done(statements.insert(self._table(statement.table), statement, self._query))
            case st.Update():
                return self._done(statements.update(self._table(statement.table), statement, self._query))
            case st.Delete():
                return self._done(statements.delete(self._table(statement.table), statement, self._query))
            case st.Merge():
                return self._done(statements.merge(self._table(statement.table), statement, self._query))
            case st.ShowTables() | st.Describe() | st.SetVersions():
                raise UnsupportedStatement(
                    "not inside a transaction", help="run it outside, with `wh.sql(...)` or `matview sql`"
                )

    def insert(self, table: str, rows: DataFrame) -> Outcome:
        """Rows to add; columns are matched by name, those left out are null."""
        self._require_open()
        with translated("running a statement"):
            return self._done(statements.insert_rows(self._table(table), rows))

    def delete(self, table: str, rows: DataFrame) -> Outcome:
        """Rows to delete: the key's columns, or all of them. Each must be there."""
        self._require_open()
        with translated("running a statement"):
            return self._done(statements.delete_rows(self._table(table), rows))

    def apply(self, table: str, changes: DataFrame) -> Outcome:
        """A signed bag: all columns and `weight`, positive for rows that come, negative for rows that go."""
        self._require_open()
        with translated("running a statement"):
            return self._done(statements.apply_changes(self._table(table), changes))

    def _done(self, counts: Counts) -> Outcome:
        self._step("staged")
        return Outcome(counts)

    def _query(self, query: exp.Expr, bound: Mapping[str, DataFrame]) -> DataFrame:
        return run_query(self._runtime.engine, query, self._found, self.version, bound=bound)

    def _found(self, reference: exp.Table) -> Found:
        working = self._find(reference)
        return Found(working.table, working.current)

    # tables -----------------------------------------------------------------------------------------------------------

    def _table(self, name: str) -> Working:
        return self._find(exp.Table(this=exp.to_identifier(name, quoted=True)))

    def _find(self, reference: exp.Table) -> Working:
        working = self._working.get(reference.name.casefold())
        if working is not None and not working.dropped and not reference.db:
            return working
        hidden = working is not None and working.dropped
        record = self._runtime.record(reference, 0 if hidden else self.version)
        table = self._runtime.tables.table(record, self._versions)
        made = Working(table, table.log.load(), record.next_rid, self.version, self.lease.token)
        self._working[reference.name.casefold()] = made
        return made

    def _create(self, statement: st.CreateTable) -> Outcome:
        folded = statement.name.casefold()
        known = self._working.get(folded)
        exists = (
            not known.dropped if known else self._runtime.catalog.tables.find(statement.name, self.version) is not None
        )
        if exists and statement.if_not_exists:
            return Outcome(Counts())
        if exists:
            raise TableExists(f"there is a table {statement.name!r} already")
        if known is not None:
            raise UnsupportedStatement(f"{statement.name!r} was dropped in this very transaction", help="commit first")
        schema = checked_schema(self._runtime, statement)
        new = NewTable(
            self._runtime.catalog.tables.reserve(self.lease),
            statement.name,
            schema,
            f"tables/{_slug(statement.name)}-{secrets.token_hex(4)}",
            {"cluster_by": list(statement.cluster_by), **statement.properties},
        )
        table = self._runtime.tables.table(new, self._versions)
        working = Working(table, Snapshot(-1, 0, ()), 0, self.version, self.lease.token, created=new)
        self._working[folded] = working
        return Outcome(Counts())

    def _drop(self, statement: st.DropTable) -> Outcome:
        try:
            working = self._table(statement.name)
        except MatviewError:
            if statement.if_exists:
                return Outcome(Counts())
            raise
        working.dropped = True
        return Outcome(Counts())

    # the end ----------------------------------------------------------------------------------------------------------

    def commit(self) -> Outcome:
        """All of it becomes one version; with nothing changed, no version is spent."""
        self._require_open()
        touched = [w for w in self._working.values() if w.staged or w.created or w.dropped]
        counts = sum((w.counts for w in self._working.values()), Counts())
        if not touched:
            self.rollback()
            return Outcome(counts)
        catalog = self._runtime.catalog
        wait_to_commit(self._policy, catalog.sessions.count_live, self._keeper.check)
        try:
            self._commit_tables([w for w in touched if w.staged or w.created])
            self._keeper.check()
            catalog.transactions.commit(self.lease, self._changes(touched, counts))
        except LeaseLost:
            self._end("lost to another")
            raise
        except BaseException as error:
            self._undo(error)
            raise
        self._step("committed")
        self._tail([w for w in touched if not w.dropped])
        return Outcome(counts, self.version)

    def _commit_tables(self, touched: list[Working]) -> None:
        catalog = self._runtime.catalog
        catalog.transactions.journal(self.lease, [w.table.id for w in touched if not w.created])
        self._step("journaled")
        for working in touched:
            log = working.table.log
            if working.created:
                log.create(self.lease.token)
                working.snapshot = log.load()
            if working.staged:
                log.commit(working.snapshot, self.lease.token, working.staged, ())
            self._step(f"table {working.table.name}")

    def _changes(self, touched: list[Working], counts: Counts) -> CatalogChanges:
        per_table = {w.table.name: [w.counts.inserted, w.counts.updated, w.counts.deleted] for w in touched}
        return CatalogChanges(
            created=tuple(w.created for w in touched if w.created),
            dropped=tuple(w.table.id for w in touched if w.dropped),
            next_rid={w.table.id: w.next_rid for w in touched},
            garbage=self._replaced()
            + tuple(GarbageFile(w.table.id, f.path) for w in touched if w.dropped for f in w.current.files),
            summary={"tables": per_table, "rows": counts.total},
        )

    def _replaced(self) -> tuple[GarbageFile, ...]:
        return tuple(GarbageFile(w.table.id, f.path) for w in self._working.values() for f in w.replaced)

    def _tail(self, touched: list[Working]) -> None:
        try:
            for working in touched:
                fold_if_due(self._runtime, self.lease, working.table, self._step)
            self._runtime.catalog.transactions.finish(self.lease)
            self._step("finished")
        except LeaseLost:
            pass  # the version stands; whoever took over repeats the tail
        finally:
            self._end("committed")

    def rollback(self) -> None:
        """Nothing of it remains; staged files are collected as garbage."""
        self._require_open()
        garbage = self._replaced() + tuple(
            GarbageFile(w.table.id, f.path) for w in self._working.values() for f in w.staged if not w.created
        )
        try:
            self._runtime.catalog.transactions.abort(self.lease, garbage=garbage)
        finally:
            self._end("rolled back")

    def _undo(self, error: BaseException) -> None:
        """A commit that failed half way: what it added to tables is taken out again, now or by the next in line."""
        try:
            catalog = self._runtime.catalog
            garbage = list(self._replaced())
            for working in self._working.values():
                if working.staged and not working.created:
                    garbage += remove_uncommitted(working.table, self.lease.token, self.version - 1)
                    garbage += [GarbageFile(working.table.id, f.path) for f in working.staged]
            catalog.transactions.abort(self.lease, error=str(error), garbage=tuple(set(garbage)))
        except MatviewError:
            pass  # the journal stays: whoever takes the lease next undoes it
        finally:
            self._end("failed")

    def _end(self, how: str) -> None:
        self._over = how
        self._let_go()

    def _let_go(self) -> None:
        self._keeper.stop()
        with suppress(MatviewError):  # a lease that cannot be given back expires by itself
            self._runtime.catalog.lease.release(self._keeper.lease)

    def _require_open(self) -> None:
        if self._over is not None:
            raise TransactionOver(f"this transaction was {self._over}")
        self._keeper.check()

    def __enter__(self) -> MaintenanceTransaction:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._over is not None:
            return
        if error is None:
            self.commit()
            return
        with suppress(MatviewError):  # what went wrong first is what matters; the next who takes the lease cleans up
            self.rollback()


def checked_schema(runtime: Runtime, statement: st.CreateTable) -> Schema:
    """The schema in Spark's own spelling of types; what cannot be stored or compared is refused."""
    pairs = [(c.name, c.type) for c in statement.schema.columns]
    struct = runtime.engine.struct(pairs)
    columns = []
    for column in statement.schema.columns:
        plain = struct[column.name].dataType.simpleString()
        sized = re.match(r"^(var)?char\(", column.type.lower().replace(" ", ""))
        kind = column.type.lower() if sized else plain
        if "void" in plain:
            raise BadDefinition(f"column {column.name!r}: a table cannot store the type {plain}")
        if (
            column.name in statement.schema.key
            and re.match(r"^(map|array|struct|variant|binary$)", plain)
            and plain != "binary"
        ):
            raise BadDefinition(f"key column {column.name!r}: {plain} cannot be a key", help="use an atomic type")
        if statement.schema.is_bag and "variant" in plain:
            raise BadDefinition(f"column {column.name!r}: variant needs a table with a primary key")
        columns.append(Column(column.name, kind, column.nullable))
    return Schema(tuple(columns), statement.schema.key)


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9_]+", "_", name.lower())[:40].strip("_") or "table"
