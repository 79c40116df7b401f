"""Properties P1 to P9 of section 2.2, one function each, held against a history; none looks at how it was done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from matview.groups.graph import Maintain, View
from matview.groups.history import GroupRefresh, History, Moment, Queried, Update


@dataclass(frozen=True, slots=True)
class Breach:
    """A property that does not hold in a state."""

    name: str
    state: int
    tables: tuple[str, ...]
    why: str


Property = Callable[[History], Iterator[Breach]]


def p1(history: History) -> Iterator[Breach]:
    """An immediate view always is its query over its parents as they are, and is stored so."""
    for state, view in _each(history, Maintain.IMMEDIATE):
        if history.stored(view.name, state) != history.over_parents(view.name, state):
            yield Breach("P1", state, (view.name,), "an immediate view is not what its parents say")
        yield from _told_wrongly("P1", history, state, view)


def p2(history: History) -> Iterator[Breach]:
    """A deferred view answers as its parents are, is stored as they were once, and after a query as they are."""
    for state, view in _each(history, Maintain.DEFERRED):
        stored = history.stored(view.name, state)
        if not history.reference_states(view.name, stored, state):
            yield Breach("P2", state, (view.name,), "what is stored never was what the parents said")
        if _is_queried(history.moments[state], view) and stored != history.value(view.name, state):
            yield Breach("P2", state, (view.name,), "a query left it stale")
        yield from _told_wrongly("P2", history, state, view)


def p3(history: History) -> Iterator[Breach]:
    """A snapshot view is its query over its parents as they were once, and that is what is stored."""
    for state, view in _each(history, Maintain.SNAPSHOT):
        if not history.reference_states(view.name, history.stored(view.name, state), state):
            yield Breach("P3", state, (view.name,), "a snapshot of what never was")
        yield from _told_wrongly("P3", history, state, view)


def p4(history: History) -> Iterator[Breach]:
    """A view is base consistent with its effective state, and reference consistent with that state or a later one."""
    for state, view in _each(history):
        effective = history.moments[state].effective[view.name]
        value = history.value(view.name, state)
        if effective > state or value != history.over_base(view.name, effective):
            yield Breach("P4", state, (view.name,), f"it does not show the base tables of state {effective}")
        if not any(seen >= effective for seen in history.reference_states(view.name, value, state)):
            yield Breach("P4", state, (view.name,), f"its parents never said so since its effective state {effective}")


def p5(history: History) -> Iterator[Breach]:
    """What is stored for a view follows what is stored for its parents, and effective states never go back."""
    for state, view in _each(history):
        seen = history.reference_states(view.name, history.stored(view.name, state), state)
        parents = [p for p in view.parents if isinstance(history.assignment.graph[p], View)]
        newest = [max(_stored_states(history, parent, state), default=-1) for parent in parents]
        if not any(all(own <= other for other in newest) for own in seen):
            yield Breach("P5", state, (view.name, *parents), "a view is ahead of what it reads")
        if state and history.moments[state].effective[view.name] < history.moments[state - 1].effective[view.name]:
            yield Breach("P5", state, (view.name,), "an effective state went back")


def _stored_states(history: History, name: str, state: int) -> frozenset[int]:
    return history.reference_states(name, history.stored(name, state), state)


def p6(history: History) -> Iterator[Breach]:
    """Every table and view is in one viewgroup, and no viewgroup is empty."""
    groups = history.assignment.partition()
    for name in history.assignment.graph.order:
        inside = [group for group, names in groups.items() if name in names]
        if len(inside) != 1:
            yield Breach("P6", 0, (name,), f"it is in {len(inside)} viewgroups")
    yield from (Breach("P6", 0, (), f"viewgroup {group} is empty") for group, names in groups.items() if not names)


def p7(history: History) -> Iterator[Breach]:
    """A query is answered within the viewgroup of what it asks for."""
    for state, moment in enumerate(history.moments):
        if isinstance(moment.event, Queried):
            outside = _outside(history, moment.read, {history.assignment.group_of[moment.event.name]})
            if outside:
                yield Breach("P7", state, outside, f"a query of {moment.event.name} read other viewgroups")


def p8(history: History) -> Iterator[Breach]:
    """An operation in one viewgroup maintains no view in another."""
    for state, moment in enumerate(history.moments):
        outside = _outside(history, moment.maintained, _groups_of(history, moment))
        if outside:
            yield Breach("P8", state, outside, f"{moment.event} refreshed views of other viewgroups")


def p9(history: History) -> Iterator[Breach]:
    """All views of a viewgroup show one effective state, and are what their parents said in one later state."""
    for state, moment in enumerate(history.moments):
        for group, views in _views_by_group(history).items():
            effective = {moment.effective[view.name] for view in views}
            if len(effective) > 1:
                yield Breach("P9", state, _names(views), f"viewgroup {group} shows several states: {sorted(effective)}")
            elif problem := _no_common_state(history, views, effective.pop(), state):
                yield Breach("P9", state, _names(views), f"viewgroup {group}: {problem}")


def _no_common_state(history: History, views: list[View], effective: int, state: int) -> str:
    values = {view.name: history.value(view.name, state) for view in views}
    if any(value != history.over_base(name, effective) for name, value in values.items()):
        return f"a view does not show the base tables of state {effective}"
    common = set(range(effective, state + 1))
    for name, value in values.items():
        common &= history.reference_states(name, value, state)
    return "" if common else f"there is no state since {effective} with which all views agree"


PROPERTIES: dict[str, Property] = {
    "P1": p1,
    "P2": p2,
    "P3": p3,
    "P4": p4,
    "P5": p5,
    "P6": p6,
    "P7": p7,
    "P8": p8,
    "P9": p9,
}


def breaches(history: History, properties: Iterable[str] = PROPERTIES) -> tuple[Breach, ...]:
    """Every breach of these properties."""
    return tuple(found for name in properties for found in PROPERTIES[name](history))


# parts ----------------------------------------------------------------------------------------------------------------


def _each(history: History, *policies: Maintain) -> Iterator[tuple[int, View]]:
    """Every state with every view, of these policies or of any."""
    views = [view for view in history.assignment.graph.views if not policies or view.maintain in policies]
    return ((state, view) for state in range(len(history.moments)) for view in views)


def _is_queried(moment: Moment, view: View) -> bool:
    return moment.event == Queried(view.name)


def _told_wrongly(name: str, history: History, state: int, view: View) -> Iterator[Breach]:
    moment = history.moments[state]
    if _is_queried(moment, view) and moment.answer != history.value(view.name, state):
        yield Breach(name, state, (view.name,), "a query was told something else")


def _outside(history: History, names: Iterable[str], groups: set[str]) -> tuple[str, ...]:
    return tuple(sorted(name for name in names if history.assignment.group_of[name] not in groups))


def _groups_of(history: History, moment: Moment) -> set[str]:
    """The viewgroup in which an event takes place."""
    match moment.event:
        case Update(tables):
            return {history.assignment.group_of[table] for table in tables}
        case Queried(name):
            return {history.assignment.group_of[name]}
        case GroupRefresh(group):
            return {group}
        case None:
            return set(history.assignment.groups)


def _views_by_group(history: History) -> dict[str, list[View]]:
    found: dict[str, list[View]] = {}
    for view in history.assignment.graph.views:
        found.setdefault(history.assignment.group_of[view.name], []).append(view)
    return found


def _names(views: list[View]) -> tuple[str, ...]:
    return tuple(view.name for view in views)
