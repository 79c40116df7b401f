"""For each rule a graph that violates it, and how a history on it goes wrong under the paper's own algorithms."""

from __future__ import annotations

from dataclasses import dataclass

from matview.groups.graph import BaseTable, Graph, Group, View
from matview.groups.history import Event, GroupRefresh, Queried, Update

from .retail import DAILY, DEFERRED, IMMEDIATE, SNAPSHOT, WEEKLY, tables, view

G, H = Group("g", WEEKLY), Group("h", DAILY)


@dataclass(frozen=True)
class Illegal:
    """`also`: the other rules that forbid the same. `breached`: a property that `events` violate without them."""

    rule: int
    graph: Graph
    views: tuple[str, ...]
    events: tuple[Event, ...]
    breached: str
    also: tuple[int, ...] = ()


UPDATE = Update(("t",))
ILLEGAL = {
    "in two groups": Illegal(1, Graph((*tables("t"), view("a", "t", SNAPSHOT, "g", "h")), (G, H)), ("a",), (), "P6"),
    # makesafe goes through the base group only
    "immediate outside the base group": Illegal(
        2, Graph((*tables("t"), view("a", "t", IMMEDIATE, "g")), (G,)), ("a", "t"), (UPDATE,), "P1"
    ),
    # it is as new as the table, its group is not
    "deferred over another group": Illegal(
        2,
        Graph((*tables("t"), view("s", "t", SNAPSHOT, "g"), view("d", "t s", DEFERRED)), (G,)),
        ("d", "t"),
        (UPDATE,),
        "P9",
    ),
    "a query that has to look into another group": Illegal(
        2,
        Graph((*tables("t"), view("s", "t", SNAPSHOT, "g"), view("d", "t", DEFERRED, "g")), (G,)),
        ("d", "t"),
        (UPDATE, Queried("d")),
        "P7",
    ),
    # the group is refreshed by its weekly cycle: the daily view stays behind
    "two cycles": Illegal(
        3,
        Graph((*tables("t"), View("a", ("t",), SNAPSHOT, ("g",)), View("b", ("t",), SNAPSHOT, ("g",), DAILY)), (G,)),
        ("b",),
        (UPDATE, GroupRefresh("g")),
        "P9",
    ),
    "snapshot among tables": Illegal(
        4, Graph((*tables("t"), view("a", "t", SNAPSHOT, "base"))), ("a",), (UPDATE,), "P9"
    ),
    "two parent groups": Illegal(
        5,
        Graph((*tables("t"), view("a", "t", SNAPSHOT, "g"), view("b", "t a", SNAPSHOT, "h")), (G, H)),
        ("b", "t", "a"),
        (UPDATE, GroupRefresh("h")),
        "P9",
    ),
    "two groups read by a third": Illegal(
        5,
        Graph(
            (*tables("t"), view("a", "t", SNAPSHOT), view("b", "t", SNAPSHOT), view("c", "a b", SNAPSHOT)),
        ),
        ("c", "a", "b"),
        (UPDATE, GroupRefresh("a"), GroupRefresh("c")),
        "P4",
    ),
    # the refresh reads what is stored for the deferred view, which is old
    "deferred read elsewhere": Illegal(
        6,
        Graph((*tables("t"), view("d", "t", DEFERRED), view("e", "d", DEFERRED, "g")), (G,)),
        ("d", "e"),
        (UPDATE,),
        "P9",
        also=(2,),
    ),
    "immediate over deferred": Illegal(
        7, Graph((*tables("t"), view("d", "t", DEFERRED), view("a", "d", IMMEDIATE))), ("a", "d"), (UPDATE,), "P1"
    ),
    "immediate over snapshot": Illegal(
        7,
        Graph((*tables("t"), view("s", "t", SNAPSHOT, "g"), view("a", "s", IMMEDIATE)), (G,)),
        ("a", "s"),
        (UPDATE, GroupRefresh("g")),
        "P1",
    ),
    # the refresh of the group waits for the deferred view for ever
    "snapshot over deferred": Illegal(
        8,
        Graph(
            (*tables("t"), view("s", "t", SNAPSHOT, "g"), view("d", "s", DEFERRED), view("a", "d", SNAPSHOT, "g")), (G,)
        ),
        ("a", "d"),
        (UPDATE, GroupRefresh("g")),
        "P4",
    ),
    "snapshot over deferred elsewhere": Illegal(
        8,
        Graph((*tables("t"), view("d", "t", DEFERRED), view("a", "d", SNAPSHOT, "g")), (G,)),
        ("a", "d"),
        (UPDATE, GroupRefresh("g")),
        "P4",
        also=(6,),
    ),
    # makesafe goes through the base group only; beyond that, the rule keeps every state one of all tables
    "tables apart": Illegal(
        9,
        Graph((BaseTable("t", ("g",)), view("a", "t", IMMEDIATE)), (G,)),
        ("t",),
        (UPDATE,),
        "P1",
    ),
}
