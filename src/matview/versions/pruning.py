"""Skipping files and row groups under the rewrite (section 4.3, which leaves indexes on updatable attributes open).

A predicate on a non-updatable column holds of a stored tuple as it does of the logical one: clustering prunes as ever.
A predicate p on an updatable column c can only hold at some version if it holds of one of the stored values:

    p(c at s)  implies  p(c) or p(__pre1_c) or ... or p(__pre{n-1}_c)

Skipping never changes an answer, nor does it hide that a session has expired: an expired tuple's values cannot be told,
so nothing about them may decide whether it is met.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation

from sqlglot import exp

from matview.versions.expiry import Grain, table_expired
from matview.versions.facts import Facts
from matview.versions.layout import Layout
from matview.versions.predicates import Comparison, Constant, Kind, Predicate, Value, as_date, kind_of, sargable
from matview.versions.tuples import Operation

__all__ = ["Comparison", "Constant", "Predicate", "current", "implied", "may_match", "sargable"]

Bound = int | Decimal | str | date | datetime

_FLOAT_DIGITS = 15  # as many decimal digits as any double holds exactly
_ANY_ZONE = timedelta(days=1)  # a timestamp literal is local to the session, statistics are in UTC

_NODES: dict[Comparison, type[exp.Binary]] = {"=": exp.EQ, "<": exp.LT, "<=": exp.LTE, ">": exp.GT, ">=": exp.GTE}


def implied(
    predicates: Iterable[Predicate],
    layout: Layout,
    session_vn: int,
    facts: Facts,
    grain: Grain = "table",
    *,
    row: str | None = None,
) -> exp.Expr | None:
    """What the predicates demand of stored tuples, in a form that Parquet row groups can be skipped by.

    Only for columns that are read through CASE: all of them, if tuples may be hidden, else those of which an earlier
    value may be read. The others' predicates reach the files without help. But at the tuple's grain they stand here as
    well: before the check that stops a query which reads an expired tuple.
    """
    slots = facts.later_slots(session_vn)
    conditions = []
    told = facts.has_overlay or (grain == "tuple" and table_expired(session_vn, facts, layout))
    for predicate in predicates:
        is_fixed = not slots or predicate.column not in layout.updatable
        if told and is_fixed:
            conditions.append(_condition(predicate, exp.column(predicate.column, table=row, quoted=True)))
        elif not is_fixed:
            names = [predicate.column, *(layout.pre(i, predicate.column) for i in reversed(slots))]
            anywhere = [_condition(predicate, exp.column(n, table=row, quoted=True)) for n in names]
            conditions.append(exp.or_(*anywhere, *_expired(layout, session_vn, facts, grain, row)))
    return exp.and_(*conditions) if conditions else None


def _expired(layout: Layout, session_vn: int, facts: Facts, grain: Grain, row: str | None) -> Iterator[exp.Expr]:
    """At the tuple's grain an expired tuple must be met whatever its values."""
    if grain == "tuple" and table_expired(session_vn, facts, layout):
        oldest = exp.column(layout.vn(layout.slots), table=row, quoted=True)
        yield exp.GT(this=oldest, expression=exp.Literal.number(session_vn + 1))


def current(predicates: Iterable[Predicate]) -> exp.Expr:
    """What the predicates demand of the values that are stored as current; it never fails."""
    return exp.and_(exp.true(), *(_condition(p, exp.column(p.column, quoted=True)) for p in predicates))


def _condition(predicate: Predicate, column: exp.Expr) -> exp.Expr:
    constants: list[exp.Expr] = [exp.maybe_parse(c.sql, dialect="spark") for c in predicate.constants]
    if len(constants) > 1:
        return exp.In(this=column, expressions=constants)
    return _NODES[predicate.comparison](this=column, expression=constants[0])


# statistics of one file -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _File:
    """A file's statistics, by stored column; `all_null` are the columns known to hold nothing else."""

    layout: Layout
    minimum: Mapping[str, object]
    maximum: Mapping[str, object]
    all_null: Collection[str]

    def may_exceed(self, column: str, bound: int) -> bool:
        """Some value of a version or operation column may be greater than `bound`."""
        greatest = self.maximum.get(column)
        return column not in self.all_null and not (isinstance(greatest, int) and greatest <= bound)

    def slot_may_exceed(self, i: int, bound: int) -> bool:
        """Some tupleVN_i may be greater than `bound`; then each newer slot is greater by as many as it is newer."""
        return all(self.may_exceed(self.layout.vn(j), bound + i - j) for j in range(1, i + 1))


