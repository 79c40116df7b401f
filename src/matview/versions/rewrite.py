"""The logical relation at a version, as a query over stored tuples (section 4.1; section 5 for n versions).

    SELECT CASE WHEN __vn2 > s THEN __pre2_c WHEN __vn1 > s THEN __pre1_c ELSE c END AS c, ...     the least tupleVN > s
    FROM tuples t LEFT JOIN overlay o ON o hides t WHERE o.__rid IS NULL                            one tuple per __rid
      AND CASE WHEN __vn2 > s THEN __op2 <> 1 WHEN __vn1 > s THEN __op1 <> 1 ELSE __op1 <> 3 END    Table 1

Oldest slot first: tupleVNs fall from slot to slot, so the first one later than s is the least, and a null slot falls
through. Whatever the snapshot's facts rule out is left out; with nothing later than s and no deleted tuple the reading
is a plain projection.

What a user asks must not be asked of a hidden tuple: a cast may fail of a value that nobody sees any more, and an
expired tuple may hide behind a value that is not the session's. An anti-join would let Spark's optimizer do so, for it
moves conditions on the tuples below it. So in its place stands an outer join, and every value is null where the tuple
is hidden: such values are of both sides, and no condition on them goes below. Comparisons with constants, which never
fail, are put there by `pruning.implied`, so that files and row groups are skipped as ever.

A user's query is not touched beyond its table references: each becomes such a reading under the name it had
(`references.rewrite_query`), so that every place where a column can stand reads the right version.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from matview.versions.decide import Version, seen
from matview.versions.expiry import Grain, expired_message, table_expired
from matview.versions.facts import BROADCAST_ROWS, Facts
from matview.versions.layout import BASE, COUNT, LEVEL, RID, Layout
from matview.versions.pruning import Predicate, implied
from matview.versions.references import named, rewrite_query, table_references
from matview.versions.text import spark_text
from matview.versions.tuples import Operation

__all__ = ["Dialect", "Facts", "Hide", "reading", "rewrite_query", "table_references"]

Hide = Literal["outer_join", "not_exists"]
Dialect = Literal["spark", "duckdb", "postgres"]
Branches = list[tuple[exp.Expr, exp.Expr]]

TUPLES = "__t"
HIDERS = "__o"
REPEATS = "__r"
PARTS = "__p"
LONGEST_ARRAY = 65_536

# An expired tuple ends the query where the dialect has a function for that. PostgreSQL has none: use grain 'table'.
_RAISE: dict[Dialect, str] = {"spark": "RAISE_ERROR", "duckdb": "ERROR"}


@dataclass(frozen=True, slots=True)
class _Reader:
    """One reading: what is stored, at which version, and what is known about the tuples."""

    layout: Layout
    session_vn: int
    facts: Facts
    grain: Grain
    dialect: Dialect

    @property
    def slots(self) -> tuple[int, ...]:
        """The slots that may hold a change later than the session's version, oldest first."""
        return self.facts.later_slots(self.session_vn)

    def column(self, name: str) -> exp.Expr:
        return exp.column(name, table=TUPLES, quoted=True)

    def later(self, i: int, by: int = 0) -> exp.Expr:
        """tupleVN_i > sessionVN + by."""
        return exp.GT(this=self.column(self.layout.vn(i)), expression=exp.Literal.number(self.session_vn + by))


