"""The sources of a warehouse: what was taken over from each, and what waits there."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TooLate
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from matview.catalog.catalog import Catalog
from matview.catalog.source_records import SourceRecord
from matview.errors import MatviewError
from matview.reading.shown import moment

if TYPE_CHECKING:
    from matview.sources.engine import Waiting

PATIENCE = 3.0
SOURCE_COLUMNS = (
    "source string, url string, consistency string, state string, tables array<string>, transactions bigint, "
    "rows bigint, last_round timestamp, error string"
)


@dataclass(frozen=True, slots=True)
class FedTable:
    """A table at its source, and in the warehouse; `error`: why it is stopped, if so; `remote`: its rows stay there."""

    name: str
    table: str
    error: str | None = None
    remote: bool = False


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """`transactions` and `rows` were captured so far; `captured_at`: when the last round was installed (seconds).

    What only the source can tell is None where it was not asked: `waiting_rows` and `waiting_transactions` wait there,
    `lag` is how old the oldest of them is (in seconds), `oldest_open` when the oldest transaction began that is open.
    """

    name: str
    url: str
    mode: str
    state: str
    tables: tuple[FedTable, ...]
    transactions: int
    rows: int
    captured_at: float | None
    error: str | None
    waiting_rows: int | None = None
    waiting_transactions: int | None = None
    lag: float | None = None
    oldest_open: float | None = None

    @property
    def row(self) -> tuple[object, ...]:
        """As SHOW SOURCES tells it."""
        tables = [table.table for table in self.tables]
        stopped = [f"{table.table}: {table.error}" for table in self.tables if table.error]
        error = "\n".join(filter(None, [self.error, *stopped])) or None
        at = moment(self.captured_at)
        return self.name, self.url, self.mode, self.state, tables, self.transactions, self.rows, at, error


Ask = Callable[[SourceRecord], "Waiting"]
"""What waits at a source, asked there."""


def sources_of(catalog: Catalog, ask: Ask | None = None) -> list[SourceStatus]:
    """By name; with `ask`, each is asked what waits there, all at once, and not for long."""
    records = catalog.sources.list()
    found = [_status(record) for record in records]
    if ask is None or not records:
        return found
    return list(_asked(zip(records, found, strict=True), ask, catalog.now()))


def _status(record: SourceRecord) -> SourceStatus:
    return SourceStatus(
        record.name,
        record.url,
        record.mode,
        record.state,
        tuple(FedTable(t.name, t.table, t.error, not t.replicate) for t in record.tables),
        record.transactions,
        record.rows,
        record.captured_at,
        record.error,
    )


def _asked(pairs: Iterable[tuple[SourceRecord, SourceStatus]], ask: Ask, now: float) -> Iterable[SourceStatus]:
    """However many do not answer, they are waited for together, and by nobody at the end of the process."""
    until = time.monotonic() + PATIENCE
    asked = [(_begun(ask, record), status) for record, status in pairs]
    for answer, status in asked:
        try:
            waiting = answer.result(timeout=max(0.0, until - time.monotonic()))
        except MatviewError as error:
            yield replace(status, error=str(error))
        except TooLate:
            yield replace(status, error=f"no answer within {PATIENCE:g} s")
        else:
            yield _with(status, waiting, now)


def _begun(ask: Ask, record: SourceRecord) -> Future[Waiting]:
    """The answer to be, of a thread that nobody waits for."""
    answer: Future[Waiting] = Future()

    def run() -> None:
        try:
            answer.set_result(ask(record))
        except BaseException as error:  # whoever wants the answer raises it
            answer.set_exception(error)

    threading.Thread(target=run, name="matview-ask", daemon=True).start()
    return answer


def _with(status: SourceStatus, waiting: Waiting, now: float) -> SourceStatus:
    lag = 0.0 if waiting.since is None else max(0.0, now - waiting.since.timestamp())
    return replace(
        status,
        waiting_rows=waiting.rows,
        waiting_transactions=waiting.transactions,
        lag=lag if waiting.rows else 0.0,
        oldest_open=_seconds(waiting.oldest_open),
    )


def _seconds(at: datetime | None) -> float | None:
    return None if at is None else at.timestamp()


def asked_anew(record: SourceRecord, url: str | None = None) -> Waiting:
    """By a connection of its own, which nobody else waits for; `url` is one with a password, if that is known."""
    # Imported here for the sake of start-up time: drivers and pyarrow are needed only where there are sources.
    from matview.catalog.described import all_described
    from matview.sources import connect

    engine = connect(url or record.url)
    try:
        return engine.waiting(all_described(record.tables))
    finally:
        engine.close()
