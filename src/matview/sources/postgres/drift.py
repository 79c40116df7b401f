"""What stands against capture, and what has happened to it since: facts compared, nothing asked.

A trigger that was disabled and enabled again looks as it did, but its row in the system catalog was written anew: that
row's version is among the facts. So are the versions of columns beside the table's file: both change when ALTER TABLE
computes every value anew, which fires no trigger. VACUUM FULL, CLUSTER and TRUNCATE change the file alone.

What is written through a table above fires no statement trigger of the table itself. Being attached and detached again
leaves a trace: a partition's row in `pg_inherits` is another one, and of a table that had no parent all columns were
written at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from matview.errors import (
    CannotCapture,
    CaptureBypassed,
    MatviewError,
    PrivilegeMissing,
    SourceDrifted,
)
from matview.sources.engine import Problem, SourceTable
from matview.sources.postgres.describe import identity, oid_of
from matview.sources.postgres.facts import Facts
from matview.sources.postgres.layout import quote
from matview.sources.problems import AGAIN, REREAD, not_captured

MOST_COLUMNS = 1600 - 3
"""What a delta table has room for beside its labels."""


def found(error: type[MatviewError], table: SourceTable, what: str, help: str) -> Problem:
    return Problem(error(f"{table.name}: {what}", help=help), table.name)


# before ---------------------------------------------------------------------------------------------------------------


def hindrances(table: SourceTable, now: Facts | None, role: str) -> Iterator[Problem]:
    """Why the table cannot be captured, each with the statement that mends it."""
    if now is None:
        yield found(SourceDrifted, table, "the table is gone", AGAIN)
        return
    name = f"{quote(now['schema'])}.{quote(now['name'])}"
    if not now["owned"]:
        grant = f"GRANT {quote(now['owner'])} TO {role}"
        yield found(
            PrivilegeMissing, table, "triggers are made by the table's owner, or by a role that is granted it", grant
        )
    elif not now["readable"]:
        yield found(PrivilegeMissing, table, "the role may not read it", f"GRANT SELECT ON {name} TO {role}")
    if now["policies"]:
        mend = f"ALTER ROLE {role} BYPASSRLS, or ALTER TABLE {name} NO FORCE ROW LEVEL SECURITY"
        yield found(PrivilegeMissing, table, "row security hides rows of it from this role", mend)
    yield from unfit(table, now, name)
    yield from unfit_columns(table)


def unfit(table: SourceTable, now: Facts, name: str) -> Iterator[Problem]:
    """What is against it in the table itself: its changes could not all be seen."""
    if now["persistence"] != "p":
        mend = f"ALTER TABLE {name} SET LOGGED"
        yield found(CannotCapture, table, "it is not logged: a crash would empty it, and no trigger would fire", mend)
    if now["partition"]:
        what = "it is a partition: what is written through the table above it fires none of its triggers"
        yield found(CannotCapture, table, what, "capture the partitioned table instead")
    if now["inherits"]:
        what = "it takes part in inheritance: what is written through a parent fires no trigger of the child"
        yield found(CannotCapture, table, what, "make it a partitioned table, or end the inheritance (NO INHERIT)")
    if any(member["kind"] == "f" for member in now["members"].values()):
        mend = "detach the foreign partition"
        yield found(CannotCapture, table, "a partition is a foreign table, whose changes are made elsewhere", mend)
    if now["subscribed"]:
        what = "it is filled by a subscription, which fires no triggers of statements"
        yield found(CannotCapture, table, what, "capture it in the database that publishes it")


def unfit_columns(table: SourceTable) -> Iterator[Problem]:
    names = [column.name for column in table.columns]
    if not names:
        yield found(CannotCapture, table, "it has no columns", "leave it out")
    if len(names) > MOST_COLUMNS:
        what = f"it has {len(names)} columns: with the labels of a change they are more than PostgreSQL allows"
        yield found(CannotCapture, table, what, f"capture a table of at most {MOST_COLUMNS} columns")
    for name in names:
        if name.startswith("__"):
            yield found(CannotCapture, table, f"column {name} begins with `__`, which is reserved", "rename the column")
    folded = [name.casefold() for name in names]
    for name in names:
        if folded.count(name.casefold()) > 1:
            what = f"another column is called {name} but for upper and lower case, which Spark does not tell apart"
            yield found(CannotCapture, table, what, "rename one of them")
            return


# after ----------------------------------------------------------------------------------------------------------------


def drift(
    table: SourceTable, then: Facts | None, now: Facts | None, reasons: Mapping[int, str] | None = None
) -> Iterator[Problem]:
    """What has happened to a captured table since its installation, and to its capture."""
    if now is None:
        yield found(SourceDrifted, table, "the table was dropped", AGAIN)
        return
    if then is None:
        yield Problem(not_captured(table), table.name)
        return
    if (then["schema"], then["name"]) != (now["schema"], now["name"]):
        what = f"the table is called {now['schema']}.{now['name']} now"
        yield found(SourceDrifted, table, what, "name it back, or " + AGAIN)
    yield from changed_columns(table, then, now)
    yield from changed_values(table, then, now)
    yield from changed_members(table, then, now)
    yield from unfit(table, now, f"{quote(now['schema'])}.{quote(now['name'])}")
    if now["policies"]:
        yield found(SourceDrifted, table, "row security hides rows of it now", "let the role see all rows again")
    yield from changed_triggers(table, then, now)
    if not now["recording"]:
        yield found(CaptureBypassed, table, "a delta table is gone", REREAD)
    if reason := (reasons or {}).get(oid_of(table)):
        yield found(CaptureBypassed, table, f"a change was not recorded: {reason}", REREAD)


def changed_columns(table: SourceTable, then: Facts, now: Facts) -> Iterator[Problem]:
    before = {column["number"]: column for column in then["columns"]}
    after = {column["number"]: column for column in now["columns"]}
    for number, column in before.items():
        if number not in after:
            yield found(SourceDrifted, table, f"column {column['name']} was dropped", AGAIN)
            continue
        new = after[number]
        if new["name"] != column["name"]:
            yield found(SourceDrifted, table, f"column {column['name']} is called {new['name']} now", AGAIN)
        if new["type"] != column["type"]:
            what = f"column {column['name']} was {column['type']} and is {new['type']} now"
            yield found(SourceDrifted, table, what, AGAIN)
        if new["generated"] != column["generated"]:
            yield found(SourceDrifted, table, f"column {column['name']} is computed in another way now", REREAD)
    for number in after.keys() - before.keys():
        yield found(SourceDrifted, table, f"column {after[number]['name']} was added", AGAIN)
    if then["key"] and then["key"] != now["key"]:
        yield found(SourceDrifted, table, "the primary key is another one, or is gone", AGAIN)
    if before.keys() == after.keys() and table.identity != identity(oid_of(table), sorted(after)):
        yield found(SourceDrifted, table, "the table is not the one that was added", AGAIN)


def changed_values(table: SourceTable, then: Facts, now: Facts) -> Iterator[Problem]:
    """Changes of what is stored that no trigger has seen."""
    for oid, member in then["members"].items():
        new = now["members"].get(oid, member)
        if new["file"] != member["file"] and new["columns"] != member["columns"]:
            yield found(SourceDrifted, table, "its rows were written anew by ALTER TABLE", REREAD)
            return
    for oid, label in then["labels"].items():
        if now["labels"].get(oid, label) != label:
            yield found(SourceDrifted, table, f"the enum's value {label} is called {now['labels'][oid]} now", REREAD)


def changed_members(table: SourceTable, then: Facts, now: Facts) -> Iterator[Problem]:
    for oid, member in now["members"].items():
        if oid not in then["members"]:
            yield found(SourceDrifted, table, f"partition {member['name']} was attached", REREAD)
    for oid, member in then["members"].items():
        if oid not in now["members"]:
            yield found(SourceDrifted, table, f"partition {member['name']} was detached or dropped", REREAD)
        elif member.get("attached") != now["members"][oid]["attached"] and "attached" in member:
            yield found(CaptureBypassed, table, f"partition {member['name']} was detached for a while", REREAD)
    if had_a_parent(then["members"][str(oid_of(table))], now["members"][str(oid_of(table))]):
        yield found(CaptureBypassed, table, "another table may have been above it for a while", REREAD)


def had_a_parent(then: Facts, now: Facts) -> bool:
    """Whether ATTACH PARTITION or INHERIT, and their contraries, may have written all columns at once."""
    if then.get("attached") != now["attached"] or len(then.get("written", ())) != len(now["written"]):
        return False
    others = all(before != after for before, after in zip(then["written"], now["written"], strict=True))
    return others and len(set(now["written"])) == 1


def changed_triggers(table: SourceTable, then: Facts, now: Facts) -> Iterator[Problem]:
    for name, trigger in then["triggers"].items():
        member, _, called = name.partition(".")
        if member not in now["members"]:
            continue
        new = now["triggers"].get(name)
        if new is None:
            yield found(CaptureBypassed, table, f"trigger {called} was dropped", REREAD)
        elif new[0] != "A":
            yield found(CaptureBypassed, table, f"trigger {called} is disabled", REREAD)
        elif new != trigger:
            yield found(CaptureBypassed, table, f"trigger {called} was disabled for a while, or changed", REREAD)
