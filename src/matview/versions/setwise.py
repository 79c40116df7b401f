"""Tables 2-4 as SQL over many tuples at once (section 4.2, without its cursors).

The row in scope has the stored columns of a layout, all null where no tuple conflicts, and the new values besides. Each
function gives Spark SQL text. What a text decides comes from the tables in `decide`: for every stored column the cells
that say the same are merged into the smallest tree of tests, and impossible cells are left free to fall anywhere.

`act` is an operation, or an SQL expression that yields 1, 2 or 3 for each row; `vn` is the transaction's number, or SQL
that yields it. `row` is the alias of the relation that has the stored columns, where one is needed. SQL that is passed
in goes into the text as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache

from sqlglot import exp

from matview.versions.decide import TABLES, Cell, Physical, Row, Source, Version, seen
from matview.versions.layout import OPERATION_TYPE, RID, VN_TYPE, Layout
from matview.versions.tree import Case, Leaf, Tree, smallest
from matview.versions.tuples import Operation

Act = str | Operation
At = str | int
_ACT = 1  # the place of the act in a case (row, act, previous operation)


class Part(Enum):
    """The parts of a stored tuple; the tables decide about each part in one way for all of its columns."""

    OPERATION = "operation_1"
    PRE = "pre-update values 1"
    CURRENT = "current values"
    OLDER = "slots 2 .. n-1"


class Older(Enum):
    """What becomes of slot i > 1: it stays, or slot i-1 is pushed back into it (section 5)."""

    KEEP = "keep"
    PUSH = "push"


Outcome = Operation | Source | Older


@dataclass(frozen=True, slots=True)
class _Scope:
    """Where a text will stand: the names in scope, and which transaction does what."""

    layout: Layout
    vn: At
    act: Act
    row: str | None

    @property
    def acts(self) -> tuple[Operation, ...]:
        """The operations that `act` may be: one if it is a constant, else all three."""
        constant = str(int(self.act)) if isinstance(self.act, Operation) else self.act.strip()
        return tuple(a for a in TABLES if str(int(a)) == constant) or tuple(TABLES)

    def column(self, name: str) -> exp.Expr:
        return exp.column(name, table=self.row, quoted=True)

    def is_row(self, row: Row) -> exp.Expr:
        kind = {Row.OWN: exp.EQ, Row.EARLIER: exp.LT}[row]
        return kind(this=self.column(self.layout.vn(1)), expression=exp.var(str(self.vn)))

    def is_act(self, act: Operation) -> exp.Expr:
        return _among(exp.paren(exp.var(str(self.act)), copy=False), {act})

    def was(self, operation: Operation) -> exp.Expr:
        return _among(self.column(self.layout.op(1)), {operation})

    def test(self, place: int, answer: object) -> exp.Expr:
        """One test of a decision tree over the cases of `_cells`."""
        if isinstance(answer, Row):
            return self.is_row(answer)
        if not isinstance(answer, Operation):
            raise AssertionError(f"no test asks for {answer!r}")
        return self.is_act(answer) if place == _ACT else self.was(answer)


def changed(layout: Layout, vn: At, act: Act, new: Mapping[str, str], *, row: str | None = None) -> dict[str, str]:
    """Each stored column of the tuple after `act` by transaction `vn`, in stored order, for rows that have a tuple.

    `new` has the new values of updatable columns, cast to their types; a column left out keeps its value. Rows in an
    impossible cell come out meaningless: see `impossible`. A tuple that this transaction had inserted and now deletes
    comes out void: see `own_insert_deleted`.
    """
    scope = _Scope(layout, vn, act, row)
    _check_new(scope, new)
    after = {name: scope.column(name) for name in (RID, *layout.current)}
    after |= {name: _current(scope, name, sql) for name, sql in new.items()}
    after |= {layout.vn(1): _cast(str(vn), VN_TYPE), layout.op(1): _operation(scope)}
    after |= {layout.pre(1, name): _pre(scope, name) for name in layout.updatable}
    for i in layout.slot_numbers[1:]:
        after |= {older: _older(scope, older, newer) for older, newer in _neighbours(layout, i)}
    return {name: after[name].sql("spark") for name, _ in layout.columns}


def inserted(layout: Layout, vn: At, new: Mapping[str, str], rid: str) -> dict[str, str]:
    """Each stored column of a new tuple, in stored order: the third row of Table 2.

    `new` has a value, cast to its type, for each of the user's columns and for a bag's `__count`.
    """
    if set(new) != set(layout.current):
        raise KeyError(f"values for {sorted(new)}, columns {sorted(layout.current)}")
    cell = TABLES[Operation.INSERT][Row.ABSENT, None]
    if cell.operation is None or cell.cv is not Source.MV or cell.pv is not Source.NULLS:
        raise AssertionError(f"not the third row of Table 2: {cell}")
    nulls = {name: f"CAST(NULL AS {kind})" for name, kind in layout.columns}
    first = {layout.vn(1): _cast(str(vn), VN_TYPE), layout.op(1): _cast(str(int(cell.operation)), OPERATION_TYPE)}
    return nulls | {RID: rid, **new, **{name: e.sql("spark") for name, e in first.items()}}


def live(layout: Layout, *, row: str | None = None) -> str:
    """The tuple has a current version to be read (first row of Table 1); null where no tuple is."""
    return _among(exp.column(layout.op(1), table=row, quoted=True), seen(Version.CURRENT)).sql("spark")


def own_insert_deleted(layout: Layout, vn: At, act: Act, *, row: str | None = None) -> str:
    """The row falls in Table 4's 'Delete tuple': its tuple goes back to what was stored before; never null."""
    return _falls_in(_Scope(layout, vn, act, row), Physical.DELETE)


