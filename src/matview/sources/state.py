"""Formula (3) as SQL for any engine: a table after exactly the transactions of a set, whatever has committed since.

    R^o  =  (R ∪ ▿R) − ▵R        ▵R, ▿R: what transactions outside the set have added and deleted

The paper takes ▵R away first; then a row that was added and deleted again outside the set would stay, because taking it
away from a table that no longer has it does nothing. This order is right for every history.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

PRINT = "__print"
CHANGES_OF = "Δ"
"""Before the name of a table: its changes in the set, with the weight."""


@dataclass(frozen=True, slots=True)
class Undoing:
    """A table as it is now, and what is to be undone. Queries give the columns in their order, under their names.

    `print_of` is an expression over an alias that is equal for rows that are the same in every column, and for no
    others. Without a key it stands for one.
    """

    columns: Sequence[str]
    key: Sequence[str]
    current: exp.Table
    added: exp.Query
    deleted: exp.Query
    print_of: Callable[[str, Sequence[str]], exp.Expr]


def touched(undoing: Undoing) -> exp.Query:
    """The keys of rows that were added outside the set, or their prints where there is no key.

    A row in the table now whose key was only deleted outside the set must have been added again, outside the set.
    """
    return exp.select(*key_of(undoing, "o")).distinct().from_(derived(undoing.added, "o"))


def restored(undoing: Undoing, keys: exp.Query) -> exp.Query:
    """Of each row among those touched or deleted, as many as are more than were added: counted by numbering them."""
    columns, everything = undoing.columns, columns_of("r", undoing.columns)
    now = exp.select(*everything).from_(aliased(undoing.current, "r")).where(is_touched(undoing, "r", keys))
    before = now.union(undoing.deleted, distinct=False)
    printed = exp.select(*columns_of("c", columns), exp.alias_(undoing.print_of("c", columns), PRINT, quoted=True))
    number = exp.Window(this=exp.RowNumber(), partition_by=[column("p", PRINT)])
    numbered = exp.select(
        *columns_of("p", columns), column("p", PRINT), exp.alias_(number, "__number", quoted=True)
    ).from_(derived(printed.from_(derived(before, "c")), "p"))
    times = exp.Coalesce(this=column("t", "__times"), expressions=[exp.Literal.number(0)])
    return (
        exp.select(*columns_of("n", columns))
        .from_(derived(numbered, "n"))
        .join(
            derived(counted(undoing), "t"),
            on=exp.EQ(this=column("t", PRINT), expression=column("n", PRINT)),
            join_type="left",
        )
        .where(exp.GT(this=column("n", "__number"), expression=times))
    )


def counted(undoing: Undoing) -> exp.Query:
    """How often each row was added outside the set."""
    prints = exp.select(exp.alias_(undoing.print_of("a", undoing.columns), PRINT, quoted=True))
    return (
        exp.select(column("g", PRINT), exp.alias_(exp.Count(this=exp.Star()), "__times", quoted=True))
        .from_(derived(prints.from_(derived(undoing.added, "a")), "g"))
        .group_by(column("g", PRINT))
    )


def state_old(undoing: Undoing, keys: exp.Query, rows: exp.Query) -> exp.Query:
    """R^o from the table, the touched keys and the restored rows; an engine may have put these into tables.

    The table stands in the union as it is, with the condition above it: so its indexes serve joins, too.
    """
    columns = undoing.columns
    current = exp.select(*columns_of("r", columns), flag(exp.false())).from_(aliased(undoing.current, "r"))
    before = exp.select(*columns_of("s", columns), flag(exp.true())).from_(derived(rows, "s"))
    return (
        exp.select(*columns_of("u", columns))
        .from_(derived(current.union(before, distinct=False), "u"))
        .where(exp.or_(column("u", "__old"), exp.Not(this=is_touched(undoing, "u", keys))))
    )


def is_touched(undoing: Undoing, alias: str, keys: exp.Query) -> exp.Expr:
    parts = [part.this if isinstance(part, exp.Alias) else part for part in key_of(undoing, alias)]
    known_by = parts[0] if len(parts) == 1 else exp.Tuple(expressions=parts)
    return exp.In(this=known_by, query=exp.Subquery(this=keys.copy()))


def key_of(undoing: Undoing, alias: str) -> list[exp.Expr]:
    if undoing.key:
        return columns_of(alias, undoing.key)
    return [exp.alias_(undoing.print_of(alias, undoing.columns), PRINT, quoted=True)]


def flag(value: exp.Expr) -> exp.Expr:
    return exp.alias_(value, "__old", quoted=True)


def with_states(query: exp.Query, states: Mapping[str, Callable[[], exp.Query | exp.Table]]) -> exp.Query:
    """The query with each table that has a name in `states` replaced by it, under the alias that it had.

    Names are compared exactly; common table expressions of the query hide tables of the same name.
    """
    replaced = query.copy()
    for table in list(replaced.find_all(exp.Table)):
        if table.db or table.name not in states or is_hidden(table):
            continue
        state, alias = states[table.name](), table.alias or table.name
        rest = {name: value for name, value in table.args.items() if name not in ("this", "db", "catalog", "alias")}
        new = aliased(state, alias) if isinstance(state, exp.Table) else derived(state, alias)
        for name, value in rest.items():
            new.set(name, value)
        table.replace(new)
    return replaced


def is_hidden(table: exp.Table) -> bool:
    """Whether a WITH around the table defines its name."""
    around = table.parent
    while around is not None:
        clause = around.args.get("with_")
        if isinstance(clause, exp.With) and any(cte.alias == table.name for cte in clause.expressions):
            return True
        around = around.parent
    return False


def quoted(query: exp.Query) -> exp.Query:
    """Every name in the query taken literally."""
    copy = query.copy()
    for identifier in copy.find_all(exp.Identifier):
        identifier.set("quoted", True)
    return copy


def column(alias: str, name: str) -> exp.Column:
    return exp.column(name, table=alias, quoted=True)


def columns_of(alias: str, names: Sequence[str]) -> list[exp.Expr]:
    return [column(alias, name) for name in names]


def aliased(table: exp.Table, alias: str) -> exp.Table:
    copy = table.copy()
    copy.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
    return copy


def derived(query: exp.Query, alias: str) -> exp.Subquery:
    return exp.Subquery(this=query.copy(), alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
