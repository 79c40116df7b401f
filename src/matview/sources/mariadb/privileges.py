"""Whether the role may do what capture needs, asked before anything is touched."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from matview.errors import CannotCapture, MatviewError, PrivilegeMissing
from matview.sources.mariadb.connect import Connection, Database, fetched, grants

ON_TABLES = ("SELECT", "TRIGGER")
ON_OWN = ("CREATE", "CREATE VIEW", "DROP", "SELECT", "INSERT", "UPDATE", "DELETE", "CREATE TEMPORARY TABLES")
EVERYTHING = "ALL PRIVILEGES"
NAME = r"(\*|`(?:[^`]|``)+`)"
GRANT = re.compile(rf"GRANT (.+?) ON {NAME}\.{NAME} TO ")


@dataclass(frozen=True, slots=True)
class Grant:
    """A line of SHOW GRANTS: privileges on a database and a table, `*` for all of them."""

    privileges: frozenset[str]
    database: str
    table: str

    def covers(self, database: str, table: str) -> bool:
        return bool(pattern(self.database).fullmatch(database)) and self.table in ("*", table)


def parsed(lines: Iterable[str]) -> list[Grant]:
    """Privileges on single columns do not count: capture reads all of them."""
    found = []
    for line in lines:
        if match := GRANT.match(line):
            privileges = frozenset(
                one.strip() for one in re.sub(r"\w+ \([^)]*\)", "", match[1]).split(",") if one.strip()
            )
            found.append(Grant(privileges, unquoted(match[2]), unquoted(match[3])))
    return found


def unquoted(name: str) -> str:
    return name if name == "*" else name[1:-1].replace("``", "`")


def pattern(database: str) -> re.Pattern[str]:
    """A database as GRANT names it: `_` and `%` stand for others, unless a backslash is before them."""
    if database == "*":
        return re.compile(".*", re.DOTALL)
    parts = re.findall(r"\\[_%]|.", database, re.DOTALL)
    return re.compile("".join({"_": ".", "%": ".*"}.get(part, re.escape(part[-1])) for part in parts), re.DOTALL)


def missing(connection: Connection, database: Database, tables: Sequence[str]) -> list[MatviewError]:
    """One error for each place where something is missing."""
    held = parsed(line for (line,) in fetched(connection, "SHOW GRANTS"))
    wanted = [(database.name, table, ON_TABLES) for table in tables] + [(database.own, "*", ON_OWN)]
    found: list[MatviewError] = []
    for place, table, needed in wanted:
        has = frozenset[str]().union(*(grant.privileges for grant in held if grant.covers(place, table)))
        if lacking := [one for one in needed if one not in has and EVERYTHING not in has]:
            what = f"the role lacks {', '.join(lacking)} on {place}.{table}"
            found.append(PrivilegeMissing(what, help=grants(database)))
    return found + trigger_obstacles(connection, held)


def trigger_obstacles(connection: Connection, held: Sequence[Grant]) -> list[MatviewError]:
    """What stands against triggers on this server."""
    found: list[MatviewError] = []
    ((logged, trusted),) = fetched(connection, "SELECT @@log_bin, @@log_bin_trust_function_creators")
    everywhere = frozenset[str]().union(*(grant.privileges for grant in held if grant.database == "*"))
    if logged and not trusted and not everywhere & {EVERYTHING, "SUPER", "BINLOG ADMIN"}:
        what = "the server writes a binary log, and trusts no one without the privilege BINLOG ADMIN to make triggers"
        found.append(PrivilegeMissing(what, help="SET GLOBAL log_bin_trust_function_creators = 1"))
    if fetched(connection, "SHOW GLOBAL VARIABLES WHERE Variable_name = 'wsrep_on' AND Value = 'ON'"):
        found.append(CannotCapture("the server is a node of a Galera cluster, on which numbers can be given twice"))
    if bypassed := replica(connection):
        found.append(bypassed)
    return found


def replica(connection: Connection) -> MatviewError | None:
    """Rows that a replica receives do not fire its triggers."""
    running = fetched(connection, "SHOW GLOBAL STATUS LIKE 'Slaves_running'")
    ((fires,),) = fetched(connection, "SELECT @@GLOBAL.slave_run_triggers_for_rbr")
    if not running or int(running[0][1]) == 0 or fires != "NO":
        return None
    return CannotCapture("the server is a replica, on which triggers are not run", help="capture at its primary")