# one part of a tuple each ---------------------------------------------------------------------------------------------


def _current(scope: _Scope, name: str, sql: str) -> exp.Expr:
    return _decided(scope, Part.CURRENT, {Source.KEEP: scope.column(name), Source.MV: exp.var(sql)})


def _operation(scope: _Scope) -> exp.Expr:
    outcomes: dict[Outcome, exp.Expr] = {o: _cast(str(int(o)), OPERATION_TYPE) for o in Operation}
    return _decided(scope, Part.OPERATION, outcomes | {Source.KEEP: scope.column(scope.layout.op(1))})


def _pre(scope: _Scope, name: str) -> exp.Expr:
    kept = scope.column(scope.layout.pre(1, name))
    nulls = _cast("NULL", scope.layout.type_of(name))
    return _decided(scope, Part.PRE, {Source.KEEP: kept, Source.NULLS: nulls, Source.CV: scope.column(name)})


def _older(scope: _Scope, older: str, newer: str) -> exp.Expr:
    return _decided(scope, Part.OLDER, {Older.KEEP: scope.column(older), Older.PUSH: scope.column(newer)})


def _neighbours(layout: Layout, i: int) -> list[tuple[str, str]]:
    """The columns of slot i, each with the same column of slot i-1."""
    copies = [(layout.pre(i, c), layout.pre(i - 1, c)) for c in layout.updatable]
    return [(layout.vn(i), layout.vn(i - 1)), (layout.op(i), layout.op(i - 1)), *copies]


# from the tables to CASE ----------------------------------------------------------------------------------------------


def _decided(scope: _Scope, part: Part, outcomes: Mapping[Outcome, exp.Expr]) -> exp.Expr:
    return _case(scope, _tree(part, scope.acts), outcomes)


@cache
def _tree(part: Part, acts: tuple[Operation, ...]) -> Tree[Outcome]:
    """The decision about one part; a tuple that goes needs no other part than its operation."""
    outcomes: dict[Case, Outcome] = {}
    for act, row, operation, cell in _cells(acts):
        if cell.physical is Physical.UPDATE or (cell.physical is Physical.DELETE and part is Part.OPERATION):
            outcomes[row, act, operation] = _outcome(part, cell)
    return smallest(outcomes)