def may_match(
    predicates: Iterable[Predicate],
    layout: Layout,
    minimum: Mapping[str, object],
    maximum: Mapping[str, object],
    *,
    all_null: Collection[str] = (),
    session_vn: int | None = None,
) -> bool:
    """Some tuple in a file with these statistics may satisfy all predicates at `session_vn`; if None, at any version.

    A column without statistics may hold anything, unless it is among `all_null`: worth saying of slots never filled.
    Where expiry is checked per tuple, `session_vn` must be given: a file that may hold an expired tuple then meets any
    predicate on an updatable column. To read what is current, pass the number of the transaction that reads.
    """
    file = _File(layout, minimum, maximum, all_null)
    return all(_may_hold(file, predicate, session_vn) for predicate in predicates)


def _may_hold(file: _File, predicate: Predicate, session_vn: int | None) -> bool:
    kind = kind_of(file.layout.type_of(predicate.column))
    if predicate.column not in file.layout.updatable:
        return _in_range(file, predicate, predicate.column, kind)
    if session_vn is not None and file.slot_may_exceed(file.layout.slots, session_vn + 1):
        return True
    later = [i for i in file.layout.slot_numbers if _may_be_read(file, i, session_vn or 0)]
    names = [predicate.column, *(file.layout.pre(i, predicate.column) for i in later)]
    return any(_in_range(file, predicate, name, kind) for name in names)


def _may_be_read(file: _File, i: int, session_vn: int) -> bool:
    """Some tuple may be read at `session_vn` through its i-th pre-update values; after an insert there are none."""
    only_inserts = i == 1 and not file.may_exceed(file.layout.op(1), Operation.INSERT)
    return file.slot_may_exceed(i, session_vn) and not only_inserts


def _in_range(file: _File, predicate: Predicate, column: str, kind: Kind | None) -> bool:
    if column in file.all_null:
        return False
    if kind is None or kind is Kind.FLOATING:  # NaN is in no range, yet greater than all
        return True
    least, greatest = _bound(file.minimum.get(column), kind), _bound(file.maximum.get(column), kind)
    if kind is Kind.TIMESTAMP:
        least, greatest = _widened(least, greatest)
    return any(_within(predicate.comparison, _read_as(c.value, kind), least, greatest) for c in predicate.constants)


def _within(comparison: Comparison, value: Value, least: Bound | None, greatest: Bound | None) -> bool:
    """Some x with least <= x <= greatest may satisfy `x comparison value`."""
    above = greatest is None or _at_most(value, greatest)
    below = least is None or bool(least <= value)  # type: ignore[operator]
    match comparison:
        case "=":
            return above and below
        case "<" | "<=":
            return below and not (comparison == "<" and least == value)
        case ">" | ">=":
            return above and not (comparison == ">" and greatest == value and not isinstance(value, str))


def _at_most(value: Value, greatest: Bound) -> bool:
    """value <= greatest; a string's statistic may be cut short, so only as much of the value counts."""
    if isinstance(value, str) and isinstance(greatest, str):
        return value[: len(greatest)] <= greatest
    return bool(value <= greatest)  # type: ignore[operator]


def _read_as(value: Value, kind: Kind) -> Value:
    """Spark reads a string that is compared with a date as a date."""
    return (as_date(value) or value) if kind is Kind.DATE and isinstance(value, str) else value


def _widened(least: Bound | None, greatest: Bound | None) -> tuple[Bound | None, Bound | None]:
    try:
        return (
            least - _ANY_ZONE if isinstance(least, datetime) else None,
            greatest + _ANY_ZONE if isinstance(greatest, datetime) else None,
        )
    except OverflowError:
        return None, None


def _bound(statistic: object, kind: Kind) -> Bound | None:
    """A statistic as a value of the column's kind; None if it cannot be relied on."""
    match kind:
        case Kind.INTEGRAL:
            return statistic if isinstance(statistic, int) and not isinstance(statistic, bool) else None
        case Kind.DECIMAL:
            return _decimal(statistic)
        case Kind.STRING:
            return statistic if isinstance(statistic, str) else None
        case Kind.DATE:
            return as_date(statistic) if isinstance(statistic, str) else _plain_date(statistic)
        case Kind.TIMESTAMP:
            return _utc(statistic)
        case _:
            return None


def _decimal(statistic: object) -> Decimal | None:
    if isinstance(statistic, bool) or not isinstance(statistic, int | float | str | Decimal):
        return None
    try:
        number = Decimal(repr(statistic) if isinstance(statistic, float) else statistic)
    except InvalidOperation:
        return None
    exact = not isinstance(statistic, float) or len(number.as_tuple().digits) <= _FLOAT_DIGITS
    return number if number.is_finite() and exact else None


def _plain_date(statistic: object) -> date | None:
    return statistic if isinstance(statistic, date) and not isinstance(statistic, datetime) else None


def _utc(statistic: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(statistic) if isinstance(statistic, str) else statistic
        if not isinstance(moment, datetime):
            return None
        return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
    except (ValueError, OverflowError):
        return None
