"""A table as a view has taken it over: as it is now, without what its log has told since."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from matview.algebra.nodes import WEIGHT
from matview.catalog.records import LogEntry
from matview.maintain.views.pending import pending
from matview.storage.changes import changes
from matview.storage.engine import relation_name
from matview.storage.table import VersionedTable
from matview.versions.text import quoted


def earlier(table: VersionedTable, now: DataFrame, entries: Sequence[LogEntry]) -> DataFrame:
    """The rows of before these entries, in the columns that queries see; `now` are those of after them."""
    names = table.schema.visible
    changed = changes(table, pending(entries).files, names)
    current, log = relation_name(), relation_name()
    listed = ", ".join(map(quoted, names))
    key = table.schema.key
    text = _by_key(listed, key, current, log) if key and set(key) <= set(names) else _by_count(listed, current, log)
    return table.engine.sql(text, {current: now.select(*map(quoted, names)), log: changed})


def _by_key(listed: str, key: Sequence[str], current: str, log: str) -> str:
    """Where the key tells rows apart: those that did not change, and the others as they were."""
    same = " AND ".join(f"n.{quoted(name)} <=> c.{quoted(name)}" for name in key)
    untouched = f"SELECT {listed} FROM {current} AS n LEFT ANTI JOIN {log} AS c ON {same}"
    return f"{untouched} UNION ALL SELECT {listed} FROM {log} WHERE {WEIGHT} < 0"


def _by_count(listed: str, current: str, log: str) -> str:
    """In a bag: each row as often as it is there, less as often as it came."""
    both = f"SELECT {listed}, 1L AS __n FROM {current} UNION ALL SELECT {listed}, -{WEIGHT} AS __n FROM {log}"
    counted = f"SELECT {listed}, CAST(sum(__n) AS INT) AS __n FROM ({both}) GROUP BY {listed}"
    return f"SELECT {listed} FROM ({counted}) LATERAL VIEW explode(array_repeat(0, __n)) AS __time"