def reading(
    layout: Layout,
    session_vn: int,
    facts: Facts,
    tuples: exp.Expr,
    overlay: exp.Expr | None,
    *,
    hide: Hide = "outer_join",
    grain: Grain = "table",
    predicates: Iterable[Predicate] = (),
    dialect: Dialect = "spark",
) -> exp.Select:
    """The relation as of `session_vn`: exactly the user's columns, in order.

    `tuples` is a relation with the stored columns and `__level`, over base and overlay files; files in which no row can
    match the predicates may be left out. `overlay` is over all overlay files, none left out: it tells what is hidden.
    """
    facts.check(layout)
    reader = _Reader(layout, session_vn, facts, grain, dialect)
    hides = facts.has_overlay and overlay is not None
    values = {name: _told(reader, name) for name in layout.schema.visible}
    if hides and hide == "outer_join":
        values = {name: _unless_hidden(value) for name, value in values.items()}
    select = exp.select(*(exp.alias_(value, name, quoted=True) for name, value in values.items()))
    select = select.from_(named(tuples, exp.to_identifier(TUPLES)))
    if hides and overlay is not None:
        select = _hiding(select, overlay, hide, _hint(facts, dialect))
    if layout.schema.is_bag and facts.greatest_count > 1:
        select = _repeated(select, _value(reader, COUNT), facts.greatest_count, dialect)
    skipping = implied(predicates, layout, session_vn, facts, grain, row=TUPLES)
    conditions = [condition for condition in (skipping, _visible(reader)) if condition is not None]
    return select.where(*conditions, copy=False) if conditions else select


# values and visibility ------------------------------------------------------------------------------------------------


def _value(reader: _Reader, name: str) -> exp.Expr:
    """The value of a column at the session's version; of a tuple that is not there then, anything."""
    if name not in reader.layout.updatable:
        return reader.column(name)
    slots = [i for i in reader.slots if _shown(reader, i, Version.PRE_UPDATE) != exp.false()]
    branches = [(reader.later(i), reader.column(reader.layout.pre(i, name))) for i in slots]
    return _case(branches, reader.column(name))


def _told(reader: _Reader, name: str) -> exp.Expr:
    """The value; of an expired tuple none is told that an update may have changed: who asks for it ends the query.

    For Spark may ask what a user wants of a tuple before it asks whether the tuple is expired.
    """
    visible = _visible(reader) if _raises(reader) and name in reader.layout.updatable else None
    return _value(reader, name) if visible is None else _case([(visible, _value(reader, name))], exp.null())


def _visible(reader: _Reader) -> exp.Expr | None:
    """The tuple is there at the session's version (Table 1); None if that holds for every tuple."""
    slots: Branches = [(reader.later(i), _shown(reader, i, Version.PRE_UPDATE)) for i in reader.slots]
    current = _shown(reader, 1, Version.CURRENT)
    if not _raises(reader) and all(shown == exp.true() for shown in (*(s for _, s in slots), current)):
        return None
    if not _raises(reader) and [s for _, s in slots] == [exp.false()] and current == exp.true():
        return exp.LTE(this=reader.column(reader.layout.vn(1)), expression=exp.Literal.number(reader.session_vn))
    return _case([*_void(reader), *_expired(reader), *slots], current)


def _shown(reader: _Reader, i: int, version: Version) -> exp.Expr:
    """operation_i is one under which Table 1 has that version read; constant if the facts leave no choice."""
    most = reader.facts.greatest_op if i == 1 else Operation.DELETE
    possible = {o for o in Operation if o <= most}
    wanted, unwanted = possible & seen(version), possible - seen(version)
    if not wanted or not unwanted:
        return exp.convert(not unwanted)
    column = reader.column(reader.layout.op(i))
    if len(unwanted) == 1:
        return exp.NEQ(this=column, expression=exp.Literal.number(int(unwanted.pop())))
    return exp.In(this=column, expressions=[exp.Literal.number(int(o)) for o in sorted(wanted)])


def _void(reader: _Reader) -> Branches:
    """A void tuple is seen at no version, whatever its older slots say, and so expires at none."""
    if reader.facts.greatest_op < Operation.VOID or not (_raises(reader) or len(reader.slots) > 1):
        return []
    column = reader.column(reader.layout.op(1))
    return [(exp.EQ(this=column, expression=exp.Literal.number(int(Operation.VOID))), exp.false())]


def _raises(reader: _Reader) -> bool:
    expirable = reader.grain == "tuple" and reader.dialect in _RAISE
    return expirable and table_expired(reader.session_vn, reader.facts, reader.layout)


