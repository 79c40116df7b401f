"""The catalog's tables as the code of today sees them; `migrations/` makes them, a test holds the two together."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Double, Integer, MetaData, Table, Text

metadata = MetaData()

schema_number = Table("matview_schema", metadata, Column("number", Integer, nullable=False))
"""One row: the number of the last migration run."""

version = Table(
    "matview_version",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("current_vn", BigInteger, nullable=False),
    Column("maintenance_active", Boolean, nullable=False),
    Column("versions", Integer, nullable=False),
    Column("floor", BigInteger, nullable=False),
    Column("gc_horizon", BigInteger, nullable=False),
    Column("gc_claim", BigInteger, nullable=False),
    Column("next_table_id", BigInteger, nullable=False),
    Column("changed_vn", BigInteger, nullable=False),
    Column("defined_vn", BigInteger, nullable=False),
)
"""One row: the paper's Version relation. floor, gc_horizon <= gc_claim <= current_vn; see horizon.py for the claim.

changed_vn: the last version that changed base tables; defined_vn: the last that made, altered or dropped anything.
"""

lease = Table(
    "matview_lease",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("token", BigInteger, nullable=False),
    Column("holder", Text),
    Column("acquired_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
)
"""One row: the last lease given; holder is null once it was released. Its row lock is the latch of all writers."""

transaction = Table(
    "matview_transaction",
    metadata,
    Column("token", BigInteger, primary_key=True, autoincrement=False),
    Column("vn", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("holder", Text, nullable=False),
    Column("began_at", Double, nullable=False),
    Column("ended_at", Double),
    Column("journal", Text, nullable=False),
    Column("summary", Text, nullable=False),
    Column("error", Text),
    Column("tail_done", Boolean, nullable=False),
)

table = Table(
    "matview_table",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
    Column("name_folded", Text, nullable=False),
    Column("definition", Text, nullable=False),
    Column("properties", Text, nullable=False),
    Column("directory", Text, nullable=False),
    Column("created_vn", BigInteger, nullable=False),
    Column("dropped_vn", BigInteger),
    Column("next_rid", BigInteger, nullable=False),
)
"""At most one live row (dropped_vn null) of a folded name."""

session = Table(
    "matview_session",
    metadata,
    Column("id", Text, primary_key=True),
    Column("version", BigInteger, nullable=False),
    Column("holder", Text, nullable=False),
    Column("grain", Text, nullable=False),
    Column("ttl", Double, nullable=False),
    Column("opened_at", Double, nullable=False),
    Column("heartbeat_at", Double, nullable=False),
    Column("closed_at", Double),
    Column("reason", Text),
)

garbage = Table(
    "matview_garbage",
    metadata,
    Column("table_id", BigInteger, primary_key=True, autoincrement=False),
    Column("path", Text, primary_key=True),
    Column("removed_at", Double, nullable=False),
)
"""No foreign key: a transaction that was undone leaves files of tables that never came to be."""

setting = Table(
    "matview_setting",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

view = Table(
    "matview_view",
    metadata,
    Column("table_id", BigInteger, primary_key=True, autoincrement=False),
    Column("query", Text, nullable=False),
    Column("policy", Text, nullable=False),
    Column("owner_id", BigInteger),
    Column("reason", Text),
    Column("maintain", Text, nullable=False),
    Column("viewgroup", Text),
    Column("schedule", Text),
)
"""A table that holds a query's result, for as long as the table is there; owner_id: whom a hidden one serves.

viewgroup and schedule are those declared, if any were.
"""

viewgroup = Table(
    "matview_viewgroup",
    metadata,
    Column("name_folded", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("schedule", Text, nullable=False),
    Column("comment", Text),
)
"""The viewgroups that somebody declared; `base` and those of single views are not among them."""

state = Table(
    "matview_state",
    metadata,
    Column("name_folded", Text, primary_key=True),
    Column("vn", BigInteger, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
    Column("effective_vn", BigInteger),
    Column("effective_at", Double),
    Column("refreshed_at", Double),
)
"""The effective state of a viewgroup from version vn on; null where it has gone by then."""

edge = Table(
    "matview_edge",
    metadata,
    Column("parent_id", BigInteger, primary_key=True, autoincrement=False),
    Column("child_id", BigInteger, primary_key=True, autoincrement=False),
    Column("consumed_vn", BigInteger, nullable=False),
    Column("anew", Boolean, nullable=False),
)
"""What a view reads, and up to which version its changes have been taken over; anew: changes do not lead from there
to what the table is by now, so that the view has to be computed anew."""

log = Table(
    "matview_log",
    metadata,
    Column("table_id", BigInteger, primary_key=True, autoincrement=False),
    Column("vn", BigInteger, primary_key=True, autoincrement=False),
    Column("inserted", BigInteger, nullable=False),
    Column("updated", BigInteger, nullable=False),
    Column("deleted", BigInteger, nullable=False),
    Column("columns", Text, nullable=False),
    Column("files", Text, nullable=False),
)
"""How a table changed at a version: the files that hold the changed tuples, and which columns updates touched."""

refresh = Table(
    "matview_refresh",
    metadata,
    Column("name_folded", Text, primary_key=True),
    Column("vn", BigInteger, primary_key=True, autoincrement=False),
    Column("strategy", Text, nullable=False),
    Column("estimated", Double, nullable=False),
    Column("seconds", Double, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("refreshed_at", Double, nullable=False),
    Column("at_hand", Boolean, nullable=False),
)
"""By the view's name: computed anew, a view is another table."""

source = Table(
    "matview_source",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("name_folded", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("mode", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("added_at", Double, nullable=False),
    Column("captured_at", Double),
    Column("transactions", BigInteger, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("error", Text),
    Column("holder", Text),
    Column("held_until", Double, nullable=False),
)
"""An autonomous database whose changes are taken over; the URL says how a password is found, and holds none.

holder: who is at it alone, until held_until unless he says again that he is.
"""

source_table = Table(
    "matview_source_table",
    metadata,
    Column("source_id", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("place", BigInteger, nullable=False),
    Column("table_name", Text, nullable=False),
    Column("table_id", BigInteger),
    Column("identity", Text, nullable=False),
    Column("definition", Text, nullable=False),
    Column("replicate", Boolean, nullable=False),
    Column("error", Text),
)
"""A captured table as it was when it was last read whole; error: why nothing is taken over from it any more."""

round_ = Table(
    "matview_round",
    metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("state", Text, nullable=False),
    Column("began_at", Double, nullable=False),
    Column("installed_at", Double),
    Column("ended_at", Double),
    Column("vn", BigInteger),
)
"""Rounds are installed in the order of their numbers, by whoever holds the lease."""

round_source = Table(
    "matview_round_source",
    metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("source_id", Text, primary_key=True),
    Column("tables", Text, nullable=False),
    Column("taken", Text, nullable=False),
    Column("transactions", BigInteger, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("files", Text, nullable=False),
    Column("acknowledged", Boolean, nullable=False),
)
"""The set of transactions that a round takes from a source, kept until they are deleted there."""
