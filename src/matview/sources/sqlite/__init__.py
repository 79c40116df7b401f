"""SQLite as a source: triggers for each table, numbers instead of transactions, and no reader in a writer's way."""

from __future__ import annotations

from typing import ClassVar

from matview.sources.delegated import DatabaseSource, of_database
from matview.sources.sqlite import capture as capturing
from matview.sources.sqlite import describing, first, remote
from matview.sources.sqlite import install as installing
from matview.sources.sqlite.connect import Database
from matview.sources.urls import SourceUrl


class SqliteSource(DatabaseSource[Database]):
    """A SQLite file."""

    tells_transactions: ClassVar[bool] = False

    def __init__(self, address: SourceUrl) -> None:
        self.database = Database(address)
        with self.database.reading():
            pass

    def __repr__(self) -> str:
        return f"SqliteSource({self.database.address.stored!r})"

    describe = of_database(describing.describe)
    tables = of_database(describing.tables)
    check = of_database(installing.check)
    install = of_database(installing.install)
    remove = of_database(installing.remove)
    first_state = of_database(first.first_state)
    capture = of_database(capturing.capture)
    changes = of_database(capturing.changes)
    acknowledge = of_database(capturing.acknowledge)
    evaluate = of_database(remote.evaluate)
    waiting = of_database(capturing.waiting)
