"""Opening: what is missing, broken, too new or too old."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Connection, create_engine, inspect, make_url, text
from tests.waiting import wait_until

from matview.catalog import Catalog, schema, url_of_file
from matview.catalog.connect import database
from matview.catalog.migrate import stored_number, upgrade
from matview.catalog.migrations import MIGRATIONS
from matview.catalog.store import Reading, Store
from matview.errors import BadSetting, CatalogCorrupt, CatalogTooNew, CatalogUnavailable, MatviewError

CONTRADICTIONS = {
    "two version rows gone": "DELETE FROM matview_version",
    "lease gone": "DELETE FROM matview_lease",
    "version without a commit": "UPDATE matview_version SET current_vn = 5",
    "active without a transaction": "UPDATE matview_version SET maintenance_active = true",
    "a token never given": "INSERT INTO matview_transaction VALUES (9,2,'aborted','h',0,0,'[]','{}',NULL,true)",
    "two open transactions": "INSERT INTO matview_transaction VALUES (0,2,'active','h',0,0,'[]','{}',NULL,false)",
    "a table never reserved": """INSERT INTO matview_table VALUES
        (7,'t','t','{"columns": [["a","int",true]], "key": []}','{}','d',1,NULL,0)""",
    "a definition that is no JSON": """UPDATE matview_version SET next_table_id = 9;
        INSERT INTO matview_table VALUES (7,'t','t','{','{}','d',1,NULL,0)""",
    "properties that are no object": """UPDATE matview_version SET next_table_id = 9; INSERT INTO matview_table VALUES
        (7,'t','t','{"columns": [["a","int",true]], "key": []}','[]','d',1,NULL,0)""",
    "a table of the future": """UPDATE matview_version SET next_table_id = 9; INSERT INTO matview_table VALUES
        (7,'t','t','{"columns": [["a","int",true]], "key": []}','{}','d',3,NULL,0)""",
    "a session of the future": "INSERT INTO matview_session VALUES ('s',8,'h','tuple',9,0,0,NULL,NULL)",
    "no schema number": "DELETE FROM matview_schema",
    "a negative floor": "UPDATE matview_version SET floor = -1",
}


def _run(url: str, statements: str) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        for statement in statements.split(";"):
            connection.exec_driver_sql(statement)
    engine.dispose()


def test_create_then_open(url: str) -> None:
    assert not Catalog.exists(url)
    with Catalog.create(url, versions=4) as made:
        assert Catalog.exists(url)
        with Catalog.open(url) as opened:
            assert opened.version() == made.version()
            assert opened.settings.get("warehouse_id") == made.settings.get("warehouse_id")
    with pytest.raises(BadSetting, match="already"):
        Catalog.create(url, versions=4)


def test_the_migrated_schema_is_the_schema_of_today(url: str) -> None:
    Catalog.create(url, versions=2).close()
    engine = create_engine(url)
    seen = inspect(engine)
    assert set(seen.get_table_names()) == set(schema.metadata.tables)
    for name, table in schema.metadata.tables.items():
        stored = {column["name"]: column["nullable"] for column in seen.get_columns(name)}
        assert stored == {column.name: column.nullable for column in table.columns}
        assert seen.get_pk_constraint(name)["constrained_columns"] == [c.name for c in table.primary_key]
    engine.dispose()


@pytest.mark.parametrize("table", sorted(schema.metadata.tables))
def test_a_missing_table(sqlite_url: str, table: str) -> None:
    Catalog.create(sqlite_url, versions=2).close()
    _run(sqlite_url, f"DROP TABLE {table}")
    with pytest.raises(CatalogCorrupt):
        Catalog.open(sqlite_url)


def test_a_missing_table_on_both(url: str) -> None:
    Catalog.create(url, versions=2).close()
    _run(url, "DROP TABLE matview_session")
    with pytest.raises(CatalogCorrupt, match="matview_session"):
        Catalog.open(url)


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_contradictory_contents(sqlite_url: str, name: str) -> None:
    Catalog.create(sqlite_url, versions=2).close()
    _run(sqlite_url, CONTRADICTIONS[name])
    with pytest.raises(CatalogCorrupt):
        Catalog.open(sqlite_url)


def test_a_value_of_the_wrong_kind(sqlite_url: str) -> None:
    Catalog.create(sqlite_url, versions=2).close()
    _run(sqlite_url, "UPDATE matview_version SET versions = 'many'")
    with pytest.raises(CatalogCorrupt):
        Catalog.open(sqlite_url)


def test_a_newer_schema(url: str) -> None:
    Catalog.create(url, versions=2).close()
    _run(url, f"UPDATE matview_schema SET number = {len(MIGRATIONS) + 1}")
    with pytest.raises(CatalogTooNew):
        Catalog.open(url)


def test_migrations_run_in_order_all_or_none(url: str) -> None:
    Catalog.create(url, versions=2).close()
    store = Store(database(url, patience=5))

    def second(connection: Connection) -> None:
        connection.execute(text("CREATE TABLE matview_second (a INTEGER)"))

    def third(connection: Connection) -> None:
        connection.execute(text("INSERT INTO matview_second VALUES (3)"))

    def broken(connection: Connection) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        upgrade(store, (*MIGRATIONS, second, third, broken))
    assert store.read(stored_number) == len(MIGRATIONS)
    assert not store.read(lambda reading: inspect(reading.connection).has_table("matview_second"))
    for _ in range(2):
        upgrade(store, (*MIGRATIONS, second, third))
    assert store.read(stored_number) == len(MIGRATIONS) + 2
    assert store.read(lambda reading: reading.value(text("SELECT count(*) FROM matview_second"))) == 1
    with pytest.raises(CatalogTooNew):
        Catalog.open(url)
    store.close()


def test_processes_that_migrate_at_once_migrate_once(url: str) -> None:
    """Each store stands for a process; the migration lasts till the others wait, and would fail the second time."""
    Catalog.create(url, versions=2).close()
    failures: list[BaseException] = []
    stores = [Store(database(url, patience=30)) for _ in range(3)]

    def waiting(connection: Connection) -> int:
        if connection.dialect.name == "sqlite":
            return sum(store.waits > 0 for store in stores)
        locks = text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
        return int(connection.execute(locks).scalar_one())

    def slow(connection: Connection) -> None:
        wait_until(lambda: waiting(connection) == len(stores) - 1)
        connection.execute(text("CREATE TABLE matview_second (a INTEGER)"))

    def migrate(store: Store) -> None:
        try:
            upgrade(store, (*MIGRATIONS, slow))
        except MatviewError as error:
            failures.append(error)
        finally:
            store.close()

    threads = [threading.Thread(target=migrate, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_an_empty_database_holds_no_catalog(url: str, tmp_path: Path) -> None:
    (tmp_path / "catalog.db").touch()
    assert not Catalog.exists(url)
    with pytest.raises(CatalogCorrupt, match="holds no catalog"):
        Catalog.open(url)
    Catalog.create(url, versions=2).close()
    Catalog.open(url).close()


def test_a_file_that_is_no_database(sqlite_url: str, tmp_path: Path) -> None:
    (tmp_path / "catalog.db").write_text("Dear diary, " * 1000)
    for call in (Catalog.open, Catalog.exists, lambda url: Catalog.create(url, versions=2)):
        with pytest.raises(CatalogCorrupt, match="not a database"):
            call(sqlite_url)


@pytest.mark.parametrize("damage", ["truncate", "zeros", "noise"])
def test_a_damaged_file(sqlite_url: str, tmp_path: Path, damage: str) -> None:
    Catalog.create(sqlite_url, versions=2).close()
    file = tmp_path / "catalog.db"
    whole = file.read_bytes()
    damaged = {
        "truncate": whole[: len(whole) // 2],
        "zeros": whole[:4096] + bytes(len(whole) - 4096),
        "noise": whole[:4096] + bytes((i * 37 + 11) % 256 for i in range(len(whole) - 4096)),
    }[damage]
    file.write_bytes(damaged)
    with pytest.raises(CatalogCorrupt):
        Catalog.open(sqlite_url)


def test_damage_while_it_is_open(sqlite_url: str, tmp_path: Path) -> None:
    catalog = Catalog.create(sqlite_url, versions=2)
    with sqlite3.connect(tmp_path / "catalog.db") as connection:
        connection.execute("DROP TABLE matview_version")
    with pytest.raises(CatalogCorrupt):
        catalog.version()
    catalog.close()


def test_nothing_there(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'nowhere' / 'catalog.db'}"
    assert not Catalog.exists(url)
    with pytest.raises(CatalogUnavailable):
        Catalog.open(url)
    with pytest.raises(CatalogUnavailable):
        Catalog.create(url, versions=2)
    assert not (tmp_path / "nowhere").exists()


def test_a_server_that_does_not_answer(tmp_path: Path) -> None:
    url = f"postgresql://someone:secret@/nothing?host={tmp_path}"
    for call in (Catalog.open, Catalog.exists, lambda url: Catalog.create(url, versions=2)):
        with pytest.raises(CatalogUnavailable) as away:
            call(url)
        assert "secret" not in str(away.value)


def test_a_database_that_is_not_there(postgres_url: str) -> None:
    url = make_url(postgres_url).set(database="nothing").render_as_string(hide_password=False)
    with pytest.raises(CatalogUnavailable, match="nothing"):
        Catalog.open(url)


def test_a_connection_that_was_cut_is_made_anew(postgres_url: str) -> None:
    with Catalog.create(postgres_url, versions=2) as catalog:
        catalog.version()
        _run(
            postgres_url,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE state = 'idle' AND query NOT LIKE 'CREATE SCHEMA%%'",
        )
        assert catalog.version().current_vn == 1


@pytest.mark.parametrize("url", ["mysql://x/y", "sqlite://", "sqlite:///:memory:", "not an url"])
def test_urls_that_cannot_be(url: str) -> None:
    with pytest.raises(BadSetting):
        Catalog.open(url)


def test_names_that_an_uri_would_misread(tmp_path: Path) -> None:
    folder = tmp_path / "a b%41#c"
    folder.mkdir()
    url = url_of_file(folder / "cat alog?1.db")
    Catalog.create(url, versions=2).close()
    assert Catalog.exists(url) and [p.name for p in folder.iterdir()] == ["cat alog?1.db"]


def test_sqlite_is_set_as_promised(sqlite_url: str, tmp_path: Path, maintain: Callable[..., object]) -> None:
    catalog = Catalog.create(sqlite_url, versions=2)
    pragmas = {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 0}
    for name, value in pragmas.items():
        query = text(f"PRAGMA {name}")
        assert catalog._store.read(partial(Reading.value, query=query)) == value
    catalog.close()
    assert [p.name for p in tmp_path.iterdir()] == ["catalog.db"], "the last to close leaves one file"
