"""What a text can ask for: a closed union of frozen statements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from sqlglot import exp

from matview.algebra.schema import Schema
from matview.groups.graph import Maintain
from matview.groups.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Query:
    """A SELECT, a set operation, VALUES, with or without WITH."""

    query: exp.Expr


@dataclass(frozen=True, slots=True)
class CreateTable:
    name: str
    schema: Schema
    if_not_exists: bool = False
    cluster_by: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DropTable:
    """DROP TABLE [IF EXISTS] name [CASCADE]: with the views that read it."""

    name: str
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class Insert:
    """INSERT INTO table [(columns)] query; an empty `columns` means all of them, in order."""

    table: str
    columns: tuple[str, ...]
    source: exp.Expr


@dataclass(frozen=True, slots=True)
class Update:
    """UPDATE table [AS alias] SET column = expression, ... [WHERE condition]."""

    table: str
    alias: str
    assignments: Mapping[str, exp.Expr]
    where: exp.Expr | None


@dataclass(frozen=True, slots=True)
class Delete:
    """DELETE FROM table [AS alias] [WHERE condition]; TRUNCATE is a delete of everything."""

    table: str
    alias: str
    where: exp.Expr | None


@dataclass(frozen=True, slots=True)
class SetAll:
    """`UPDATE SET *` or `INSERT *` in a MERGE: every column takes the source's column of the same name."""


@dataclass(frozen=True, slots=True)
class WhenMatched:
    """`assignments` None means DELETE. `has_source` False is WHEN NOT MATCHED BY SOURCE."""

    condition: exp.Expr | None
    assignments: Mapping[str, exp.Expr] | SetAll | None
    has_source: bool = True


@dataclass(frozen=True, slots=True)
class WhenNotMatched:
    condition: exp.Expr | None
    values: Mapping[str, exp.Expr] | SetAll


@dataclass(frozen=True, slots=True)
class Merge:
    table: str
    alias: str
    source: exp.Expr
    source_alias: str
    on: exp.Expr
    clauses: tuple[WhenMatched | WhenNotMatched, ...]


@dataclass(frozen=True, slots=True)
class ShowTables:
    pass


@dataclass(frozen=True, slots=True)
class Describe:
    table: str


@dataclass(frozen=True, slots=True)
class SetVersions:
    """ALTER WAREHOUSE SET VERSIONS n."""

    versions: int


RefreshPolicy = Literal["auto", "incremental", "strict", "full"]


@dataclass(frozen=True, slots=True)
class CreateView:
    """CREATE MATERIALIZED VIEW name [(columns)] clauses AS query; `text` is the query as it was written.

    `policy` says how it is maintained; `maintain`, `group` and `schedule` when, and are None where nothing is said.
    """

    name: str
    query: exp.Expr
    text: str
    columns: tuple[str, ...] = ()
    policy: RefreshPolicy = "auto"
    if_not_exists: bool = False
    cluster_by: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    maintain: Maintain | None = None
    group: str | None = None
    schedule: Schedule | None = None


@dataclass(frozen=True, slots=True)
class AlterView:
    """ALTER MATERIALIZED VIEW name AS query: the view goes on under its name with another query.

    `columns` are those that CREATE names, where `apply` alters what is there; empty: the query's own.
    """

    name: str
    query: exp.Expr
    text: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SetView:
    """ALTER MATERIALIZED VIEW name SET ..., SET ...: all at once; None is left as it is."""

    name: str
    maintain: Maintain | None = None
    group: str | None = None
    schedule: Schedule | None = None
    policy: RefreshPolicy | None = None


@dataclass(frozen=True, slots=True)
class RestateView:
    """CREATE of a view that is there, where `apply` alters it: all of its settings, None is none."""

    name: str
    maintain: Maintain
    group: str | None
    schedule: Schedule | None
    policy: RefreshPolicy


@dataclass(frozen=True, slots=True)
class DropView:
    """DROP MATERIALIZED VIEW [IF EXISTS] name [CASCADE]: with the views that read it."""

    name: str
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class RefreshView:
    """REFRESH MATERIALIZED VIEW name [FULL]."""

    name: str
    full: bool = False


@dataclass(frozen=True, slots=True)
class ShowViews:
    pass


@dataclass(frozen=True, slots=True)
class ExplainView:
    """EXPLAIN of a view to be, or of one that is there."""

    view: CreateView | str


@dataclass(frozen=True, slots=True)
class CreateViewgroup:
    """CREATE VIEWGROUP name REFRESH schedule."""

    name: str
    schedule: Schedule
    if_not_exists: bool = False
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class AlterViewgroup:
    """ALTER VIEWGROUP name REFRESH schedule [COMMENT 'text']; a comment that is None is left as it is."""

    name: str
    schedule: Schedule
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class RenameViewgroup:
    """ALTER VIEWGROUP name RENAME TO new_name."""

    name: str
    new_name: str


@dataclass(frozen=True, slots=True)
class DropViewgroup:
    """DROP VIEWGROUP [IF EXISTS] name [CASCADE]: with the views that are in it, and those that read them."""

    name: str
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class RefreshViewgroup:
    """REFRESH VIEWGROUP name [FULL]."""

    name: str
    full: bool = False


@dataclass(frozen=True, slots=True)
class ShowViewgroups:
    pass


@dataclass(frozen=True, slots=True)
class ShowSessions:
    pass


@dataclass(frozen=True, slots=True)
class ShowRefreshes:
    pass


@dataclass(frozen=True, slots=True)
class CreateSource:
    """CREATE SOURCE name FROM 'url' TABLES (...): tables of a database, by their names there, with their names here."""

    name: str
    url: str = field(repr=False)
    tables: Mapping[str, str] = field(default_factory=dict)
    remote: frozenset[str] = frozenset()
    """Those that stay where they are; the others are copied."""
    mode: Literal["strong", "complete"] = "strong"
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropSource:
    """DROP SOURCE [IF EXISTS] name [CASCADE]: with the views that read its tables."""

    name: str
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class RefreshSource:
    """REFRESH SOURCE name: one round."""

    name: str


@dataclass(frozen=True, slots=True)
class ShowSources:
    pass


Change = Insert | Update | Delete | Merge
GroupDefinition = CreateViewgroup | AlterViewgroup | RenameViewgroup | DropViewgroup | SetView | RestateView
Definition = CreateTable | DropTable | CreateView | AlterView | DropView
Refresh = RefreshView | RefreshViewgroup
OfSources = CreateSource | DropSource | RefreshSource
Listing = ShowTables | ShowViews | ShowViewgroups | ShowSources | ShowSessions | ShowRefreshes | Describe
Look = Listing | ExplainView
Statement = Query | Change | Definition | GroupDefinition | OfSources | Refresh | Look | SetVersions


def expressions(change: Change) -> Iterator[exp.Expr]:
    """Whatever in a change may read tables."""
    match change:
        case Insert(_, _, source):
            yield source
        case Update(_, _, assignments, where):
            yield from (*assignments.values(), *_there(where))
        case Delete(_, _, where):
            yield from _there(where)
        case Merge():
            yield from (change.source, change.on)
            for clause in change.clauses:
                values = clause.assignments if isinstance(clause, WhenMatched) else clause.values
                yield from (*_there(clause.condition), *(values.values() if isinstance(values, Mapping) else ()))


def _there(expression: exp.Expr | None) -> tuple[exp.Expr, ...]:
    return () if expression is None else (expression,)
