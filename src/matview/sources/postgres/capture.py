"""Steps 1 and 4 of a round: the set of finished transactions with their changes, and the end of what was consumed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from matview.sources.engine import WEIGHT, Captured, Problem, SourceTable, Waiting
from matview.sources.postgres.arrow import Field, read
from matview.sources.postgres.connect import Connection, Connections
from matview.sources.postgres.describe import oid_of
from matview.sources.postgres.drift import drift
from matview.sources.postgres.facts import Facts, Recorded, bypassed, facts_of, recorded
from matview.sources.postgres.layout import AT, SERIAL, TRANSACTION, quote
from matview.sources.postgres.sets import Transactions
from matview.sources.postgres.values import named
from matview.sources.problems import together
from matview.sources.types import change_schema

SNAPSHOT = "ISOLATION LEVEL REPEATABLE READ READ ONLY"
PAGES = 1000
"""How much of a delta table one DELETE looks at."""
MANY = 1000
"""So many rows deleted are worth a VACUUM at once; of fewer the server thinks by itself, once a minute."""
KEPT = 8192
"""Pages that a delta table may keep for rows to come: 64 MiB. Every round reads over them."""


def check_after(connection: Connection, schema: str, tables: Sequence[SourceTable]) -> list[Problem]:
    """What has drifted, in the snapshot of the transaction."""
    now = facts_of(connection, schema, map(oid_of, tables))
    return drifted(connection, schema, tables, recorded(connection, schema), now)


def drifted(
    connection: Connection,
    schema: str,
    tables: Sequence[SourceTable],
    then: Mapping[int, Recorded],
    now: Mapping[int, Facts],
) -> list[Problem]:
    reasons = bypassed(connection, schema) if then else {}
    found: list[Problem] = []
    for table in tables:
        oid = oid_of(table)
        found.extend(drift(table, then[oid].facts if oid in then else None, now.get(oid), reasons))
    return found


def refuse_drift(connection: Connection, schema: str, tables: Sequence[SourceTable]) -> dict[int, Recorded]:
    """How the columns are carried, and the facts as they are now, if nothing has drifted; an error otherwise."""
    then, now = recorded(connection, schema), facts_of(connection, schema, map(oid_of, tables))
    if found := drifted(connection, schema, tables, then, now):
        raise together(found)
    return {oid: replace(then[oid], facts=facts) for oid, facts in now.items()}


def capture(
    connections: Connections, tables: Sequence[SourceTable], most: int | None, besides: Sequence[Transactions] = ()
) -> Captured:
    """Step 1. Set and changes come from one snapshot: a set is all that had ended, so nobody can add to it later."""
    with connections.transaction(SNAPSHOT) as connection:
        snapshot, written = snapshot_of(connection)
        known = refuse_drift(connection, connections.schema, tables)
        transactions = Transactions.finished(snapshot).minus(besides)
        if most is not None:
            transactions = first_of(connection, connections.schema, tables, most, besides)
        captured = changes_of(connection, connections.schema, tables, known, transactions)
    if captured.rows:
        make_durable(connections, written)
    return captured


def changes(connections: Connections, tables: Sequence[SourceTable], transactions: Transactions) -> Captured:
    with connections.transaction(SNAPSHOT) as connection:
        known = recorded(connection, connections.schema)
        return changes_of(connection, connections.schema, tables, known, transactions)


def snapshot_of(connection: Connection) -> tuple[str, str]:
    """The snapshot of the transaction, and how far the log was written when it was taken."""
    row = connection.execute("SELECT pg_current_snapshot()::text, pg_current_wal_insert_lsn()::text").fetchone()
    assert row is not None
    return row[0], row[1]


def make_durable(connections: Connections, written: str) -> None:
    """Returns when the source would still have what was captured after a crash.

    A transaction that committed with synchronous_commit = off is visible before it is on disk. A commit of ours that
    waits for the disk takes all earlier ones along.
    """
    with connections.borrow() as connection:
        flushed = connection.execute("SELECT pg_current_wal_flush_lsn() >= %s::pg_lsn", [written]).fetchone()
        if flushed != (True,):
            connection.execute("SET synchronous_commit = on; SELECT pg_logical_emit_message(true, 'matview', '')")


def first_of(
    connection: Connection,
    schema: str,
    tables: Sequence[SourceTable],
    most: int,
    besides: Sequence[Transactions] = (),
) -> Transactions:
    """So many transactions, in an order in which they could have committed: that of their last statements.

    If T2 has seen or overwritten what T1 wrote, T1 had committed by then, so all of T1's statements are numbered lower
    than that one of T2's, and T1 comes first. What is taken is therefore a state that the source could have had.
    """
    left_out = " AND ".join(["TRUE", *(f"NOT {other.condition(TRANSACTION)}" for other in besides)])
    counted = " UNION ALL ".join(
        f"SELECT {TRANSACTION} AS t, max({SERIAL}) AS s FROM {delta} WHERE {left_out} GROUP BY 1"
        for delta in deltas(schema, tables)
    )
    rows = connection.execute(f"SELECT t FROM ({counted}) AS all_of_them GROUP BY t ORDER BY max(s) LIMIT {int(most)}")
    return Transactions.of(row[0] for row in rows)


def changes_of(
    connection: Connection,
    schema: str,
    tables: Sequence[SourceTable],
    known: Mapping[int, Recorded],
    transactions: Transactions,
) -> Captured:
    """The changes that those transactions have made, read in the snapshot of the connection's transaction."""
    condition = transactions.condition(TRANSACTION)
    present = [table for table in tables if oid_of(table) in known]
    found = {}
    for table in changed(connection, schema, present, condition):
        with named(connection, table, known[oid_of(table)].carriers, change_source(schema, table, condition)) as source:
            batches = list(read(connection, change_fields(table, known[oid_of(table)]), source))
        found[table.name] = pa.Table.from_batches(batches).cast(change_schema(table))
    return Captured(
        transactions.taken(),
        count(connection, schema, present, condition) if found else 0,
        sum(part.num_rows for part in found.values()),
        found,
    )


