"""Does the catalog contradict itself? A tuple of checks, each giving what is wrong; all in one snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlalchemy import func, select, text

from matview.catalog import codec, schema
from matview.catalog.store import Reading
from matview.catalog.transactions import OPEN
from matview.catalog.version import version_row
from matview.errors import CatalogCorrupt

_runs = schema.transaction.c


def pages(reading: Reading) -> Iterator[str]:
    """SQLite's own look at its file."""
    if reading.connection.dialect.name == "sqlite":
        told = str(reading.value(text("PRAGMA quick_check(1)")))
        if told != "ok":
            yield told


def tables_and_columns(reading: Reading) -> Iterator[str]:
    """Every table is there with every column: asking for them is enough, the database complains."""
    for table in schema.metadata.sorted_tables:
        reading.rows(select(table).limit(0))
    yield from ()


def version(reading: Reading) -> Iterator[str]:
    """currentVN >= 1, n >= 2, and 0 <= floor, gc_horizon <= gc_claim <= currentVN."""
    row = version_row(reading)
    if int(row["current_vn"]) < 1 or int(row["versions"]) < 2:
        yield f"currentVN is {row['current_vn']} and the number of versions {row['versions']}"
    if not 0 <= row["gc_horizon"] <= row["gc_claim"] <= row["current_vn"]:
        yield "garbage collection went beyond currentVN"
    if not 0 <= row["floor"] <= row["current_vn"]:
        yield "versions up to currentVN, and beyond, have expired"


def lease(reading: Reading) -> Iterator[str]:
    """One row, and no transaction with a token that was never given."""
    rows = reading.rows(select(schema.lease))
    if len(rows) != 1:
        yield f"the lease has {len(rows)} rows instead of one"
    elif (greatest := reading.value(select(func.max(_runs.token)))) is not None and greatest > rows[0]["token"]:
        yield f"transaction {greatest} has a token that was never given"


def transactions(reading: Reading) -> Iterator[str]:
    """maintenanceActive <=> one transaction is open, at currentVN + 1; the last commit made currentVN."""
    row = version_row(reading)
    active = [run["vn"] for run in reading.rows(select(_runs.vn).where(_runs.state.in_(OPEN)))]
    if active != ([row["current_vn"] + 1] if row["maintenance_active"] else []):
        yield f"maintenanceActive is {row['maintenance_active']}, and transactions are open at versions {active}"
    last = reading.value(select(func.max(_runs.vn)).where(_runs.state == "committed"))
    if (last or 1) != row["current_vn"]:
        yield f"currentVN is {row['current_vn']}, but the last commit was version {last}"


def tables(reading: Reading) -> Iterator[str]:
    """Every definition can be read, no id is beyond those reserved, and nothing was made in the future."""
    row = version_row(reading)
    for stored in reading.rows(select(schema.table)):
        record = codec.table_record(stored)
        if record.id >= row["next_table_id"]:
            yield f"table {record.name!r} has id {record.id}, which was never reserved"
        if max(record.created_vn, record.dropped_vn or 0) > row["current_vn"]:
            yield f"table {record.name!r} was created or dropped after currentVN {row['current_vn']}"


def sessions(reading: Reading) -> Iterator[str]:
    """No session reads a version that is yet to come."""
    latest = reading.value(select(func.max(schema.session.c.version)))
    if latest is not None and latest > version_row(reading)["current_vn"]:
        yield f"a session reads version {latest}, which is yet to come"


CHECKS: tuple[Callable[[Reading], Iterator[str]], ...] = (
    pages,
    tables_and_columns,
    version,
    lease,
    transactions,
    tables,
    sessions,
)


def check(reading: Reading) -> None:
    """CatalogCorrupt with the first thing that is wrong, if any."""
    for one in CHECKS:
        try:
            wrong = next(one(reading), None)
        except (TypeError, ValueError, LookupError) as error:
            raise CatalogCorrupt(f"the catalog holds a value of the wrong kind: {error}") from error
        if wrong is not None:
            raise CatalogCorrupt(f"the catalog contradicts itself: {wrong}")
