"""Every error that a user can meet: a code, what went wrong, where, and what to do about it.

Codes are grouped: 1xx the SQL text, 2xx the data, 3xx versions, sessions and transactions, 4xx what is around
them, 5xx materialized views, 6xx policies and viewgroups, 7xx sources.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a text an error stands; lines and columns count from 1."""

    line: int
    column: int
    source: str = "<sql>"

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.column}"


class MatviewError(Exception):
    """Base of all errors: `code`, `what`, `where` (may be None) and `help`."""

    code: ClassVar[str] = "MV000"
    default_help: ClassVar[str] = ""

    def __init__(self, what: str, *, where: Place | None = None, help: str | None = None) -> None:
        self.what = what
        self.where = where
        self.help = help if help is not None else self.default_help
        super().__init__(what)

    def __str__(self) -> str:
        place = f" at {self.where}" if self.where else ""
        help_line = f"\n  help: {self.help}" if self.help else ""
        return f"[{self.code}]{place} {self.what}{help_line}"

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.what, self.where, self.help), self.__dict__)


def _rebuild(cls: type[MatviewError], what: str, where: Place | None, help: str) -> MatviewError:
    return cls(what, where=where, help=help)


# 1xx: the SQL text ----------------------------------------------------------------------------------------------------


class SqlSyntaxError(MatviewError):
    """The text is not SQL that Matview understands."""

    code = "MV101"
    default_help = "Matview reads Spark SQL; check the text at the place named"


class UnsupportedStatement(MatviewError):
    """The text is SQL, but not a statement that Matview runs."""

    code = "MV102"
    default_help = "see docs/reference/sql.md for the statements there are"


class UnknownTable(MatviewError):
    """A name that is no table at the version being read."""

    code = "MV103"
    default_help = "`SHOW TABLES` lists the tables there are"


class UnknownColumn(MatviewError):
    """A name that is no column of the tables in scope."""

    code = "MV104"
    default_help = "`DESCRIBE <table>` lists a table's columns"


class TypeMismatch(MatviewError):
    """A value of a type that the column cannot take."""

    code = "MV105"
    default_help = "write an explicit CAST if the conversion is meant"


class TableExists(MatviewError):
    """CREATE TABLE of a name already taken."""

    code = "MV106"
    default_help = "choose another name, DROP TABLE first, or write CREATE TABLE IF NOT EXISTS"


class BadDefinition(MatviewError):
    """A CREATE TABLE that cannot be: a reserved name, a key that is no column, two columns of one name."""

    code = "MV107"
    default_help = "names that begin with `__` are Matview's own; see docs/reference/sql.md"


class QueryRejected(MatviewError):
    """Spark refused the query while analysing it."""

    code = "MV108"
    default_help = "the message is Spark's; the names in it are those of your query"


# 2xx: the data --------------------------------------------------------------------------------------------------------


class DuplicateKey(MatviewError):
    """Table 2 of the paper, 'impossible': an insert meets a live tuple with the same key."""

    code = "MV201"
    default_help = "use MERGE or UPDATE to change a row that is there; nothing was changed"


class NullKey(MatviewError):
    """A key column is null."""

    code = "MV202"
    default_help = "key columns take no nulls; nothing was changed"


class ImpossibleOperation(MatviewError):
    """Tables 3 and 4 of the paper, 'impossible': a change to a row that is not there."""

    code = "MV203"
    default_help = "the row to delete must be in the table, with these very values; nothing was changed"


class BadValue(MatviewError):
    """A value that does not fit its column: a failed cast, an overflow, a string too long."""

    code = "MV204"
    default_help = "nothing was changed; correct the value or the column's type"


class AmbiguousMerge(MatviewError):
    """MERGE in which one row of the target meets several rows of the source."""

    code = "MV205"
    default_help = "make the source unique on the ON condition; nothing was changed"


# 3xx: versions, sessions, transactions --------------------------------------------------------------------------------


class SessionExpired(MatviewError):
    """The session's version can no longer be told; section 3.2 of the paper, case 3."""

    code = "MV301"
    default_help = "begin a new session; `matview status` advises how many versions would let sessions live longer"


class SessionClosed(MatviewError):
    """A query in a session that was closed."""

    code = "MV302"
    default_help = "open a new one with `wh.session()`"


