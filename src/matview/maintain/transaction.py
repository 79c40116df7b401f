"""A maintenance transaction: statements are staged, then committed as one version, or leave nothing behind.

    lease, repair, begin  ->  statements (files nobody refers to)  ->  wait for the commit policy
      ->  journal  ->  a Delta commit per table  ->  the catalog: currentVN, tables, identities  ->  tail: fold, release

A crash before the step in the catalog is undone by the next who takes the lease. After it the version stands, whatever
becomes of the tail: what was not folded is folded when the table is changed next.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import TracebackType

import pyarrow as pa
from pyspark.sql import DataFrame
from sqlglot import exp

from matview.algebra.schema import Schema
from matview.catalog.catalog import Catalog
from matview.catalog.records import CatalogChanges, GroupChanges, Lease, TransactionState, staying_at
from matview.catalog.source_records import SourceChanges, SourceRecord, SourceTableRecord
from matview.errors import LeaseLost, MatviewError, TransactionOver, UnsupportedStatement
from matview.groups.graph import Maintain
from matview.maintain.change import statements
from matview.maintain.change.noted import noted
from matview.maintain.change.working import Counts, Working
from matview.maintain.commit import Step, catalog_changes, commit_tables, left_behind, take_back, touched
from matview.maintain.context import Context, Notes
from matview.maintain.define import define
from matview.maintain.definitions import Definitions
from matview.maintain.outcome import Outcome
from matview.maintain.policy import AtOnce, CommitPolicy, wait_to_commit
from matview.maintain.remote.connections import Connections
from matview.maintain.remote.tables import Remote
from matview.maintain.savepoint import whole
from matview.maintain.settle import settle
from matview.maintain.tables import WorkingTables
from matview.maintain.upkeep.folding import fold_if_due
from matview.maintain.upkeep.keeper import LeaseKeeper
from matview.maintain.upkeep.recovery import repair
from matview.maintain.views.algorithms import (
    prepare,
    refresh_deferred_view,
    refresh_named,
    refresh_view,
    refresh_viewgroup,
)
from matview.maintain.views.define import drop_fed
from matview.maintain.views.refresh import Mode
from matview.maintain.views.stopped import held_back
from matview.spark.errors import translated
from matview.sql import statements as st
from matview.sql.parse import parse_one
from matview.storage.query import Found, run_query
from matview.storage.runtime import Runtime

log = logging.getLogger("matview")


class MaintenanceTransaction:
    """Use as a context manager: commits at the end of the block, rolls back when the block raises."""

    def __init__(
        self,
        runtime: Runtime,
        *,
        wait: float | None = None,
        policy: CommitPolicy | None = None,
        step: Step | None = None,
        definitions: Definitions | None = None,
        connections: Connections | None = None,
    ) -> None:
        self.runtime = runtime
        self._definitions = definitions or Definitions()
        self._policy = policy or AtOnce()
        self._step = step or (lambda _: None)
        self._over: str | None = None
        self._notes = Notes()
        settings = runtime.settings
        patience = settings.lease_wait if wait is None else wait
        lease = runtime.catalog.lease.acquire(runtime.holder, settings.lease_ttl, patience)
        self._keeper = LeaseKeeper(runtime.catalog, lease, settings.lease_ttl)
        self._let_go = weakref.finalize(self, _given_back, runtime.catalog, self._keeper)
        self._let_go.atexit = False
        self.remote = Remote.of(runtime, connections or Connections(), f"{lease.token:010d}")
        """The tables that stay at their sources, as this transaction sees them."""
        try:
            repair(runtime, lease)
            self.version = runtime.catalog.transactions.begin(lease)
            self.tables = WorkingTables(runtime, lease, self.version)
            self._step("begun")
        except BaseException:
            self._let_go()
            raise

    @property
    def lease(self) -> Lease:
        return self._keeper.lease

    # statements -------------------------------------------------------------------------------------------------------

    def sql(self, text: str) -> DataFrame | Outcome:
        """One statement; a query reads the transaction's own state."""
        return self.run(parse_one(text))

    def run(self, statement: st.Statement) -> DataFrame | Outcome:
        with self._statement("running a statement"):
            return self._run(statement)

    def _run(self, statement: st.Statement) -> DataFrame | Outcome:
        match statement:
            case st.Query(query):
                prepare(self._context, query)
                return self.query(query, {})
            case st.Insert() | st.Update() | st.Delete() | st.Merge():
                return self._change(statement)
            case st.RefreshView(name, full):
                return self._refresh(lambda mode: refresh_view(self._context, name, mode), full)
            case st.RefreshViewgroup(name, full):
                return self._refresh(lambda mode: refresh_viewgroup(self._context, name, mode), full)
            case _ if isinstance(statement, st.Look | st.SetVersions | st.OfSources):
                raise UnsupportedStatement(
                    "not inside a transaction", help="run it outside, with `wh.sql(...)` or `matview sql`"
                )
        return self._noted(define(self._context, statement))

    def _change(self, statement: st.Change) -> Outcome:
        table = self._changeable(statement.table)
        prepare(self._context, *st.expressions(statement))
        match statement:
            case st.Insert():
                return self._done(statements.insert(table, statement, self.query))
            case st.Update():
                return self._done(statements.update(table, statement, self.query))
            case st.Delete():
                return self._done(statements.delete(table, statement, self.query))
            case st.Merge():
                return self._done(statements.merge(table, statement, self.query))

    def refresh(self, *names: str, mode: Mode = "auto") -> Outcome:
        """Brings viewgroups and views up to date; `mode` names a strategy to take where it applies.

        A snapshot view is refreshed with its viewgroup, and no view of another group is.
        """
        with self._statement("refreshing a view"):
            return self._done(refresh_named(self._context, names, mode))

    def refresh_deferred(self, *views: str) -> Outcome:
        """Brings deferred views up to date, those that need it; all there are if none is named."""
        with self._statement("refreshing a view"):
            held = held_back(self._context)
            deferred = (view.name for view in self._context.assignment.views_of(Maintain.DEFERRED))
            every = (name for name in deferred if name not in held)
            return self._done(refresh_deferred_view(self._context, *(views or every)))

    @property
    def is_idle(self) -> bool:
        """Nothing was changed yet: a commit would spend no version."""
        return not self._notes.defined and not touched(self.tables)

    def _refresh(self, refreshed: Callable[[Mode], Counts], full: bool) -> Outcome:
        return self._done(refreshed("full" if full else "auto"))

    @property
    def _context(self) -> Context:
        return Context(self.runtime, self.version, self.tables, self._notes, self.query, self._definitions, self.remote)

    def insert(self, table: str, rows: DataFrame | pa.Table) -> Outcome:
        """Rows to add; columns are matched by name, those left out are null."""
        with self._statement("running a statement"):
            return self._done(statements.insert_rows(self._changeable(table), self.runtime.engine.frame(rows)))

    def delete(self, table: str, rows: DataFrame | pa.Table) -> Outcome:
        """Rows to delete: the key's columns, or all of them. Each must be there."""
        with self._statement("running a statement"):
            return self._done(statements.delete_rows(self._changeable(table), self.runtime.engine.frame(rows)))

    def apply(self, table: str, changes: DataFrame | pa.Table) -> Outcome:
        """A signed bag: the columns and `weight` (or `__weight`), positive for rows that come, negative for others."""
        with self._statement("running a statement"):
            return self._done(statements.apply_changes(self._changeable(table), self.runtime.engine.frame(changes)))

    # what sources give ------------------------------------------------------------------------------------------------

    def feed(self, table: str, changes: DataFrame) -> Outcome:
        """What a round has captured: all columns and `__weight`. As `apply`, to a table that its source alone feeds."""
        self._require_open()
        with translated("taking over changes"):
            return self._done(statements.apply_captured(self.tables[table], changes))

    def note(self, table: str, changes: pa.Table) -> Outcome:
        """As `feed`, of a table that stays at its source: written down for views, where any read it."""
        self._require_open()
        return self._done(noted(self.tables[table], changes))

    def stay(self, name: str, schema: Schema, source: str, rows: int) -> int:
        """A new table whose rows stay at the source, about so many; the id that it will have."""
        self._require_open()
        made = self.tables.create(name, schema, staying_at(source, rows))
        self._context.note_definition()
        self._noted(f"table {name} stays at its source")
        return made.table.id

    def renew(self, source: SourceRecord, table: SourceTableRecord) -> None:
        """A table that stays at its source goes on from another state: views that read it are computed anew."""
        self._require_open()
        self.tables[table.table].renewed = True
        self.remote.tables[table.table] = source, table

    def load(self, name: str, schema: Schema, fill: Callable[[Working], Counts]) -> int:
        """A new table with its first rows; the id that it will have."""
        with self._statement("loading a table"):
            self._noted(define(self._context, st.CreateTable(name, schema)))
            working = self.tables[name]
            self._done(fill(working))
            return working.table.id

    def reload(self, table: str, rows: DataFrame | None) -> Outcome:
        """The rows of a table that its source feeds, all of them, in place of those that are there."""
        self._require_open()
        with translated("loading a table"):
            return self._done(statements.replace_rows(self.tables[table], rows))

    def unload(self, *tables: str, cascade: bool) -> Outcome:
        """Tables of a source that is removed go, with the views that read them."""
        self._require_open()
        return self._noted(drop_fed(self._context, tables, cascade=cascade))

    def tell(self, sources: SourceChanges) -> None:
        """What the commit will say of sources and rounds."""
        self._notes.sources = sources

    @contextmanager
    def _statement(self, doing: str) -> Iterator[None]:
        """Done whole, or not at all; a transaction goes on after one that failed."""
        self._require_open()
        with whole(self.tables, self._notes), translated(doing):
            yield

    def _done(self, counts: Counts) -> Outcome:
        self._step("staged")
        return Outcome(counts)

    def query(self, query: exp.Expr, bound: Mapping[str, DataFrame]) -> DataFrame:
        return run_query(self.runtime.engine, query, self._found, self.version, bound=bound)

    def _found(self, reference: exp.Table) -> Found:
        working = self.tables.find(reference)
        return Found(working.table, working.current)

    def _changeable(self, name: str) -> Working:
        working = self.tables[name]
        if working.view is not None:
            raise UnsupportedStatement(
                f"{working.table.name} is a materialized view", help="change the tables that it reads, then refresh it"
            )
        if working.source is not None:
            raise UnsupportedStatement(
                f"{working.table.name} is fed by source {working.source}, and by nobody else",
                help="change the table at its source, then `matview ingest`",
            )
        return working

    def _noted(self, done: str) -> Outcome:
        if done:
            self._notes.done.append(done)
        return Outcome(Counts(), done=done)

    # the end ----------------------------------------------------------------------------------------------------------

    def commit(self) -> Outcome:
        """All of it becomes one version; with nothing changed, no version is spent.

        Before that the rules of viewgroups are checked and immediate views follow. What fails then is rolled back.
        """
        self._require_open()
        counts = sum((w.counts for w in self.tables), Counts())
        groups = self._settle()
        if self.is_idle:
            self._end_idle(groups)
            return Outcome(counts)
        changes = catalog_changes(list(self.tables), self._notes, groups)
        staying = [working for working in touched(self.tables) if not working.dropped]
        interrupted = self._publish(staying, changes)
        self._step("committed")
        self._tail(staying)
        if interrupted is not None:
            raise interrupted
        return Outcome(counts, self.version, ", ".join(self._notes.done))

    def _settle(self) -> GroupChanges:
        try:
            with translated("refreshing views"):
                return settle(self._context)
        except BaseException as error:
            self._give_up(error)
            raise

    def _end_idle(self, groups: GroupChanges) -> None:
        """No version is spent; what the catalog refuses leaves the transaction as rolled back as any other."""
        try:
            self._note_progress(groups)
        except BaseException as error:
            self._give_up(error)
            raise
        self._step("idle")
        self._abort()

    def _note_progress(self, groups: GroupChanges) -> None:
        """Views that had nothing to take over have come as far as the current version."""
        known = [edge for ids, edge in self._notes.edges.items() if ids in self.tables.edges]
        if known or groups.refreshed or self._notes.sources:
            reached = [edge if edge.anew else replace(edge, consumed=self.version - 1) for edge in known]
            done = [replace(record, vn=self.version - 1) for record in self._notes.refreshes]
            self.runtime.catalog.transactions.progress(self.lease, reached, groups, done, self._notes.sources)

    def _publish(self, staying: list[Working], changes: CatalogChanges) -> BaseException | None:
        """To the tables, then to the catalog. An interruption after the last step is given back: the version stands."""
        try:
            wait_to_commit(self._policy, self.runtime.catalog.sessions.count_live, self._keeper.check)
            commit_tables(self.runtime, self.lease, staying, self._step)
            self._keeper.check()
            self.runtime.catalog.transactions.commit(self.lease, changes)
        except LeaseLost:
            self._end("lost to another")
            raise
        except BaseException as error:
            state = self._settled()
            if state == "committed":
                return None if isinstance(error, Exception) else error
            if state is None:
                self._end("cut off before its outcome was known")
            else:
                self._undo(error)
            raise
        return None

    def _settled(self) -> TransactionState | None:
        """A commit may have happened although its answer was lost; None if nobody can say now."""
        try:
            return self.runtime.catalog.transactions.settled(self.lease)
        except MatviewError:
            return None

    def _tail(self, staying: list[Working]) -> None:
        """The version stands: nothing that goes wrong here may say otherwise."""
        try:
            for working in staying:
                with translated("folding"):
                    fold_if_due(self.runtime, self.lease, working.table, self._step)
            self.runtime.catalog.transactions.finish(self.lease)
            self._step("finished")
        except LeaseLost:
            pass  # whoever took over finishes it
        except (MatviewError, OSError) as error:
            log.warning(
                "version %s is committed; folding after it failed and will be tried again: %s", self.version, error
            )
        finally:
            self._end("committed")

    def rollback(self) -> None:
        """Nothing of it remains; staged files are collected as garbage."""
        self._require_open()
        self._abort()

    def _give_up(self, error: BaseException) -> None:
        """Rolled back because of an error: what went wrong first is what matters, and is told by history."""
        with suppress(MatviewError):  # the next who takes the lease cleans up
            self._abort(_told(error))

    def _abort(self, error: str | None = None) -> None:
        try:
            self.runtime.catalog.transactions.abort(self.lease, error=error, garbage=left_behind(self.tables))
        finally:
            self._end("rolled back")

    def _undo(self, error: BaseException) -> None:
        """A commit that failed half way: what it added to tables is taken out again, now or by the next in line."""
        try:
            take_back(self.runtime, self.lease, self.tables, self.version - 1)
            self.runtime.catalog.transactions.abort(self.lease, error=_told(error))
        except MatviewError:
            pass  # the journal stays: whoever takes the lease next undoes it
        finally:
            self._end("failed")

    def _end(self, how: str) -> None:
        self._over = how
        self.remote.answers.forget()
        self._let_go()

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
        self._give_up(error)


def _given_back(catalog: Catalog, keeper: LeaseKeeper) -> None:
    """At the end of a transaction, or when it was forgotten: the next who takes the lease cleans up after it."""
    keeper.stop()
    with suppress(MatviewError):  # a lease that cannot be given back expires by itself
        catalog.lease.release(keeper.lease)


def _told(error: BaseException) -> str:
    """An error in a line. Of those that are not ours only the kind: nobody knows what their texts give away."""
    return str(error).splitlines()[0] if isinstance(error, MatviewError) else type(error).__name__
