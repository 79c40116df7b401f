"""Random histories over random legal graphs, on Spark: properties P1 to P9 hold, and every view is what recomputing
its query over the base tables of its effective state gives.

A table has rows (k, x). A view adds up what its parents have for each k; so contents can be computed here as well.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from tests.groups.model import random_event
from tests.groups.strategies import legal_graphs

import matview
from matview.groups.assign import Assignment
from matview.groups.check import checked
from matview.groups.graph import BASE, BaseTable, Graph, Maintain, View
from matview.groups.history import Event, GroupRefresh, History, Moment, Queried, Update
from matview.groups.properties import breaches
from matview.reading.session import Reader
from matview.sql.parse import parse_one
from matview.sql.statements import Query

EVENTS = 9


def evaluate(name: str, contents: tuple[Hashable, ...]) -> Hashable:
    """What the query of every view gives, over what its parents hold."""
    sums: Counter[int] = Counter()
    for content in contents:
        for k, x in content:  # type: ignore[attr-defined]
            sums[k] += x
    return tuple(sorted(sums.items()))


def query_of(view: View) -> str:
    parents = " UNION ALL ".join(f"SELECT k, x FROM {parent}" for parent in view.parents)
    return f"SELECT k, sum(x) AS x FROM ({parents}) GROUP BY k"


class Played:
    """A warehouse with a graph in it, and what every table held after each event."""

    def __init__(self, warehouse: matview.Warehouse, graph: Graph, seed: int) -> None:
        self.warehouse = warehouse
        self.assignment: Assignment = checked(graph)
        self.chance = random.Random(seed)
        self.versions: list[int] = []
        self.moments: list[Moment] = []
        with warehouse.transaction() as tx:
            for group in graph.groups:
                tx.sql(f"CREATE VIEWGROUP {group.name} REFRESH ON DEMAND")
            for name in graph.order:
                for text in self._made(graph[name]):
                    tx.sql(text)
        self._note(None)

    def _made(self, node: BaseTable | View) -> list[str]:
        if isinstance(node, BaseTable):
            made = f"CREATE TABLE {node.name} (k INT, x BIGINT, PRIMARY KEY (k))"
            return [made, f"INSERT INTO {node.name} VALUES (0, 1), (1, {self.chance.randint(1, 9)})"]
        group = f"IN VIEWGROUP {node.declared[0]}" if node.declared else ""
        return [f"CREATE MATERIALIZED VIEW {node.name} {group} MAINTAIN {node.maintain.upper()} AS {query_of(node)}"]

    def run(self, event: Event) -> None:
        before = self._consumed()
        answer = None
        match event:
            case Update(tables):
                with self.warehouse.transaction() as tx:
                    for table in tables:
                        tx.sql(self._change(table))
            case Queried(name):
                answer = contents(self.warehouse.sql(f"SELECT 'n' AS n, k, x FROM {name}")).get("n", ())
            case GroupRefresh(group):
                self.warehouse.refresh(group)
        after = self._consumed()
        self._note(event, frozenset(name for name in after if after[name] != before.get(name)), answer)

    def _change(self, table: str) -> str:
        k, x = self.chance.randint(0, 3), self.chance.randint(1, 99)
        return self.chance.choice(
            [
                f"UPDATE {table} SET x = x + {x} WHERE k <= {k}",
                f"DELETE FROM {table} WHERE k = {k}",
                f"MERGE INTO {table} USING (SELECT {k} AS k, {x} AS x) AS n ON {table}.k = n.k "
                "WHEN MATCHED THEN UPDATE SET x = n.x WHEN NOT MATCHED THEN INSERT (k, x) VALUES (n.k, n.x)",
            ]
        )

    def _consumed(self) -> dict[str, int]:
        """How far each view has come, by name."""
        fresh = self.warehouse.catalog.views.freshness()
        names = {t.id: t.name for t in self.warehouse.catalog.tables.live(fresh.current_vn)}
        found: dict[str, int] = {}
        for edge in fresh.edges:
            name = names[fresh.owner(edge.child_id)]
            found[name] = max(found.get(name, 0), edge.consumed)
        return found

    def _note(self, event: Event | None, maintained: frozenset[str] = frozenset(), answer: Hashable = None) -> None:
        version = self.warehouse.catalog.version().current_vn
        self.versions.append(version)
        order = self.assignment.graph.order
        union = " UNION ALL ".join(f"SELECT '{name}' AS n, k, x FROM {name}" for name in order)
        parsed = parse_one(union)
        assert isinstance(parsed, Query)
        stored = contents(Reader(self.warehouse.runtime, version, "table").query(parsed.query))
        states = {state.group: self._state(state.version) for state in self.warehouse.catalog.groups.states()}
        states[BASE] = len(self.moments)
        effective = {name: states[group] for name, group in self.assignment.group_of.items()}
        read = frozenset[str]()
        if isinstance(event, Queried):
            parents = (parent for name in maintained for parent in self.assignment.graph[name].parents)
            read = frozenset({event.name, *parents})
        held = {name: stored.get(name, ()) for name in order}
        self.moments.append(Moment(event, held, effective, maintained, read, answer))

    def _state(self, version: int) -> int:
        """The first moment at which the base tables were those of a version."""
        return next(number for number, reached in enumerate(self.versions) if reached >= version)


def contents(frame: Any) -> dict[str, Hashable]:
    found: dict[str, list[tuple[int, int]]] = {}
    for n, k, x in frame.collect():
        found.setdefault(n, []).append((k, x))
    return {name: tuple(sorted(rows)) for name, rows in found.items()}


def telling(graph: Graph) -> bool:
    """Every policy is there, and a view reads a view."""
    policies = {view.maintain for view in graph.views}
    return policies == set(Maintain) and any(isinstance(graph[p], View) for view in graph.views for p in view.parents)


@pytest.mark.conforms("C1", "C2", "C12")
def test_random_histories_keep_every_property(spark: Any, tmp_path: Path) -> None:
    place = iter(range(100))

    @settings(
        max_examples=3,
        derandomize=True,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(graph=legal_graphs(views=7).filter(telling))
    def played(graph: Graph) -> None:
        number = next(place)
        with matview.open(tmp_path / str(number), spark=spark) as warehouse:
            history = Played(warehouse, graph, number)
            for _ in range(EVENTS):
                history.run(random_event(history.chance, history.assignment))
            found = History(history.assignment, evaluate, tuple(history.moments))
            assert breaches(found) == (), [moment.event for moment in history.moments]

    played()
    assert next(place) >= 2, "several graphs were played"
