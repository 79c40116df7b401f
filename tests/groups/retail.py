"""The graphs of paper C: the membership retailer of Example 1.1, and one with what is said of Figure 1."""

from __future__ import annotations

from datetime import timedelta

from matview.groups.graph import BaseTable, Graph, Group, Maintain, Node, View
from matview.groups.schedule import Every

IMMEDIATE, DEFERRED, SNAPSHOT = Maintain.IMMEDIATE, Maintain.DEFERRED, Maintain.SNAPSHOT
DAILY = Every(timedelta(days=1))
WEEKLY = Every(timedelta(weeks=1))


def tables(*names: str) -> tuple[BaseTable, ...]:
    return tuple(BaseTable(name) for name in names)


def view(name: str, reads: str, maintain: Maintain, *groups: str) -> View:
    return View(name, tuple(reads.split()), maintain, groups)


def retailer(returns: str | None, decisions: str | None, groups: tuple[Group, ...]) -> Graph:
    """Example 1.1 with the policies that it wishes for; one of them is illegal."""
    marketing = () if returns is None else (returns,)
    daily = () if decisions is None else (decisions,)
    nodes: tuple[Node, ...] = (
        *tables("customer", "sales", "supplier", "supplies"),
        view("CustReturns", "customer sales", DEFERRED),
        view("TotalItemReturns", "CustReturns", SNAPSHOT, *marketing),
        view("LargeSales", "customer sales", SNAPSHOT, *marketing),
        view("ItemStoreStock", "sales supplies", IMMEDIATE),
        view("ItemSuppSales", "sales supplies supplier", SNAPSHOT, *daily),
        view("ItemProfits", "ItemSuppSales supplies", SNAPSHOT, *daily),
    )
    return Graph(nodes, groups)


RETAILERS = {
    "two groups": retailer("marketing", "daily", (Group("marketing", WEEKLY), Group("daily", DAILY))),
    "one group": retailer("daily", "daily", (Group("daily", DAILY),)),
    "no groups": retailer(None, None, ()),
    "groups to choose from": retailer("a", "b", (Group("a"), Group("b"), Group("c", DAILY), Group("d", WEEKLY))),
}

# The picture of Figure 1 is not in the text. What is told of it: base tables and views with all three policies, several
# viewgroups, a legal assignment, and V8 over B3 and V7.
FIGURE_1 = Graph(
    (
        *tables("B1", "B2", "B3", "B4"),
        view("V1", "B1 B2", IMMEDIATE),
        view("V2", "V1 B3", IMMEDIATE),
        view("V3", "V1 B2", DEFERRED),
        view("V4", "V3 B4", DEFERRED),
        view("V5", "V2 B4", SNAPSHOT, "left"),
        view("V6", "V5", SNAPSHOT, "left"),
        view("V7", "B2 V1", SNAPSHOT, "right"),
        view("V8", "B3 V7", SNAPSHOT, "right"),
        view("V9", "V8 V7", DEFERRED),
        view("V10", "V8", SNAPSHOT, "far"),
        view("V11", "V10", DEFERRED),
        view("V12", "V11 V10", DEFERRED),
    ),
    (Group("left", DAILY), Group("right", WEEKLY), Group("far")),
)
