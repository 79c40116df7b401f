"""Catalog and directory of a warehouse: made once, found again, and never taken for another's."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest

from matview.algebra.schema import Column, Schema
from matview.catalog import Catalog, CatalogChanges, NewTable, url_of_file
from matview.catalog.settings import MARKED, WAREHOUSE_ID
from matview.errors import BadSetting, ForeignDirectory, NotAWarehouse
from matview.opening import CATALOG_FILE, MARKER, create_catalog, open_catalog, open_or_create


def made(root: Path, url: str | None = None) -> str:
    """A new warehouse; gives its id."""
    with create_catalog(str(root), 2, url) as catalog:
        return str(catalog.settings.get(WAREHOUSE_ID))


def with_table(root: Path, url: str) -> str:
    """Gives the table's directory."""
    with open_catalog(str(root), url) as catalog:
        lease = catalog.lease.acquire("maker", 60)
        table = NewTable(catalog.tables.reserve(lease), "t", Schema((Column("id", "int"),)), "tables/t-1")
        catalog.transactions.begin(lease)
        catalog.transactions.commit(lease, CatalogChanges(created=(table,)))
        catalog.lease.release(lease)
    (root / table.directory).mkdir(parents=True)
    return table.directory


def as_before_markers(root: Path, url: str | None = None) -> None:
    (root / MARKER).unlink()
    with Catalog.open(url or url_of_file(root / CATALOG_FILE)) as catalog:
        catalog._store.write(
            lambda w: w.connection.exec_driver_sql(f"DELETE FROM matview_setting WHERE name='{MARKED}'")
        )


@pytest.fixture
def url(tmp_path: Path) -> str:
    return url_of_file(tmp_path / "elsewhere.db")


# catalog and directory ------------------------------------------------------------------------------------------------


def test_the_directory_carries_the_catalogs_id(tmp_path: Path) -> None:
    own = made(tmp_path / "a")
    assert (tmp_path / "a" / MARKER).read_text() == own + "\n"
    open_catalog(str(tmp_path / "a")).close()


def test_a_catalog_does_not_open_another_ones_directory(tmp_path: Path, url: str) -> None:
    made(tmp_path / "a", url)
    made(tmp_path / "b", url_of_file(tmp_path / "b.db"))
    made(tmp_path / "c")
    for other in ("b", "c"):
        with pytest.raises(ForeignDirectory, match="another catalog"):
            open_catalog(str(tmp_path / other), url)
        with pytest.raises(ForeignDirectory, match="another catalog"):
            open_or_create(str(tmp_path / other), 2, url)
    open_catalog(str(tmp_path / "a"), url).close()


def test_a_directory_misspelt_is_not_taken_over(tmp_path: Path, url: str) -> None:
    made(tmp_path / "a", url)
    for _ in range(2):
        with pytest.raises(ForeignDirectory, match=MARKER):
            open_catalog(str(tmp_path / "typo"), url)
    assert not (tmp_path / "typo").exists()


def test_a_catalog_elsewhere_is_asked_for(tmp_path: Path, url: str) -> None:
    made(tmp_path / "a", url)
    for call in (open_catalog, create_catalog):
        with pytest.raises(NotAWarehouse) as refused:
            call(str(tmp_path / "a"))
        assert "--catalog" in refused.value.help


@pytest.mark.parametrize("inside", [True, False])
def test_a_warehouse_of_before_there_were_markers_gets_one(inside: bool, tmp_path: Path, url: str) -> None:
    place = None if inside else url
    own = made(tmp_path / "a", place)
    with_table(tmp_path / "a", place or url_of_file(tmp_path / "a" / CATALOG_FILE))
    as_before_markers(tmp_path / "a", place)
    open_catalog(str(tmp_path / "a"), place).close()
    assert (tmp_path / "a" / MARKER).read_text().strip() == own


def test_it_gets_none_where_its_tables_are_not(tmp_path: Path, url: str) -> None:
    made(tmp_path / "a", url)
    with_table(tmp_path / "a", url)
    as_before_markers(tmp_path / "a", url)
    (tmp_path / "b" / "tables" / "other-1").mkdir(parents=True)
    for name in ("b", "empty"):
        with pytest.raises(ForeignDirectory):
            open_catalog(str(tmp_path / name), url)
    assert not (tmp_path / "b" / MARKER).exists()


def test_who_may_only_read_is_let_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path / "a")
    as_before_markers(tmp_path / "a")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "write_text", refuse)
    open_catalog(str(tmp_path / "a")).close()
    assert not (tmp_path / "a" / MARKER).exists()


# making ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("left", [("catalog.sqlite",), ("catalog.sqlite", "catalog.sqlite-wal", "catalog.sqlite-shm")])
def test_what_a_killed_init_leaves_can_be_made_a_warehouse(left: tuple[str, ...], tmp_path: Path) -> None:
    for name in left:
        (tmp_path / name).touch()
    with pytest.raises(NotAWarehouse, match="there is no warehouse"):
        open_catalog(str(tmp_path))
    with open_or_create(str(tmp_path), 4) as catalog:
        assert catalog.version().versions == 4


def test_a_database_that_somebody_else_made_is_left_alone(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "thesis.db") as connection:
        connection.execute("CREATE TABLE chapter (n)")
    with pytest.raises(NotAWarehouse, match="holds something"):
        open_or_create(str(tmp_path))


def test_what_cannot_be_made_says_why(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="at least 2"):
        open_or_create(str(tmp_path / "new"), 1)


def test_opening_a_new_path_all_at_once(tmp_path: Path) -> None:
    """Each thread stands for a process: nothing is shared but the path."""
    together, ids, failures = threading.Barrier(6), [], []

    def go(root: str) -> None:
        together.wait()
        try:
            with open_or_create(root, 2) as catalog:
                ids.append(catalog.settings.get(WAREHOUSE_ID))
        except BaseException as error:
            failures.append(error)

    for number in range(5):
        threads = [threading.Thread(target=go, args=(str(tmp_path / f"w{number}"),)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert len(set(ids)) == number + 1
