"""A reader session: it pins the current version and reads it, through the rewrite, until it is closed or expires."""

from __future__ import annotations

from types import TracebackType

from pyspark.sql import DataFrame
from sqlglot import exp

from matview.catalog.records import SessionRecord, VersionState
from matview.errors import SessionClosed, SessionExpired, UnsupportedStatement
from matview.reading.heart import Heart
from matview.sql import statements as st
from matview.sql.parse import parse_one
from matview.storage.query import Found, run_query
from matview.storage.runtime import Runtime
from matview.storage.text import query_text
from matview.versions.expiry import global_expired, table_expired
from matview.versions.rewrite import Dialect


class ReaderSession:
    """Every query in it reads `version`. Queries never wait for maintenance; `SessionExpired` tells to begin anew."""

    def __init__(self, runtime: Runtime, heart: Heart, record: SessionRecord) -> None:
        self._runtime = runtime
        self._heart = heart
        self._record = record
        self._closed = False
        heart.add(record.id, record.ttl)

    @property
    def id(self) -> str:
        return self._record.id

    @property
    def version(self) -> int:
        return self._record.version

    def sql(self, text: str) -> DataFrame:
        """A query, as of this session's version."""
        return self.query(_query(text))

    def query(self, query: exp.Expr) -> DataFrame:
        self._require_open()
        frame = run_query(self._runtime.engine, query, self._found, self.version, self._record.grain)
        self._check_horizon()
        return frame

    def text(self, text: str, dialect: Dialect) -> str:
        """The rewritten query, for another engine to run on the same files."""
        self._require_open()
        made = query_text(_query(text), self._found, self.version, dialect)
        self._check_horizon()
        return made

    def _found(self, reference: exp.Table) -> Found:
        """The newest snapshot, once it is sure that this session's version can still be told from it."""
        state = self._runtime.catalog.version()
        self._check_global(state)
        record = self._runtime.record(reference, self.version)
        table = self._runtime.tables.table(record, state.versions)
        snapshot = table.log.load()
        if self._record.grain != "tuple" and table_expired(self.version, snapshot.facts(table.layout), table.layout):
            raise self._expired(f"{table.name} has changed too often since version {self.version}")
        return Found(table, snapshot)

    def _check_global(self, state: VersionState) -> None:
        if self._record.grain == "global" and global_expired(
            self.version, state.current_vn, state.maintenance_active, state.versions
        ):
            raise self._expired(f"version {self.version} is too far behind version {state.current_vn}")

    def _check_horizon(self) -> None:
        """After the snapshots are loaded: what garbage collection may have taken is decided before it is taken."""
        state = self._runtime.catalog.version()
        if self.version < max(state.gc_horizon, state.floor):
            raise self._expired(f"what version {self.version} needs may have been collected as garbage")

    def _expired(self, why: str) -> SessionExpired:
        self._runtime.catalog.sessions.mark_expired(self.id)
        self._heart.remove(self.id)
        return SessionExpired(f"session {self.id} has expired: {why}")

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
