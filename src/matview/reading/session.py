"""A reader session: it pins the current version and reads it, through the rewrite, until it is closed or expires."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType

from pyspark.sql import DataFrame
from sqlglot import exp

from matview.catalog.groups import moment
from matview.catalog.records import Grain, SessionRecord
from matview.errors import SessionClosed, SessionExpired, UnsupportedStatement, WarehouseClosed
from matview.groups.graph import BASE
from matview.groups.states import State
from matview.reading.heart import Heart
from matview.sql import statements as st
from matview.sql.parse import parse_one
from matview.storage.query import Found, run_query
from matview.storage.runtime import Runtime
from matview.storage.text import query_text
from matview.versions.expiry import global_expired, table_expired
from matview.versions.rewrite import Dialect


class Reader:
    """Reads one version, from the newest snapshot of each table, for as long as that version can be told."""

    def __init__(self, runtime: Runtime, version: int, grain: Grain) -> None:
        self._runtime = runtime
        self.version = version
        self._grain = grain

    def query(self, query: exp.Expr) -> DataFrame:
        frame = run_query(self._runtime.engine, query, self._found, self.version, self._grain)
        self._check_horizon()
        return frame

    def text(self, query: exp.Expr, dialect: Dialect) -> str:
        made = query_text(query, self._found, self.version, dialect)
        self._check_horizon()
        return made

    def _found(self, reference: exp.Table) -> Found:
        """The newest snapshot, once it is sure that this version can still be told from it."""
        state = self._runtime.catalog.version()
        if self._grain == "global" and global_expired(
            self.version, state.current_vn, state.maintenance_active, state.versions
        ):
            raise SessionExpired(f"version {self.version} is too far behind version {state.current_vn}")
        record = self._runtime.record(reference, self.version)
        table = self._runtime.tables.table(record, state.versions)
        snapshot = table.log.load()
        if self._grain != "tuple" and table_expired(self.version, snapshot.facts(table.layout), table.layout):
            raise SessionExpired(f"{table.name} has changed too often since version {self.version}")
        return Found(table, snapshot)

    def _check_horizon(self) -> None:
        """After the snapshots are loaded: what garbage collection may have taken is decided before it is taken."""
        state = self._runtime.catalog.version()
        if self.version < max(state.gc_horizon, state.floor):
            raise SessionExpired(f"what version {self.version} needs may have been collected as garbage")


class ReaderSession:
    """Every query in it reads `version`. Queries never wait for maintenance; `SessionExpired` tells to begin anew."""

    def __init__(self, runtime: Runtime, heart: Heart, record: SessionRecord) -> None:
        self._runtime = runtime
        self._heart = heart
        self._record = record
        self._reader = Reader(runtime, record.version, record.grain)
        self._closed = False
        heart.add(record.id, record.ttl)

    @property
    def id(self) -> str:
        return self._record.id

    @property
    def version(self) -> int:
        return self._record.version

    @property
    def record(self) -> SessionRecord:
        """The session as it stands in the catalog."""
        return self._record

    def states(self) -> dict[str, State]:
        """The effective state of each viewgroup, as of this session's version; `base` shows that version itself."""
        self._require_open()
        shown = self._runtime.catalog.groups.states(self.version)
        own = {BASE: State(self.version, moment(self._record.opened_at))}
        return own | {state.group: State(state.version, moment(state.at)) for state in shown}

    def sql(self, text: str) -> DataFrame:
        """A query, as of this session's version."""
        return self.query(_query(text))

    def query(self, query: exp.Expr) -> DataFrame:
        with self._reading() as reader:
            return reader.query(query)

    def text(self, text: str, dialect: Dialect) -> str:
        """The rewritten query, for another engine to run on the same files."""
        with self._reading() as reader:
            return reader.text(_query(text), dialect)

    @contextmanager
    def _reading(self) -> Iterator[Reader]:
        self._require_open()
        try:
            yield self._reader
        except SessionExpired as error:
            self._runtime.catalog.sessions.mark_expired(self.id)
            self._heart.remove(self.id)
            raise SessionExpired(f"session {self.id} has expired: {error.what}") from None

    def _require_open(self) -> None:
        if self._closed:
            raise SessionClosed(f"session {self.id} was closed")

    def detach(self) -> None:
        """Lets go without closing: the session stays open for whoever attaches to it within its time to live."""
        self._closed = True
        self._heart.remove(self.id)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._heart.remove(self.id)
            with suppress(WarehouseClosed):  # which has closed its sessions, too
                self._runtime.catalog.sessions.close(self.id)

    def __enter__(self) -> ReaderSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _query(text: str) -> exp.Expr:
    statement = parse_one(text)
    if not isinstance(statement, st.Query):
        raise UnsupportedStatement(
            "a reader session runs queries only", help="change tables with `wh.sql` or a transaction"
        )
    return statement.query
