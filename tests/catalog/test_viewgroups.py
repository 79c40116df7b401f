"""Viewgroups in the catalog: catalogs of before, and states that follow the version."""

from __future__ import annotations

import pytest
from sqlalchemy import create_engine

from matview.catalog import Catalog, CatalogChanges
from matview.catalog.connect import database
from matview.catalog.migrate import run_migrations, upgrade
from matview.catalog.migrations import MIGRATIONS
from matview.catalog.records import GroupChanges, GroupRecord
from matview.catalog.store import Store, Writing
from matview.groups.check import checked
from matview.groups.graph import BASE

OLD = """
INSERT INTO matview_version VALUES (1, 5, false, 3, 0, 0, 0, 9);
INSERT INTO matview_lease VALUES (1, 4, NULL, 0, 0);
INSERT INTO matview_setting VALUES ('warehouse_id', 'x');
INSERT INTO matview_transaction VALUES (3, 4, 'committed', 'h', 10, 40, '[]', '{}', NULL, true);
INSERT INTO matview_transaction VALUES (4, 5, 'committed', 'h', 41, 50, '[]', '{}', NULL, true);
INSERT INTO matview_edge VALUES (1, 2, 4), (1, 3, 5), (3, 4, 5), (1, 6, 4), (6, 5, 4);
INSERT INTO matview_view VALUES (2, 'q', 'auto', NULL, NULL), (3, 'q', 'auto', NULL, NULL),
  (4, 'q', 'auto', NULL, NULL), (5, 'q', 'auto', NULL, NULL), (6, 'q', 'auto', 5, NULL)
"""
TABLES = {1: "sales", 2: "alone", 3: "below", 4: "above", 5: "parted", 6: "__part"}


@pytest.fixture
def old(url: str) -> str:
    """A catalog of schema 2: four views, of which one reads another and one has a hidden part."""
    store = Store(database(url, patience=5, must_exist=False))

    def make(writing: Writing) -> None:
        run_migrations(writing, MIGRATIONS[:2])
        for statement in OLD.split(";"):
            writing.connection.exec_driver_sql(statement)
        for number, name in TABLES.items():
            definition = '{"columns": [["a", "int", true]], "key": []}'
            row = f"({number}, '{name}', '{name}', '{definition}', '{{}}', 'd', 2, NULL, 0)"
            writing.connection.exec_driver_sql(f"INSERT INTO matview_table VALUES {row}")

    store.write(make)
    store.close()
    return url


@pytest.mark.conforms("C4")
def test_views_of_before_are_snapshot_views(old: str) -> None:
    with Catalog.open(old) as catalog:
        made = checked(catalog.groups.graph())
        assert made.group_of == {
            "sales": BASE,
            "alone": "alone",
            "below": "below",
            "above": "below",
            "parted": "parted",
        }
        assert [group.name for group in catalog.groups.declared()] == ["below"], "those that read one another"
        assert [(s.group, s.version, s.at) for s in catalog.groups.states()] == [
            ("alone", 4, 40.0),
            ("below", 5, 50.0),
            ("parted", 4, 40.0),
        ]


def test_migrated_as_made_anew(old: str) -> None:
    store = Store(database(old, patience=5))
    upgrade(store)
    store.close()
    engine = create_engine(old)
    with engine.connect() as connection:
        row = connection.exec_driver_sql("SELECT changed_vn, defined_vn FROM matview_version").one()
    engine.dispose()
    assert tuple(row) == (5, 5)


def commit(catalog: Catalog, groups: GroupChanges, *, changed: bool = False) -> int:
    lease = catalog.lease.acquire("test", 30.0)
    version = catalog.transactions.begin(lease)
    catalog.transactions.commit(lease, CatalogChanges(groups=groups, changed=changed))
    catalog.transactions.finish(lease)
    catalog.lease.release(lease)
    return version


@pytest.mark.conforms("C12")
def test_states_move_with_the_version(catalog: Catalog) -> None:
    tree = {"outer": BASE, "inner": "outer"}
    both = commit(
        catalog, GroupChanges((GroupRecord("outer", "ON DEMAND"),), refreshed=frozenset(tree), parent_of=tree)
    )
    changed = commit(catalog, GroupChanges(), changed=True)
    inner = commit(catalog, GroupChanges(refreshed=frozenset({"inner"}), parent_of=tree))
    assert {s.group: s.version for s in catalog.groups.states()} == {"outer": both, "inner": both}
    assert not catalog.groups.standing().is_current("outer")
    outer = commit(catalog, GroupChanges(refreshed=frozenset({"outer"}), parent_of=tree))
    assert catalog.groups.standing().is_current("outer")
    assert {s.group: s.version for s in catalog.groups.states()} == {"outer": outer, "inner": both}
    assert {s.group: s.version for s in catalog.groups.states(changed)} == {"outer": both, "inner": both}
    assert inner == changed + 1
    renamed = commit(catalog, GroupChanges(renamed=(("outer", "wide"),), gone=("inner",)))
    assert [(s.group, s.version) for s in catalog.groups.states()] == [("wide", outer)]
    assert {s.group for s in catalog.groups.states(renamed - 1)} == {"inner", "wide"}
    assert [group.name for group in catalog.groups.declared()] == ["wide"]
