"""How TPC-H's orders and their lines come, go and change, by shares of them."""

from __future__ import annotations

from typing import Literal

import matview
from bench import tpch

Kind = Literal["inserts", "deletes", "updates", "mixed"]
QUARTERS: dict[Kind, dict[str, tuple[int, int]]] = {
    "inserts": {"insert": (0, 3)},
    "deletes": {"delete": (0, 3)},
    "updates": {"update": (0, 3)},
    "mixed": {"insert": (0, 0), "delete": (1, 1), "update": (2, 3)},
}
"""Which quarters of those that are hit come, go or change: in a mixed stream 25, 25 and 50 %, as in paper C."""
TABLES = {
    "orders": ("o_orderkey", "o_totalprice = o_totalprice + 1"),
    "lineitem": ("l_orderkey", "l_discount = l_discount + 0.01"),
}
STEP = 100_000_000
"""Between the numbers of orders that come at one turn and at the next; those of the first state are below it."""


class Orders:
    """Turn by turn other orders are hit, with their lines; one that was hit may be hit again."""

    def __init__(self, warehouse: matview.Warehouse, scale: float) -> None:
        self._warehouse = warehouse
        self._scale = scale
        self._turn = 0

    def change(self, share: float, kind: Kind = "mixed", *, skewed: bool = False, times: int = 1) -> None:
        """A share of the orders, in so many transactions; skewed: 80 % of what is hit is among a fifth of them."""
        for _ in range(times):
            self._turn += 1
            with self._warehouse.transaction() as tx:
                for operation, (first, last) in QUARTERS[kind].items():
                    for table, (key, _) in TABLES.items():
                        hit = (
                            f"pmod(xxhash64({key}, {self._turn}), 1000000) < {_millionths(key, share / times, skewed)}"
                        )
                        quarters = f"pmod(xxhash64({key}, 7), 4) BETWEEN {first} AND {last}"
                        self._do(tx, operation, table, f"{hit} AND {quarters}")

    def _do(self, tx: matview.MaintenanceTransaction, operation: str, table: str, hit: str) -> None:
        key, assignment = TABLES[table]
        match operation:
            case "insert":
                first = self._warehouse.spark.read.parquet(str(tpch.table(table, self._scale)))
                tx.insert(table, first.where(hit).withColumn(key, first[key] + STEP * self._turn))
            case "delete":
                tx.sql(f"DELETE FROM {table} WHERE {hit}")
            case _:
                tx.sql(f"UPDATE {table} SET {assignment} WHERE {hit}")


def _millionths(key: str, share: float, skewed: bool) -> str:
    """Of each fifth: four times as many of one of them are 80 % of all, a quarter as many of the others the rest."""
    usual = share * 1_000_000
    if not skewed:
        return f"{usual:.0f}"
    return f"CASE WHEN pmod(xxhash64({key}, 3), 5) = 0 THEN {4 * usual:.0f} ELSE {usual / 4:.0f} END"