class MaintenanceBusy(MatviewError):
    """Another maintenance transaction holds the lease."""

    code = "MV303"
    default_help = "one maintenance transaction runs at a time; wait for it, or pass `wait=` to wait longer"


class LeaseLost(MatviewError):
    """This transaction's lease expired and another has taken over: the fencing token is stale."""

    code = "MV304"
    default_help = "nothing of this transaction was kept; run it again"


class TransactionOver(MatviewError):
    """A statement in a transaction that has been committed or rolled back."""

    code = "MV305"
    default_help = "begin a new one with `wh.transaction()`"


# 4xx: the warehouse around them ---------------------------------------------------------------------------------------


class NotAWarehouse(MatviewError):
    """The directory is there, holds something, and is no warehouse."""

    code = "MV401"
    default_help = "`matview init DIR` makes one in a new or empty directory"


class WarehouseClosed(MatviewError):
    """A call on a warehouse that was closed."""

    code = "MV402"
    default_help = "open it again with `matview.open(...)`"


class CatalogTooNew(MatviewError):
    """The catalog was written by a newer Matview."""

    code = "MV403"
    default_help = "upgrade Matview: `pip install --upgrade matview`"


class CatalogCorrupt(MatviewError):
    """The catalog cannot be read, or contradicts itself."""

    code = "MV404"
    default_help = "restore the catalog from a backup; the data files are untouched"


class CatalogUnavailable(MatviewError):
    """The catalog database does not answer."""

    code = "MV405"
    default_help = "check that the catalog's database is running and that its URL is right"


class StorageFailure(MatviewError):
    """The storage refused a read or a write: a full disk, no permission, a file gone."""

    code = "MV406"
    default_help = "free space or mend the storage, then run it again"


class SparkFailure(MatviewError):
    """Spark gave up on a job."""

    code = "MV407"
    default_help = "Spark's own log has the cause; then run it again"


class NoJava(MatviewError):
    """No Java runtime for Spark."""

    code = "MV408"
    default_help = "install a JDK >= 17, or `pip install matview[java]`"


class BadSetting(MatviewError):
    """A setting that cannot be: fewer than two versions, a negative bound, versions lowered."""

    code = "MV409"
    default_help = "see docs/reference/settings.md"


class ForeignDirectory(MatviewError):
    """The catalog and the directory belong to two different warehouses."""

    code = "MV410"
    default_help = "give the directory and the catalog that the warehouse was made with"


# 5xx: materialized views ----------------------------------------------------------------------------------------------


class NotIncremental(MatviewError):
    """A part of a view's query for which there is no rule to maintain it from changes."""

    code = "MV501"
    default_help = "REFRESH POLICY AUTO or FULL maintains such a view by computing it anew"


# 6xx: policies and viewgroups; 601 to 609 are Rules 1 to 9 of the paper -----------------------------------------------


class SeveralViewgroups(MatviewError):
    """Rule 1: a view belongs to one viewgroup."""

    code = "MV601"
    default_help = "name one viewgroup; see docs/reference/viewgroups.md"


class OutsideParentsGroup(MatviewError):
    """Rule 2: an immediate or a deferred view is in the viewgroup of all that it reads."""

    code = "MV602"
    default_help = "leave its viewgroup out, or let it read what is in one viewgroup; see docs/reference/viewgroups.md"


class DifferentCycles(MatviewError):
    """Rule 3: the snapshot views of a viewgroup are refreshed together, by one schedule."""

    code = "MV603"
    default_help = "leave the view's own schedule out, or name another viewgroup; see docs/reference/viewgroups.md"


class SnapshotAmongTables(MatviewError):
    """Rule 4: a snapshot view is not in the viewgroup of the base tables."""

    code = "MV604"
    default_help = "put it into another viewgroup; see docs/reference/viewgroups.md"


class SeveralParentGroups(MatviewError):
    """Rule 5: a viewgroup is derived from one other viewgroup at most."""

    code = "MV605"
    default_help = "put views that are read together into one viewgroup; see docs/reference/viewgroups.md"


class DeferredReadElsewhere(MatviewError):
    """Rule 6: a deferred view is read by views of its own viewgroup only."""

    code = "MV606"
    default_help = "put the views into one viewgroup, or change a policy; see docs/reference/viewgroups.md"


class ImmediateOverLate(MatviewError):
    """Rule 7: an immediate view reads neither deferred nor snapshot views."""

    code = "MV607"
    default_help = "let it read base tables and immediate views; see docs/reference/viewgroups.md"


