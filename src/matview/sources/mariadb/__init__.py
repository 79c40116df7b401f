"""MariaDB as a source: triggers for each table; the delta rows that one snapshot shows are a set of transactions."""

from __future__ import annotations

from typing import ClassVar

from matview.sources.delegated import DatabaseSource, of_database
from matview.sources.mariadb import capture as capturing
from matview.sources.mariadb import first, layout, remote
from matview.sources.mariadb import install as installing
from matview.sources.mariadb.connect import Database, check_version
from matview.sources.urls import SourceUrl


class MariadbSource(DatabaseSource[Database]):
    """A database of a MariaDB server."""

    tells_transactions: ClassVar[bool] = False

    def __init__(self, address: SourceUrl) -> None:
        self.database = Database(address)
        with self.database.connected() as connection:
            check_version(connection)

    def __repr__(self) -> str:
        return f"MariadbSource({self.database.address.stored!r})"

    describe = of_database(layout.describe)
    tables = of_database(layout.table_names)
    check = of_database(installing.check)
    install = of_database(installing.install)
    remove = of_database(installing.remove)
    first_state = of_database(first.first_state)
    capture = of_database(capturing.capture)
    changes = of_database(capturing.changes)
    acknowledge = of_database(capturing.acknowledge)
    evaluate = of_database(remote.evaluate)
    waiting = of_database(capturing.waiting)
