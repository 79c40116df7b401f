"""The Version relation: one row, read at one moment and changed in one step (sections 3 and 4 of the paper)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select, update
from sqlalchemy.engine import RowMapping

from matview.catalog import codec, schema
from matview.catalog.records import VersionState
from matview.catalog.store import Reading, Writing
from matview.errors import BadSetting, CatalogCorrupt

LEAST_VERSIONS = 2
MOST_VERSIONS = 100


def version_row(reading: Reading) -> RowMapping:
    """The row itself, with what is not for callers."""
    rows = reading.rows(select(schema.version))
    if len(rows) != 1:
        raise CatalogCorrupt(f"the Version relation has {len(rows)} rows instead of one")
    return rows[0]


def version_state(reading: Reading) -> VersionState:
    return codec.version_state(version_row(reading))


def set_version(writing: Writing, **values: Any) -> None:
    writing.change(update(schema.version).values(**values))


def write_versions(writing: Writing, n: int) -> VersionState:
    """n is only ever raised. Tuples hold the history of the n0 before: floor = max(floor, currentVN - (n0 - 1))."""
    check_versions(n)
    before = version_state(writing)
    if n < before.versions:
        raise BadSetting(f"the number of versions is {before.versions} and cannot be lowered to {n}")
    if n > before.versions:
        floor = max(before.floor, before.current_vn - (before.versions - 1))
        set_version(writing, versions=n, floor=floor)
    return version_state(writing)


def check_versions(n: object) -> None:
    if not isinstance(n, int):
        raise BadSetting(f"the number of versions is a whole number, not {n!r}")
    if n < LEAST_VERSIONS:
        raise BadSetting(f"a warehouse keeps at least {LEAST_VERSIONS} versions, not {n}")
    if n > MOST_VERSIONS:  # each is a set of columns beside every tuple, for good
        raise BadSetting(f"a warehouse keeps at most {MOST_VERSIONS} versions, not {n}")