def _cells(acts: tuple[Operation, ...]) -> list[tuple[Operation, Row, Operation | None, Cell]]:
    return [(act, row, operation, cell) for act in acts for (row, operation), cell in TABLES[act].items()]


def _outcome(part: Part, cell: Cell) -> Outcome:
    match part:
        case Part.OPERATION if cell.physical is Physical.DELETE:
            return Operation.VOID
        case Part.OPERATION:
            return cell.operation or Source.KEEP
        case Part.PRE:
            return cell.pv
        case Part.CURRENT:
            return cell.cv
        case Part.OLDER:
            return Older.PUSH if cell.push else Older.KEEP


def _case(scope: _Scope, tree: Tree[Outcome], outcomes: Mapping[Outcome, exp.Expr]) -> exp.Expr:
    """A tree as CASE: a yes-branch is a THEN, a chain of no-branches are further WHENs."""
    if isinstance(tree, Leaf):
        return outcomes[tree.outcome].copy()
    case = exp.Case()
    rest: Tree[Outcome] = tree
    while not isinstance(rest, Leaf):
        case = case.when(scope.test(rest.place, rest.answer), _case(scope, rest.yes, outcomes), copy=False)
        rest = rest.no
    return case.else_(outcomes[rest.outcome].copy(), copy=False)


# predicates -----------------------------------------------------------------------------------------------------------


def _falls_in(scope: _Scope, physical: Physical) -> str:
    """The rows in cells with that physical operation: per act, which previous operations, and in which row."""
    clauses: dict[exp.Expr, set[Operation]] = {}
    for act in scope.acts:
        rows = {row: {o for _, r, o, cell in _cells((act,)) if r is row and cell.physical is physical} for row in Row}
        if any(rows.values()):
            clauses.setdefault(_in_rows(scope, rows), set()).add(act)
    found = [exp.and_(*_is_act(scope, acts), clause, copy=False) for clause, acts in clauses.items()]
    return exp.Coalesce(this=exp.or_(*found), expressions=[exp.false()]).sql("spark") if found else "FALSE"


def _in_rows(scope: _Scope, rows: Mapping[Row, set[Operation | None]]) -> exp.Expr:
    column = scope.column(scope.layout.op(1))
    absent = [column.is_(exp.null())] if rows[Row.ABSENT] else []
    if rows[Row.EARLIER] == rows[Row.OWN]:
        there = [_among(column, rows[Row.OWN])]
    else:
        told = [row for row in (Row.EARLIER, Row.OWN) if rows[row]]
        there = [exp.and_(scope.is_row(row), _among(column, rows[row])) for row in told]
    return exp.or_(*absent, *there)


def _is_act(scope: _Scope, acts: set[Operation]) -> list[exp.Expr]:
    return [] if acts == set(scope.acts) else [_among(exp.paren(exp.var(str(scope.act))), acts)]


# small things ---------------------------------------------------------------------------------------------------------


def _among(what: exp.Expr, operations: Iterable[Operation | None]) -> exp.Expr:
    numbers = [exp.Literal.number(o) for o in sorted(int(o) for o in operations if o is not None)]
    return exp.EQ(this=what, expression=numbers[0]) if len(numbers) == 1 else exp.In(this=what, expressions=numbers)


def _cast(sql: str, kind: str) -> exp.Expr:
    return exp.var(f"CAST({sql} AS {kind})")


def _check_new(scope: _Scope, new: Mapping[str, str]) -> None:
    if foreign := set(new) - set(scope.layout.updatable):
        raise KeyError(f"not updatable: {sorted(foreign)}")
    if scope.acts == (Operation.INSERT,) and set(new) != set(scope.layout.updatable):
        raise KeyError("an insert gives every updatable column a value")