def changed(
    connection: Connection, schema: str, tables: Sequence[SourceTable], condition: str
) -> Iterator[SourceTable]:
    """The tables that have rows of the set."""
    if not tables:
        return
    asked = ", ".join(
        " OR ".join(f"EXISTS (SELECT FROM {delta} WHERE {condition})" for delta in deltas(schema, [table]))
        for table in tables
    )
    row = connection.execute(f"SELECT {asked}").fetchone() or ()
    yield from (table for table, has in zip(tables, row, strict=True) if has)


def count(connection: Connection, schema: str, tables: Sequence[SourceTable], condition: str) -> int:
    united = " UNION ".join(f"SELECT {TRANSACTION} FROM {delta} WHERE {condition}" for delta in deltas(schema, tables))
    row = connection.execute(f"SELECT count(*) FROM ({united}) AS ids").fetchone()
    return int(row[0]) if row else 0


def deltas(schema: str, tables: Sequence[SourceTable]) -> list[str]:
    return [f"{schema}.{kind}_{oid_of(table)}" for table in tables for kind in ("added", "deleted")]


def change_source(schema: str, table: SourceTable, condition: str) -> str:
    """The signed rows of a set, as what stands after FROM."""
    names = ", ".join(quote(column.name) for column in table.columns)
    added, deleted = deltas(schema, [table])
    return (
        f"(SELECT {names}, 1 AS {WEIGHT} FROM {added} WHERE {condition} "
        f"UNION ALL SELECT {names}, -1 FROM {deleted} WHERE {condition}) AS changes"
    )


def change_fields(table: SourceTable, known: Recorded) -> list[Field]:
    return [*row_fields(table, known), Field(WEIGHT, WEIGHT, "bigint")]


def row_fields(table: SourceTable, known: Recorded) -> list[Field]:
    return [
        Field(column.name, known.carriers[column.name].cell.format(quote(column.name)), column.type)
        for column in table.columns
    ]


# step 4 ---------------------------------------------------------------------------------------------------------------


def acknowledge(connections: Connections, tables: Sequence[SourceTable], transactions: Transactions) -> None:
    """Deletes the delta rows of the set, and makes their space free for the next."""
    condition = transactions.condition(TRANSACTION)
    with connections.borrow() as connection:
        connection.execute("SET synchronous_commit = on")
        known = recorded(connection, connections.schema)
        for delta in deltas(connections.schema, [table for table in tables if oid_of(table) in known]):
            size = pages(connection, delta)
            if deleted(connection, delta, size, condition) >= MANY:
                truncate = "on" if size > KEPT else "off"
                connection.execute(f"VACUUM (SKIP_LOCKED, TRUNCATE {truncate}) {delta}")


def deleted(connection: Connection, delta: str, size: int, condition: str) -> int:
    """Some pages at a time, each in a transaction of its own. Writers only add. How many rows there were."""
    count = 0
    for page in range(0, size, PAGES):
        span = f"ctid >= '({page},0)' AND ctid < '({page + PAGES},0)'"
        count += connection.execute(f"DELETE FROM {delta} WHERE {span} AND {condition}").rowcount
    return count


def pages(connection: Connection, relation: str) -> int:
    row = connection.execute(
        "SELECT pg_relation_size(%s::regclass) / current_setting('block_size')::bigint", [relation]
    ).fetchone()
    return int(row[0]) if row else 0


# how far it is ahead --------------------------------------------------------------------------------------------------

OLDEST_OPEN = """
    SELECT min(began) FROM (
        SELECT xact_start AS began FROM pg_stat_activity
        WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid() AND datname = current_database()
        UNION ALL SELECT prepared FROM pg_prepared_xacts WHERE database = current_database()) AS open
"""


def waiting(connections: Connections, tables: Sequence[SourceTable]) -> Waiting:
    with connections.transaction(SNAPSHOT) as connection:
        known = recorded(connection, connections.schema)
        present = [table for table in tables if oid_of(table) in known]
        oldest = connection.execute(OLDEST_OPEN).fetchone() or (None,)
        if not present:
            return Waiting(0, 0, None, oldest[0])
        united = " UNION ALL ".join(
            f"SELECT {TRANSACTION} AS t, {AT} AS at FROM {delta}" for delta in deltas(connections.schema, present)
        )
        row = connection.execute(
            f"SELECT count(*), count(DISTINCT t), min(at) FROM ({united}) AS all_of_them"
        ).fetchone()
        assert row is not None
        return Waiting(row[0], row[1], row[2], oldest[0])
