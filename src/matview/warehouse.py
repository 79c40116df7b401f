"""The warehouse: the one object that users hold."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import get_args

from pyspark.sql import DataFrame, SparkSession
from sqlglot import exp

from matview.catalog.catalog import Catalog
from matview.catalog.inventory import planned
from matview.catalog.records import Grain, RefreshRecord, SessionRecord, TableRecord, TransactionRecord
from matview.catalog.settings import FILE_RETENTION
from matview.catalog.source_records import Consistency, SourceRecord
from matview.errors import (
    BadSetting,
    MaintenanceBusy,
    MatviewError,
    SessionClosed,
    SessionExpired,
    SourceTableUnknown,
    WarehouseClosed,
)
from matview.maintain.apply import Applied, apply, refuse_if_illegal
from matview.maintain.change.working import Counts
from matview.maintain.commit import Step
from matview.maintain.deferred import pinned, up_to_date
from matview.maintain.definitions import Definitions
from matview.maintain.outcome import Outcome
from matview.maintain.policy import CommitPolicy
from matview.maintain.remote.connections import Connections
from matview.maintain.rounds import load
from matview.maintain.rounds.ingest import Ingested, ingest
from matview.maintain.rounds.place import Place
from matview.maintain.transaction import MaintenanceTransaction
from matview.maintain.upkeep.collect import Collected, collect
from matview.maintain.upkeep.versions import raise_versions
from matview.maintain.views.difference import Against, difference_of
from matview.maintain.views.explaining import explained
from matview.maintain.views.refresh import Mode
from matview.opening import open_catalog, open_or_create
from matview.plan.propose.proposal import Proposal
from matview.reading.extended import extended_relation
from matview.reading.groups import GroupStatus, groups_of
from matview.reading.heart import Heart
from matview.reading.session import Reader, ReaderSession
from matview.reading.shown import (
    GROUP_COLUMNS,
    REFRESH_COLUMNS,
    SESSION_COLUMNS,
    VIEW_COLUMNS,
    refresh_row,
    session_row,
)
from matview.reading.sources import SOURCE_COLUMNS, SourceStatus, asked_anew, sources_of
from matview.reading.status import Status, status_of
from matview.reading.views import ViewStatus, refreshes_of, views_of
from matview.settings import DEFAULT_RETENTION, Settings
from matview.sources.engine import Problem, Waiting
from matview.sources.names import split
from matview.spark.session import spark_session
from matview.sql import statements as st
from matview.sql.parse import parse, parse_one
from matview.storage.engine import Engine
from matview.storage.files import Files
from matview.storage.query import refuse_remote
from matview.storage.runtime import Runtime
from matview.storage.tables import OpenTables
from matview.versions.references import table_references

Spark = SparkSession | Callable[[], SparkSession]
"""A session, or a way to start one when it is first needed."""


class Warehouse:
    """Tables in `path`, versions and sessions in the catalog. Threads may share it; processes each open their own."""

    def __init__(self, path: str, catalog: Catalog, spark: Spark, settings: Settings) -> None:
        engine = Engine(spark)
        self.path = path
        self._runtime = Runtime(catalog, engine, OpenTables(Files(path), engine), settings)
        self._heart = Heart(catalog)
        self._opened: set[str] = set()
        self._wanted_versions = 0
        self._definitions = Definitions()
        self._connections = Connections()
        self._closed = False

    @property
    def spark(self) -> SparkSession:
        return self._runtime.engine.spark

    @property
    def runtime(self) -> Runtime:
        """What the warehouse is made of, for tools and experiments."""
        return self._runtime

    @property
    def catalog(self) -> Catalog:
        return self._runtime.catalog

    # changing ---------------------------------------------------------------------------------------------------------

    def sql(self, text: str) -> DataFrame | Outcome:
        """One statement: a query reads the newest version, a change is a maintenance transaction of its own."""
        return self.run(parse_one(text))

    def run(self, statement: st.Statement) -> DataFrame | Outcome:
        self._require_open()
        match statement:
            case st.Query(query):
                return self._newest(query)
            case st.ShowTables():
                return self._frame([(t.name, t.directory) for t in self.tables()], "table string, directory string")
            case st.ShowViews():
                return self._frame([v.row for v in self.views()], VIEW_COLUMNS)
            case st.ShowViewgroups() | st.ShowSources() | st.ShowSessions() | st.ShowRefreshes():
                return self._show(statement)
            case st.ExplainView(view):
                return self._frame([(line,) for line in self.explain(view).splitlines()], "plan string")
            case st.Describe(table):
                return self._describe(table)
            case st.SetVersions(versions):
                return self.set_versions(versions)
            case st.CreateSource() | st.DropSource() | st.RefreshSource():
                return self._run_on_source(statement)
            case _:
                refuse_if_illegal(self.catalog, statement)
                with self.transaction() as tx:
                    tx.run(statement)
                    return tx.commit()

    def plan(self, definitions: str | Sequence[st.Statement]) -> Proposal:
        """What these definitions would create, change and drop, and all that would be wrong then; nothing is done."""
        self._require_open()
        return planned(self.catalog, _statements(definitions))

    def apply(self, definitions: str | Sequence[st.Statement]) -> Applied:
        """Does what `plan` tells, all of it as one version; what is there already, and just so, stays as it is."""
        self._require_open()
        return apply(self.catalog, self.transaction, _statements(definitions))

    def _run_on_source(self, statement: st.OfSources) -> Outcome:
        known = {source.name.casefold() for source in self.catalog.sources.list() if source.state == "active"}
        match statement:
            case st.CreateSource(name, if_not_exists=True) if name.casefold() in known:
                return Outcome(Counts())
            case st.CreateSource(name, url, tables, remote, mode):
                return self.add_source(name, url, tables, replicate=tables.keys() - remote, mode=mode)
            case st.DropSource(name, if_exists=True) if name.casefold() not in known:
                return Outcome(Counts())
            case st.DropSource(name, _, cascade):
                return self.remove_source(name, cascade=cascade)
            case st.RefreshSource(name):
                done = self.ingest(name)
                return Outcome(Counts(), done.version, str(replace(done, version=None)))

    def _show(self, statement: st.ShowViewgroups | st.ShowSources | st.ShowSessions | st.ShowRefreshes) -> DataFrame:
        match statement:
            case st.ShowSources():
                return self._frame([source.row for source in self.sources()], SOURCE_COLUMNS)
            case st.ShowViewgroups():
                return self._frame([group.row for group in self.viewgroups()], GROUP_COLUMNS)
            case st.ShowSessions():
                return self._frame([session_row(session) for session in self.sessions()], SESSION_COLUMNS)
            case st.ShowRefreshes():
                return self._frame([refresh_row(record) for record in self.refreshes()], REFRESH_COLUMNS)

    def _newest(self, query: exp.Expr) -> DataFrame:
        """The newest version, without a session: the plan is made at once, and stays right for the retention of files.

        Deferred views that it reads are brought up to date first. If so much happens while the plan is made that this
        version can no longer be told, there is a newer one.
        """
        names = [reference.name for reference in table_references(query)]
        while True:
            version = up_to_date(self._runtime, self._stepping, names)
            try:
                return Reader(self._runtime, version, "table").query(query)
            except SessionExpired:
                continue

    def _stepping(self, step: Step | None) -> MaintenanceTransaction:
        return self.transaction(step=step)

    def transaction(
        self, *, wait: float | None = None, commit: CommitPolicy | None = None, step: Step | None = None
    ) -> MaintenanceTransaction:
        """Several statements, all or nothing. `wait`: how long for another to end; `commit`: when to commit."""
        self._require_open()
        self._runtime.engine.start()  # before the lease is taken: nobody has to wait while Spark starts
        if self._wanted_versions:
            self._raise_versions(self._wanted_versions, wait)
        return MaintenanceTransaction(
            self._runtime,
            wait=wait,
            policy=commit,
            step=step,
            definitions=self._definitions,
            connections=self._connections,
        )

    def refresh(self, *names: str, mode: Mode = "auto") -> Outcome:
        """Brings viewgroups and views up to date; `mode="full"` computes them anew, whatever would be cheaper.

        A snapshot view is refreshed with its viewgroup. Several are refreshed in one transaction, and what they have in
        common is computed once.
        """
        with self.transaction() as tx:
            tx.refresh(*names, mode=mode)
            return tx.commit()

    def set_versions(self, versions: int) -> Outcome:
        """Keeps more versions from now on; no data is rewritten, older files read as having empty slots."""
        self._require_open()
        self._runtime.engine.start()
        self._raise_versions(versions)
        return Outcome(Counts(), done=f"{versions} versions are kept from now on")

    def _raise_versions(self, versions: int, wait: float | None = None) -> None:
        raise_versions(self._runtime, versions, wait=wait)
        self._wanted_versions = 0

    def want_versions(self, versions: int) -> None:
        """As `set_versions` on a warehouse that has fewer; while another maintains it, our next transaction does so."""
        if versions <= self.catalog.version().versions:
            return
        self._wanted_versions = versions
        with suppress(MaintenanceBusy):
            self._runtime.engine.start()
            self._raise_versions(versions, wait=0.0)

    def gc(self, *, wait: float | None = None) -> Collected:
        """Collects what no session, and no plan within the retention, can need."""
        self._require_open()
        self._runtime.engine.start()
        return collect(self._runtime, wait=wait)

    # sources ----------------------------------------------------------------------------------------------------------

    def add_source(
        self,
        name: str,
        url: str,
        tables: str | Sequence[str] | Mapping[str, str],
        *,
        replicate: bool | Collection[str] = True,
        mode: Consistency = "strong",
        prefix: str = "",
        step: Step | None = None,
    ) -> Outcome:
        """Captures tables of a database from now on: their rows are read beside its writers, their changes by `ingest`.

        `tables` are named as there; a mapping says what they are called here, else they keep their last name, with
        `prefix` before it. Those that `replicate` does not name (all of them, if it is false) stay there: no rows are
        copied, and views ask for what they need. `mode="complete"` makes a version of each transaction there. A
        password belongs into the environment or a file (`?password_env=NAME`, `?password_file=PATH`): one in the URL
        is not kept.
        """
        listed = [tables] if isinstance(tables, str) else tables
        named = listed if isinstance(listed, Mapping) else {table: prefix + split(table)[-1] for table in listed}
        copied = frozenset(replicate if not isinstance(replicate, bool) else named if replicate else ())
        if copied - named.keys():
            raise SourceTableUnknown(f"{min(copied - named.keys())} is not among the tables of source {name}")
        return load.add(self.place(step), load.Wanted(name, url, named, mode, copied))

    def ingest(self, *sources: str, step: Step | None = None) -> Ingested:
        """One round over these sources, or over all: what has committed there is taken over, as one version."""
        return ingest(self.place(step), *sources)

    def check_source(self, name: str) -> list[Problem]:
        """What stands against taking changes over from a source, and what to do about it."""
        return load.check(self.place(), name)

    def reload_source(self, name: str) -> Outcome:
        """Reads the stopped tables of a source whole again, once what stopped them is mended."""
        return load.reload(self.place(), name)

    def remove_source(self, name: str, *, cascade: bool = False, force: bool = False) -> Outcome:
        """Its tables go here, and capture there; `cascade`: with the views that read them. `force`: although it cannot
        be reached, so that capture stays there."""
        return load.remove(self.place(), name, cascade=cascade, force=force)

    def sources(self, *, ask: bool = False) -> list[SourceStatus]:
        """The sources there are, and what was taken over; with `ask`, also what waits there."""
        self._require_open()
        return sources_of(self.catalog, self._asked if ask else None)

    def _asked(self, source: SourceRecord) -> Waiting:
        return asked_anew(source, self._connections.url(source))

    def place(self, step: Step | None = None) -> Place:
        """What rounds work with, for whoever runs their steps one by one."""
        self._require_open()
        made = Place(self._runtime, self._connections, self._stepping)
        return made if step is None else replace(made, step=step)

    # reading ----------------------------------------------------------------------------------------------------------

    def session(self, *, grain: Grain = "table", ttl: float | None = None) -> ReaderSession:
        """Pins the current version. `grain` says how expiry is told: 'tuple' (exact), 'table', or 'global'.

        Deferred views are brought up to date before that.
        `ttl`: how many seconds it outlives this process, should that die; the setting `session_ttl` if not given.
        """
        self._require_open()
        if grain not in get_args(Grain):
            raise BadSetting(f"there is no grain {grain!r}", help=f"use one of {', '.join(get_args(Grain))}")
        life = self._runtime.settings.session_ttl if ttl is None else ttl
        record = pinned(self._runtime, self._stepping, grain, life)
        self._opened.add(record.id)
        return ReaderSession(self._runtime, self._heart, record)

    def attach(self, session_id: str) -> ReaderSession:
        """A session that is open already, perhaps opened by another process; it is kept alive from here as well."""
        self._require_open()
        record = self.catalog.sessions.get(session_id)
        if record is None or record.reason == "closed":
            what = f"there is no open session {session_id!r}"
            raise SessionClosed(what, help="`matview session list` shows those there are")
        if not record.live(self.catalog.now()) or not self.catalog.sessions.heartbeat(session_id):
            raise SessionExpired(f"session {session_id} has ended: {_ending(record)}")
        return ReaderSession(self._runtime, self._heart, record)

    def versions(self, table: str) -> DataFrame:
        """The extended relation of the paper: tuple_vn, operation, the columns, and pre_ of the updatable ones."""
        record = self.table(table)
        opened = self._runtime.tables.table(record, self.catalog.version().versions)
        refuse_remote(opened)
        snapshot = opened.log.load()
        return extended_relation(opened, opened.latest(snapshot.files, snapshot.overlay))

    # looking ----------------------------------------------------------------------------------------------------------

    def tables(self, version: int | None = None) -> list[TableRecord]:
        """The tables there are, now or at a version."""
        self._require_open()
        live = self.catalog.tables.live(self.catalog.version().current_vn if version is None else version)
        return [table for table in live if not table.is_hidden]

    def table(self, name: str, version: int | None = None) -> TableRecord:
        """The table of that name, now or at a version; UnknownTable says which there are."""
        self._require_open()
        reference = exp.Table(this=exp.to_identifier(name, quoted=True))
        return self._runtime.record(reference, self.catalog.version().current_vn if version is None else version)

    def views(self) -> list[ViewStatus]:
        """The materialized views there are, and how each was last refreshed."""
        self._require_open()
        return views_of(self.catalog)

    def viewgroups(self) -> list[GroupStatus]:
        """The viewgroups there are: their schedules and views, and the state that each shows."""
        self._require_open()
        return groups_of(self.catalog)

    def refreshes(self, limit: int = 100) -> list[RefreshRecord]:
        """What the last refreshes of views did and took, the newest first; hidden parts are left out."""
        self._require_open()
        return refreshes_of(self.catalog, limit)

    def explain(self, view: st.CreateView | str) -> str:
        """How a view is maintained: its algebra, ADD and DEL, the strategies and their costs, the SQL, what is read.

        The view is named, or is one to be.
        """
        self._require_open()
        reader = Reader(self._runtime, self.catalog.version().current_vn, "table")
        return explained(self._runtime, view, lambda query, _: reader.query(query))

    def diff(self, view: str, against: Against = "effective") -> DataFrame:
        """The view against its query computed anew: rows it lacks have a positive weight, rows too many a negative.

        Computed over the tables as the view has taken them over, its effective state, there should be none; over the
        newest, those are what a refresh would change. As with any query, a deferred view is brought up to date first.
        """
        self._require_open()
        up_to_date(self._runtime, self._stepping, [view])
        return difference_of(self._runtime, self._connections, view, against)

    def audit(self) -> dict[str, int]:
        """How many rows of each view differ from its query over its effective state; all of them should be 0."""
        self._require_open()
        return {view.name: self.diff(view.name).count() for view in self.views()}

    def sessions(self, *, open_only: bool = True) -> list[SessionRecord]:
        self._require_open()
        return list(self.catalog.sessions.list(open_only=open_only))

    def history(self, limit: int | None = 20) -> list[TransactionRecord]:
        """Maintenance transactions, the newest first; None: all."""
        self._require_open()
        return self.catalog.transactions.history(limit)

    def status(self) -> Status:
        """The warehouse at one glance."""
        self._require_open()
        return status_of(self.catalog, self.path)

    def _describe(self, table: str) -> DataFrame:
        schema = self.table(table).schema
        rows = [(c.name, c.type, c.nullable, c.name in schema.key) for c in schema.columns if not c.hidden]
        return self._frame(rows, "column string, type string, nullable boolean, key boolean")

    def _frame(self, rows: Sequence[tuple[object, ...]], schema: str) -> DataFrame:
        return self.spark.createDataFrame(rows, schema)

    # the end ----------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Closes the sessions opened here and gives the catalog back; Spark is left to whoever made it."""
        if not self._closed:
            self._closed = True
            self._heart.stop()
            self._connections.close()
            with suppress(MatviewError):  # a session that cannot be closed dies when nothing is heard of it
                for session_id in self._opened & self._heart.sessions:
                    self.catalog.sessions.close(session_id)
            self.catalog.close()

    def _require_open(self) -> None:
        if self._closed:
            raise WarehouseClosed(f"the warehouse {self.path} was closed")

    def __enter__(self) -> Warehouse:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_warehouse(
    path: str | os.PathLike[str],
    versions: int | None = None,
    spark: Spark | None = None,
    *,
    catalog: str | None = None,
    create: bool = True,
    settings: Settings | None = None,
) -> Warehouse:
    """The warehouse at `path`, made on first use with so many versions (3 if nothing is said).

    `catalog` is the URL of a PostgreSQL database where several machines take part; a SQLite file otherwise. `versions`
    on a warehouse that has fewer raises them. Without `spark`, one is started when it is first needed.
    """
    root, chosen = os.fspath(path), settings or Settings()
    kept = chosen.file_retention
    opened = open_or_create(root, versions, catalog, file_retention=kept) if create else open_catalog(root, catalog)
    try:
        if kept is not None and kept > opened.settings.number(FILE_RETENTION, DEFAULT_RETENTION):
            opened.settings.raise_to(FILE_RETENTION, kept)
        made = Warehouse(root, opened, _spark(spark), chosen)
        made.want_versions(versions or 0)
    except BaseException:
        opened.close()
        raise
    return made


def _spark(given: Spark | None) -> Spark:
    if given is None:
        return lambda: spark_session(None)
    return given if callable(given) else spark_session(given)


def _statements(definitions: str | Sequence[st.Statement]) -> Sequence[st.Statement]:
    return parse(definitions) if isinstance(definitions, str) else definitions


def _ending(record: SessionRecord) -> str:
    if record.reason == "expired":
        return f"version {record.version} can no longer be told"
    return f"nothing was heard of it for its {record.ttl:g} seconds to live"
