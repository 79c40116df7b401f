"""Algebra to SQL: one SELECT per operator, those that fit together made one; what is used twice becomes a CTE."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import count

from sqlglot import exp

from matview.algebra.nodes import (
    WEIGHT,
    Aggregate,
    Change,
    Filter,
    Join,
    Node,
    Opaque,
    Outer,
    Project,
    Repeat,
    Scan,
    Semi,
    SetOp,
    Stored,
    TopK,
    UnionAll,
    Unnest,
    Values,
    Window,
)
from matview.algebra.scalars import column, columns_in, conjunction, number, renamed

Name = Callable[[Scan | Change | Stored], exp.Table]
"""What a leaf is called where the text is going to run."""


def plain_name(leaf: Scan | Change | Stored) -> exp.Table:
    """The table's own name; `Δ` before it for its change, and the view's own name for what it holds."""
    match leaf:
        case Scan(table):
            return _table(table)
        case Change(scan):
            return _table(f"Δ{scan.table}")
        case Stored(view):
            return _table(view)


def query(node: Node, name: Name = plain_name) -> exp.Query:
    """The node as one query whose columns are the node's, in order."""
    return _Rendering(node, name, _common(node)).query()


def spelled_out(node: Node, name: Name = plain_name) -> exp.Query:
    """As `query`, with everything written where it is used: some databases compute a common table expression whole, and
    look nothing up in it."""
    return _Rendering(node, name, frozenset()).query()


def _table(name: str) -> exp.Table:
    return exp.Table(this=exp.to_identifier(name, quoted=True))


class _Rendering:
    def __init__(self, node: Node, name: Name, common: frozenset[Node]) -> None:
        self._node = node
        self._name = name
        self._numbers = count(1)
        self._common = common
        self._ctes: dict[Node, str] = {}
        self._texts: list[tuple[str, exp.Query]] = []

    def query(self) -> exp.Query:
        made = self._query(self._node)
        for alias, text in self._texts:
            made = made.with_(exp.to_identifier(alias), as_=text, copy=False)
        return made

    def _query(self, node: Node) -> exp.Query:
        """The node as a query; never a reference to a common table expression."""
        match node:
            case UnionAll(parts):
                return self._set_operation(exp.Union, parts, distinct=False)
            case SetOp(kind, left, right):
                made = exp.Except if kind.startswith("except") else exp.Intersect
                return self._set_operation(made, (left, right), distinct=not kind.endswith("all"))
            case Values():
                return _values(node)
            case Opaque(written) if isinstance(written, exp.Query):
                return written.copy()
        return self._select(node)

    def _select(self, node: Node) -> exp.Select:
        match node:
            case Scan(_, columns, fields):
                pairs = zip(fields, columns, strict=True)
                return exp.select(*(_column_as(f.name, c) for f, c in pairs)).from_(self._name(node), copy=False)
            case Change(scan):
                pairs = zip(scan.fields, scan.columns, strict=True)
                items = [*(_column_as(f.name, c) for f, c in pairs), column(WEIGHT)]
                return exp.select(*items).from_(self._name(node), copy=False)
            case Stored():
                return exp.select(*map(column, node.names)).from_(self._name(node), copy=False)
            case Project(input, outputs):
                return self._from(input).select(*(_as(n, e) for n, e in outputs), copy=False)
            case Aggregate(input, keys, aggregates):
                items = [*map(column, keys), *(_as(n, e) for n, e in aggregates)]
                made = self._from(input).select(*items, copy=False)
                return made.group_by(*map(column, keys), copy=False) if keys else made
            case Window(input, _, functions):
                items = [*map(column, input.names), *(_as(n, e) for n, e in functions)]
                return self._from(input).select(*items, copy=False)
            case TopK(input, order, limit, offset):
                made = self._from(input).select(*map(column, input.names), copy=False)
                made = made.order_by(*(o.copy() for o in order), copy=False).limit(limit, copy=False)
                return made.offset(offset, copy=False) if offset else made
            case Repeat(input, times):
                series = exp.GenerateSeries(start=number(1), end=exp.cast(column(times), "int"))
                return self._lateral(input, exp.Explode(this=series), ("__time",), node.names)
            case Unnest(input, generator, made_fields, outer):
                return self._lateral(input, generator.copy(), tuple(f.name for f in made_fields), node.names, outer)
        return self._body(node).select(*(map(column, node.names) if node.fields else ["*"]), copy=False)

    # FROM and WHERE ---------------------------------------------------------------------------------------------------

    def _from(self, node: Node) -> exp.Select:
        """A SELECT that has everything but its columns."""
        if node in self._common:
            return exp.select().from_(self._relation(node), copy=False)
        return self._body(node)

    def _body(self, node: Node) -> exp.Select:
        """The same, never a reference to a common table expression."""
        match node:
            case Filter(Scan() as scan, condition) if scan not in self._common:
                own = dict(zip(scan.names, scan.columns, strict=True))
                inner = self._select(scan).where(renamed(condition, own), copy=False)
                return exp.select().from_(inner.subquery(f"_{next(self._numbers)}", copy=False), copy=False)
            case Filter(input, condition):
                return self._from(input).where(condition.copy(), copy=False)
            case Join(_, on):
                return self._inner(node, on)
            case Outer(kind, on=on):
                return self._pair(node, on, f"{kind} outer")
            case Semi(kind, on=on):
                return self._pair(node, on, f"left {kind}")
        return exp.select().from_(self._relation(node), copy=False)

    def _pair(self, node: Outer | Semi, on: exp.Expr, kind: str) -> exp.Select:
        first, second = map(self._relation, node.inputs)
        made = exp.select().from_(first, copy=False).join(second, on=on.copy(), join_type=kind, copy=False)
        return _hinted(made, (first, second), node.sent)

    def _inner(self, node: Join, on: tuple[exp.Expr, ...]) -> exp.Select:
        """Each condition stands at the first join that has all of its columns."""
        relations = tuple(map(self._relation, node.parts))
        made = exp.select().from_(relations[0], copy=False)
        known, waiting = set(node.parts[0].names), list(on)
        for part, relation in zip(node.parts[1:], relations[1:], strict=True):
            known |= set(part.names)
            ready = [c for c in waiting if columns_in(c) <= known]
            waiting = [c for c in waiting if c not in ready]
            if ready:
                made = made.join(relation, on=conjunction(*ready), join_type="inner", copy=False)
            else:
                made = made.join(relation, join_type="cross", copy=False)
        return _hinted(made, relations, node.sent)

    def _relation(self, node: Node) -> exp.Expr:
        """The node where a table may stand."""
        if node not in self._common:
            return self._query(node).subquery(f"_{next(self._numbers)}", copy=False)
        if node not in self._ctes:
            text = self._query(node)
            self._ctes[node] = f"_c{len(self._ctes) + 1}"
            self._texts.append((self._ctes[node], text))
        return exp.alias_(exp.Table(this=exp.to_identifier(self._ctes[node])), f"_{next(self._numbers)}", table=True)

    def _lateral(
        self, input: Node, generator: exp.Expr, made: tuple[str, ...], names: tuple[str, ...], outer: bool = False
    ) -> exp.Select:
        alias = exp.TableAlias(
            this=exp.to_identifier(f"_{next(self._numbers)}"),
            columns=[exp.to_identifier(name, quoted=True) for name in made],
        )
        lateral = exp.Lateral(this=generator, view=True, outer=outer, alias=alias)
        selected = exp.select(*map(column, names)).from_(self._relation(input), copy=False)
        selected.append("laterals", lateral)
        return selected

    def _set_operation(
        self, kind: type[exp.SetOperation], parts: tuple[Node, ...], *, distinct: bool
    ) -> exp.SetOperation:
        made: exp.Expr = self._part(parts[0])
        for part in parts[1:]:
            made = kind(this=made, expression=self._part(part), distinct=distinct)
        assert isinstance(made, exp.SetOperation)
        return made

    def _part(self, node: Node) -> exp.Query:
        """A side of a set operation: a plain SELECT, since without brackets they are read from the left."""
        if node not in self._common:
            made = self._query(node)
            if isinstance(made, exp.Select) and not made.args.get("limit"):
                return made
            relation: exp.Expr = made.subquery(f"_{next(self._numbers)}", copy=False)
        else:
            relation = self._relation(node)
        return exp.select(*map(column, node.names)).from_(relation, copy=False)