def _expired(reader: _Reader) -> Branches:
    """Case 3 of section 5 ends the query. It stands before the branches that would read such a tuple wrongly."""
    if not _raises(reader):
        return []
    message = exp.Literal.string(expired_message(reader.session_vn))
    error = exp.Anonymous(this=_RAISE[reader.dialect], expressions=[message])
    return [(reader.later(reader.layout.slots, by=1), exp.cast(error, "boolean"))]


def _case(branches: Branches, otherwise: exp.Expr) -> exp.Expr:
    case = exp.Case()
    for condition, result in branches:
        case = case.when(condition, result, copy=False)
    return case.else_(otherwise, copy=False) if branches else otherwise


# hiding and repeating -------------------------------------------------------------------------------------------------


def _hint(facts: Facts, dialect: Dialect) -> str | None:
    """An overlay of moderate size is sent to every executor; how a larger one is joined, Spark chooses."""
    return f"BROADCAST({HIDERS})" if dialect == "spark" and facts.overlay_rows <= BROADCAST_ROWS else None


def _hiding(select: exp.Select, overlay: exp.Expr, hide: Hide, hint: str | None) -> exp.Select:
    """One tuple per `__rid`: an overlay tuple hides the base tuple and overlay tuples with an older tupleVN_1."""

    def column(name: str, table: str) -> exp.Expr:
        return exp.column(name, table=table, quoted=True)

    base = exp.EQ(this=column(LEVEL, TUPLES), expression=exp.Literal.string(BASE))
    newer = exp.GT(this=column("__vn1", HIDERS), expression=column("__vn1", TUPLES))
    same = exp.EQ(this=column(RID, TUPLES), expression=column(RID, HIDERS))
    hidden = exp.and_(same, exp.or_(base, newer))
    hiders = named(overlay, exp.to_identifier(HIDERS))
    if hide == "not_exists":
        return select.where(exp.Exists(this=exp.select("1").from_(hiders).where(hidden)).not_(), copy=False)
    joined = select.join(hiders, on=hidden, join_type="left", copy=False).where(_not_hidden(), copy=False)
    return joined.hint(hint, dialect="spark", copy=False) if hint else joined


def _not_hidden() -> exp.Expr:
    return exp.column(RID, table=HIDERS, quoted=True).is_(exp.null())


def _unless_hidden(value: exp.Expr) -> exp.Expr:
    """Null for a hidden tuple, which is not there: a value that no condition can be moved below the join for."""
    return _case([(_not_hidden(), value)], exp.null())


def _repeated(select: exp.Select, count: exp.Expr, most: int, dialect: Dialect) -> exp.Select:
    """A bag's rows as often as they occur; a row that is not there has a null count or is filtered out besides."""
    if dialect == "spark":
        return _exploded(select, count, most)
    series = exp.Anonymous(this="GENERATE_SERIES", expressions=[exp.Literal.number(1), count])
    return select.join(exp.Lateral(this=series, alias=_as(REPEATS, "__i")), join_type="cross", copy=False)


def _exploded(select: exp.Select, count: exp.Expr, most: int) -> exp.Select:
    """By an array of so many zeros. An array has to fit into memory, so a large count is made of parts."""
    if most > LONGEST_ARRAY:
        parts = f"EXPLODE(SEQUENCE(0L, ({spark_text(count)} - 1L) DIV {LONGEST_ARRAY}L))"
        _view(select, parts, _as(PARTS, "__part"))
        rest = f"{spark_text(count)} - {PARTS}.__part * {LONGEST_ARRAY}L"
        count = exp.maybe_parse(f"LEAST({rest}, {LONGEST_ARRAY}L)", dialect="spark")
    return _view(select, f"EXPLODE(ARRAY_REPEAT(0, CAST({spark_text(count)} AS INT)))", _as(REPEATS, "__i"))


def _view(select: exp.Select, generator: str, alias: exp.TableAlias) -> exp.Select:
    made: exp.Expr = exp.maybe_parse(generator, dialect="spark")
    select.append("laterals", exp.Lateral(this=made, view=True, alias=alias))
    return select


def _as(name: str, column: str) -> exp.TableAlias:
    return exp.TableAlias(this=exp.to_identifier(name), columns=[exp.to_identifier(column)])
