"""What the paper claims, on real databases: Figure 1, sets of transactions, strong and complete consistency."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest
from tests.maintain.rounds.consistency import completely, strongly
from tests.maintain.rounds.shops import rows
from tests.sources.lab import Lab
from tests.sources.postgres.lab import PostgresLab
from tests.sources.sqlite.lab import SqliteLab
from tests.waiting import wait_until

import matview


@pytest.mark.conforms("M5", "M6", "M11", "M12")
def test_figure_1(warehouse: matview.Warehouse, shop: PostgresLab, till: SqliteLab) -> None:
    """A lower transaction commits later, during the round: not in its answer, and not lost. No notification is sent."""
    shop.execute("CREATE TABLE r_i (id INT PRIMARY KEY, x INT NOT NULL)", "INSERT INTO r_i VALUES (1, 1), (2, 2)")
    till.execute("CREATE TABLE r_n (id INTEGER PRIMARY KEY)")
    warehouse.add_source("s_i", shop.url, ["r_i"])
    warehouse.add_source("s_n", till.url, ["r_n"])
    warehouse.sql(
        "CREATE MATERIALIZED VIEW q MAINTAIN IMMEDIATE AS SELECT i.id, i.x FROM r_i i JOIN r_n n ON i.id = n.id"
    )
    with closing(shop.writer()) as one, closing(shop.writer()) as three:
        till.execute("INSERT INTO r_n VALUES (1), (2)")  # T0: what Q is asked for
        one.begin()
        one.execute("UPDATE r_i SET x = 10 WHERE id = 1")  # T1
        three.begin()
        three.execute("UPDATE r_i SET x = 20 WHERE id = 2")  # T3
        three.commit()  # T4

        def commit_one(step: str) -> None:
            if step == "fixed":
                one.commit()  # T6: while the round is under way

        done = warehouse.ingest(step=commit_one)
    assert done.rounds == 1
    assert rows(warehouse, "SELECT * FROM q") == {(1, 1): 1, (2, 20): 1}, "the state after transaction 3 alone"
    warehouse.ingest()
    assert rows(warehouse, "SELECT * FROM q") == {(1, 10): 1, (2, 20): 1}
    assert warehouse.audit() == {"q": 0}


class Shopkeeper:
    """Writes transactions that touch both tables, and notes the state after each; nobody else writes there."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.states = [self.state()]

    def state(self) -> tuple[frozenset[Any], frozenset[Any]]:
        both = (Counter(self.lab.rows(table, ("id", "city"))) for table in ("orders", "heap"))
        one, other = (frozenset(found.items()) for found in both)
        return one, other

    def write(self, transactions: int) -> None:
        for number in range(len(self.states), len(self.states) + transactions):
            self.lab.together(
                f"DELETE FROM orders WHERE id = {10 + number % 3}",
                f"INSERT INTO orders VALUES ({10 + number % 3}, '{'Oslo' if number % 2 else 'Bergen'}', {number})",
                f"DELETE FROM heap WHERE id = {number - 3}",
                f"INSERT INTO heap VALUES ({number}, 'Oslo', NULL), ({number}, 'Oslo', NULL)",
            )
            self.states.append(self.state())


def joined(one: Any, other: Any) -> frozenset[Any]:
    """The view's query, in Python: orders of one source with heaps of the other."""
    (orders, _), (_, heap) = one, other
    pairs = [((o[0], h[0]), n * m) for o, n in orders for h, m in heap if o[1] is not None and o[1] == h[1]]
    sums: Counter[Any] = Counter()
    for pair, times in pairs:
        sums[pair] += times
    return frozenset(sums.items())


@pytest.mark.conforms("M13")
def test_every_version_shows_states_that_the_sources_had(
    warehouse: matview.Warehouse, shop: PostgresLab, till: SqliteLab
) -> None:
    """A view over two sources that go on while rounds are taken; each version is explained, and none goes back."""
    warehouse.add_source("shop", shop.url, ["orders", "heap"], prefix="s_")
    warehouse.add_source("till", till.url, ["orders", "heap"], prefix="t_")
    warehouse.sql(
        "CREATE MATERIALIZED VIEW v MAINTAIN IMMEDIATE AS "
        "SELECT o.id, h.id AS other FROM s_orders o JOIN t_heap h ON o.city = h.city"
    )
    keepers = [Shopkeeper(shop), Shopkeeper(till)]
    seen = [frozenset(rows(warehouse, "SELECT * FROM v").items())]
    with ThreadPoolExecutor(2) as pool:
        for _ in range(3):
            begun = len(keepers[0].states)
            writing = [pool.submit(keeper.write, 8) for keeper in keepers]
            wait_until(lambda begun=begun: all(len(keeper.states) > begun for keeper in keepers))
            version = warehouse.catalog.version().current_vn
            assert warehouse.ingest().version == version + 1, "both sources in one version"
            seen.append(frozenset(rows(warehouse, "SELECT * FROM v").items()))
            for keeper in writing:
                keeper.result()
    warehouse.ingest()
    seen.append(frozenset(rows(warehouse, "SELECT * FROM v").items()))
    explained = strongly(seen, [keeper.states for keeper in keepers], joined)
    assert explained is not None
    assert joined(*(keeper.states[-1] for keeper in keepers)) == seen[-1]
    assert warehouse.audit() == {"v": 0}


@pytest.mark.conforms("M13")
def test_complete_consistency_shows_every_state(warehouse: matview.Warehouse, shop: PostgresLab) -> None:
    """Transactions that overlap, one of which reads what another wrote: each is a version."""
    warehouse.add_source("shop", shop.url, ["orders", "heap"], mode="complete")
    keeper = Shopkeeper(shop)
    with closing(shop.writer()) as one, closing(shop.writer()) as other:
        one.begin()
        one.execute("INSERT INTO heap VALUES (50, 'one', 1)")
        other.begin()
        other.execute("INSERT INTO orders VALUES (50, 'other', 1)")
        other.execute("INSERT INTO heap VALUES (51, 'other', 1)")
        other.commit()
        keeper.states.append(keeper.state())
        one.execute("UPDATE orders SET city = 'one' WHERE id = 50")
        one.commit()
        keeper.states.append(keeper.state())
    shop.execute("DELETE FROM heap")
    keeper.states.append(keeper.state())

    def replicas() -> tuple[frozenset[Any], frozenset[Any]]:
        one, other = (frozenset(rows(warehouse, f"SELECT id, city FROM {t}").items()) for t in ("orders", "heap"))
        return one, other

    seen = [replicas()]
    done = warehouse.ingest(step=lambda step: seen.append(replicas()) if step == "installed" else None)
    assert (done.rounds, done.transactions) == (3, 3)
    assert completely(seen, [keeper.states], lambda state: state)
    wait_until(lambda: warehouse.ingest().rounds == 0)