def _hinted(made: exp.Select, relations: tuple[exp.Expr, ...], sent: int | None) -> exp.Select:
    """Spark does not know how small a relation is that was computed: it is told."""
    if sent is None:
        return made
    return made.hint(f"BROADCAST({relations[sent].alias})", dialect="spark", copy=False)


def _common(node: Node) -> frozenset[Node]:
    """What stands in more than one place and is more than a leaf; each part is looked at once."""
    uses: Counter[Node] = Counter()
    waiting = [node]
    while waiting:
        for part in waiting.pop().inputs:
            if part not in uses:
                waiting.append(part)
            uses[part] += 1
    return frozenset(part for part, times in uses.items() if times > 1 and part.inputs)


def _column_as(name: str, own: str) -> exp.Expr:
    """A column of a table under the name that a node gives it."""
    return column(own) if own == name else exp.Alias(this=column(own), alias=exp.to_identifier(name, quoted=True))


def _as(name: str, expression: exp.Expr) -> exp.Expr:
    if isinstance(expression, exp.Column) and expression.name == name:
        return expression.copy()
    return exp.Alias(this=expression.copy(), alias=exp.to_identifier(name, quoted=True))


def _values(node: Values) -> exp.Query:
    rows = [exp.select(*(_as(f.name, v) for f, v in zip(node.fields, row, strict=True))) for row in node.rows]
    if not node.fields:
        rows = [exp.select(_as("__unit", number(1))) for _ in node.rows]
    if not rows:
        nulls = (exp.cast(exp.null(), f.type or "string", dialect="spark") for f in node.fields)
        return exp.select(*(_as(f.name, v) for f, v in zip(node.fields, nulls, strict=True))).where(exp.false())
    made: exp.Query = rows[0]
    for row in rows[1:]:
        made = exp.Union(this=made, expression=row, distinct=False)
    return made
