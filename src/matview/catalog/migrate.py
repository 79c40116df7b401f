"""From the schema a catalog has to the schema of today, in one transaction; never backwards."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, delete, insert, inspect, select, text

from matview.catalog import schema
from matview.catalog.migrations import MIGRATIONS, Migration
from matview.catalog.store import Reading, Store, Writing
from matview.errors import CatalogCorrupt, CatalogTooNew

ONE_AT_A_TIME = 0x6D617476696577  # "matview": the advisory lock of whoever migrates


def stored_number(reading: Reading) -> int | None:
    """The catalog's schema number; None where there is no catalog."""
    if not inspect(reading.connection).has_table(schema.schema_number.name):
        return None
    numbers = [row["number"] for row in reading.rows(select(schema.schema_number))]
    if len(numbers) != 1 or not isinstance(numbers[0], int) or numbers[0] < 1:
        raise CatalogCorrupt(f"the catalog's schema number is {numbers} instead of one number")
    return numbers[0]


def upgrade(store: Store, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Run the migrations that a catalog lacks: all of them, or none if one fails."""
    if _lacking(store.read(stored_number), store, migrations):
        store.write(lambda writing: _run_lacking(writing, store, migrations))


def run_migrations(writing: Writing, migrations: Sequence[Migration], before: int = 0) -> None:
    """Run all after number `before`, then note the number reached."""
    for migration in migrations[before:]:
        migration(writing.connection)
    writing.change(delete(schema.schema_number))
    writing.change(insert(schema.schema_number).values(number=len(migrations)))


def lock_migrations(connection: Connection) -> None:
    """One process migrates at a time (in SQLite, BEGIN IMMEDIATE has seen to it)."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": ONE_AT_A_TIME})


def _run_lacking(writing: Writing, store: Store, migrations: Sequence[Migration]) -> None:
    lock_migrations(writing.connection)
    number = stored_number(writing)  # another process may have been faster
    if _lacking(number, store, migrations):
        run_migrations(writing, migrations, before=number or 0)


def _lacking(number: int | None, store: Store, migrations: Sequence[Migration]) -> bool:
    if number is None:
        raise CatalogCorrupt(f"the database {store.database.name} holds no catalog")
    if number > len(migrations):
        what = f"the catalog {store.database.name} has schema {number}, this Matview knows up to {len(migrations)}"
        raise CatalogTooNew(what)
    return number < len(migrations)
