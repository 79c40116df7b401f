"""What a query groups by: ordinals, aliases and ALL resolved, grouping sets written out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from sqlglot import exp

from matview.sql.lower.context import Context, shown
from matview.sql.lower.functions import bare, has_aggregate, has_window
from matview.sql.lower.items import Item, aliases
from matview.sql.lower.resolve import lateral, resolve
from matview.sql.lower.scope import Scope

Set = tuple[exp.Expr, ...]


@dataclass(frozen=True)
class Keys:
    """Expressions to group by, each once; `sets` are the grouping sets, None for a plain GROUP BY."""

    values: Set
    sets: tuple[Set, ...] | None = None


NO_KEYS = Keys(())


def group_keys(ctx: Context, scope: Scope, select: exp.Select, items: Sequence[Item]) -> Keys | None:
    """What GROUP BY says; None if it says nothing."""
    group = select.args.get("group")
    if group is None:
        return None
    ctx.allow(group, "expressions", "rollup", "cube", "grouping_sets", "all")
    if group.args.get("all"):
        return Keys(_distinct(i.value for i in items if not has_aggregate(i.value) and not has_window(i.value)))
    return _Reading(ctx, scope, items).keys(group)


@dataclass(frozen=True)
class _Reading:
    ctx: Context
    scope: Scope
    items: Sequence[Item]

    def keys(self, group: exp.Group) -> Keys:
        listed = group.expressions
        if sets := group.args.get("grouping_sets"):
            plain = [self._key(e) for e in listed]
            return _keys([*plain, *self._keys_in(sets)], self._sets(sets[0]))
        if group.args.get("rollup"):
            return self._all([exp.Rollup(expressions=listed)])
        if group.args.get("cube"):
            return self._all([exp.Cube(expressions=listed)])
        return self._all(listed)

    def _all(self, listed: Sequence[exp.Expr]) -> Keys:
        """The product of what stands between the commas."""
        if not any(isinstance(e, exp.Rollup | exp.Cube | exp.GroupingSets) for e in listed):
            return Keys(_distinct(self._key(part) for e in listed for part in _members(e)))
        chosen = tuple(_distinct(sum(parts, ())) for parts in product(*(self._sets(e) for e in listed)))
        return _keys([key for e in listed for s in self._longest(e) for key in s], chosen)

    def _longest(self, element: exp.Expr) -> tuple[Set, ...]:
        """Every set of an element, so that its keys come in the order in which they are written."""
        if isinstance(element, exp.Rollup | exp.Cube | exp.GroupingSets):
            return tuple(s for e in element.expressions for s in self._longest(e))
        return (self._set(element),)

    def _sets(self, element: exp.Expr) -> tuple[Set, ...]:
        match element:
            case exp.Rollup():
                parts = [self._set(e) for e in element.expressions]
                return tuple(sum(parts[:n], ()) for n in range(len(parts), -1, -1))
            case exp.Cube():
                parts = [self._set(e) for e in element.expressions]
                return tuple(sum(chosen, ()) for chosen in product(*((p, ()) for p in parts)))
            case exp.GroupingSets():
                return tuple(s for e in element.expressions for s in self._sets(e))
        return (self._set(element),)

    def _keys_in(self, sets: Iterable[exp.Expr]) -> Iterable[exp.Expr]:
        return (key for element in sets for chosen in self._sets(element) for key in chosen)

    def _set(self, element: exp.Expr) -> Set:
        return _distinct(self._key(part) for part in _members(element))

    def _key(self, part: exp.Expr) -> exp.Expr:
        key = self._ordinal(part) or resolve(self.ctx, part, lateral(self.ctx, self.scope, aliases(self.items)))
        if has_aggregate(key) or has_window(key):
            what = f"GROUP BY cannot have an aggregate: `{shown(part)}`"
            raise self.ctx.bad(what, part, "group by columns and expressions over them")
        return bare(key)

    def _ordinal(self, part: exp.Expr) -> exp.Expr | None:
        if not isinstance(part, exp.Literal) or not part.is_int:
            return None
        if not 1 <= int(part.name) <= len(self.items):
            raise self.ctx.bad(f"there is no column {part.name} in the SELECT list", part, "count from 1")
        return self.items[int(part.name) - 1].value.copy()


def _members(element: exp.Expr) -> Sequence[exp.Expr]:
    """The parts of `(a, b)`; of `a` or `(a)`, that one."""
    return element.expressions if isinstance(element, exp.Tuple) else [bare(element)]


def _distinct(keys: Iterable[exp.Expr]) -> Set:
    return tuple(dict.fromkeys(keys))


def _keys(values: Iterable[exp.Expr], sets: tuple[Set, ...]) -> Keys:
    return Keys(_distinct(values), sets)