class SnapshotOverDeferred(MatviewError):
    """Rule 8: a snapshot view reads no deferred views."""

    code = "MV608"
    default_help = "make the deferred view immediate or a snapshot view; see docs/reference/viewgroups.md"


class TableInViewgroup(MatviewError):
    """Rule 9: all base tables are in the built-in viewgroup `base`."""

    code = "MV609"
    default_help = "leave the viewgroup of the table out; see docs/reference/viewgroups.md"


class CyclicViews(MatviewError):
    """Views that read one another in a circle."""

    code = "MV610"
    default_help = "let one of them read what the other reads instead"


class UnknownViewgroup(MatviewError):
    """A name that is no viewgroup."""

    code = "MV611"
    default_help = "`SHOW VIEWGROUPS` lists those there are, CREATE VIEWGROUP makes one"


class ViewgroupExists(MatviewError):
    """A viewgroup of a name already taken; `base` is built in."""

    code = "MV612"
    default_help = "choose another name, DROP VIEWGROUP first, or write CREATE VIEWGROUP IF NOT EXISTS"


class BadSchedule(MatviewError):
    """A schedule that cannot be: an interval of zero, an invalid cron line, an unknown time zone."""

    code = "MV613"
    default_help = "EVERY '1 hour 30 minutes', CRON '0 6 * * MON-FRI' AT TIME ZONE 'Europe/Oslo', or ON DEMAND"


class ViewgroupInUse(MatviewError):
    """DROP VIEWGROUP of one that has views."""

    code = "MV614"
    default_help = "put its views elsewhere, or write CASCADE"


# 7xx: sources ---------------------------------------------------------------------------------------------------------


class SourceUnreachable(MatviewError):
    """A source does not answer, or broke off in the middle."""

    code = "MV701"
    default_help = "check that the source's database is running and that its URL is right, then run it again"


class SourceTableUnknown(MatviewError):
    """A name that is no table of the source."""

    code = "MV702"
    default_help = "`matview source tables URL` lists them; a name with dots or blanks is written in double quotes"


class TypeNotCarried(MatviewError):
    """A column, or a value in it, that no Spark type carries exactly."""

    code = "MV703"
    default_help = "see docs/reference/sources.md for the types that are carried"


class PrivilegeMissing(MatviewError):
    """The role that connects to the source may not do what capture needs."""

    code = "MV704"
    default_help = "see docs/reference/sources.md for the role with the fewest privileges"


class CannotCapture(MatviewError):
    """A table whose changes cannot all be seen: a view, a foreign table, a cascade that fires no trigger."""

    code = "MV705"
    default_help = "see docs/reference/sources.md for what is captured and what is not"


class SourceDrifted(MatviewError):
    """A table of the source is no longer what it was when it was added."""

    code = "MV706"
    default_help = "`matview source check NAME` says what has changed; remove the source and add it again"


class CaptureBypassed(MatviewError):
    """Changes may have been made that were not captured: a trigger is gone, or was disabled for a while."""

    code = "MV707"
    default_help = "`matview source check NAME` says what happened; `matview source reload NAME` reads it whole again"

    source_id: str | None = None
    table: str | None = None
    """The table, and the id of its source, that a round has to do without from now on, where that is known."""

    def of(self, source_id: str, table: str) -> CaptureBypassed:
        """The same error, of that table."""
        self.source_id, self.table = source_id, table
        return self


class BadSourceUrl(MatviewError):
    """A URL that names no source, or a password that cannot be found."""

    code = "MV708"
    default_help = "postgresql://user@host/database?password_env=NAME, mariadb://user@host/database, sqlite:///file"


class SourceExists(MatviewError):
    """A source of a name already taken."""

    code = "MV709"
    default_help = "choose another name, or remove the source of that name first"


class UnknownSource(MatviewError):
    """A name that is no source."""

    code = "MV710"
    default_help = "`SHOW SOURCES` lists those there are"


class SourceRefused(MatviewError):
    """The source's database refused a statement: the message is its own."""

    code = "MV711"
    default_help = "the message is the source's; nothing was changed there"


class StaysRemote(MatviewError):
    """A table that stays at its source has no rows here: only materialized views can read it."""

    code = "MV712"
    default_help = "make a materialized view of what is asked for, or add the source anew with replicas of its tables"
