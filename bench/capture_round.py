"""A round with some changed rows in three sources and a view of four tables: tables that stay at their sources and
replicas side by side, against computing the view anew from the sources."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg

import matview
from bench.report import Figure, ratio
from matview.spark.session import spark_session

TABLES = {
    "sales": {
        "orders": "id int PRIMARY KEY, customer int, day date, note text",
        "items": "id int PRIMARY KEY, orders int, part int, amount numeric(12,2)",
    },
    "people": {"customers": "id int PRIMARY KEY, name text, city text"},
    "stock": {"parts": "id int PRIMARY KEY, label text, price numeric(12,2)"},
}
"""The sources, and their tables."""
FILLED = {
    "orders": "SELECT g, g % {customers}, DATE '2024-01-01' + g % 365, md5(g::text) "
    "FROM generate_series(1, {orders}) AS g",
    "items": "SELECT g, g % {orders} + 1, g % {parts} + 1, g % 1000 / 7.0 FROM generate_series(1, {items}) AS g",
    "customers": "SELECT g, 'name ' || g, 'city ' || g % 100 FROM generate_series(0, {customers}) AS g",
    "parts": "SELECT g, 'label ' || g, g FROM generate_series(1, {parts}) AS g",
}
INDEXES = {
    "sales": ("CREATE INDEX ON orders (customer)", "CREATE INDEX ON items (orders)", "CREATE INDEX ON items (part)"),
}
CHANGES = {
    "sales": (
        "UPDATE orders SET day = day + 1 WHERE id BETWEEN {turn} * 200 + 1 AND {turn} * 200 + 200",
        "UPDATE items SET amount = amount + 1 WHERE id BETWEEN {turn} * 770 + 1 AND {turn} * 770 + 770",
    ),
    "people": ("UPDATE customers SET city = 'city {turn}' WHERE id BETWEEN {turn} * 20 AND {turn} * 20 + 19",),
    "stock": ("UPDATE parts SET price = price + 1 WHERE id BETWEEN {turn} * 10 + 1 AND {turn} * 10 + 10",),
}
VIEW = (
    "SELECT i.id, o.day, c.city, p.label, i.amount FROM items i JOIN orders o ON i.orders = o.id "
    "JOIN customers c ON o.customer = c.id JOIN parts p ON i.part = p.id"
)
KINDS = {"remote": False, "replicas": True}


class Round:
    """Two warehouses over copies of the same databases, of which the same changes."""

    def __init__(self, url: str, scratch: Path, rows: int) -> None:
        self._url = url
        self._scratch = scratch
        self._sizes = {"items": rows, "orders": rows // 4, "customers": rows // 20, "parts": rows // 20}
        self._turn = 0

    def figures(self, rounds: int) -> tuple[list[Figure], dict[str, object]]:
        seconds: dict[str, list[float]] = {}
        with self._warehouses() as warehouses:
            for turn in range(rounds + 1):
                taken = self._one(warehouses)
                if turn:
                    for name, spent in taken.items():
                        seconds.setdefault(name, []).append(spent)
            for kind, warehouse in warehouses.items():
                assert warehouse.audit() == {"v": 0}, kind
        rows = f"{self._sizes['items']:,} items; {self.changed} rows of 4 tables change"
        return [
            Figure("round, remote", ratio(seconds, "remote", "anew"), None, f"over computing anew; {rows}"),
            Figure("round, replicas", ratio(seconds, "replicas", "anew"), None, "over computing anew from the sources"),
            Figure("round, remote over replicas", ratio(seconds, "remote", "replicas"), None, "the same changes"),
        ], {"sizes": self._sizes, "changed": self.changed, "seconds": seconds}

    changed = 0

    def _one(self, warehouses: dict[str, matview.Warehouse]) -> dict[str, float]:
        """The same changes for both, a round of each, and the whole view from the sources."""
        self._turn += 1
        taken = {}
        for kind, warehouse in warehouses.items():
            for source, statements in CHANGES.items():
                self._run(f"{kind}_{source}", [statement.format(turn=self._turn) for statement in statements])
            began = time.perf_counter()
            self.changed = warehouse.ingest().rows // 2
            taken[kind] = time.perf_counter() - began
        began = time.perf_counter()
        warehouses["remote"].refresh("v", mode="full")
        return taken | {"anew": time.perf_counter() - began}

    @contextmanager
    def _warehouses(self) -> Iterator[dict[str, matview.Warehouse]]:
        made = {kind: self._made(kind, replicate) for kind, replicate in KINDS.items()}
        try:
            yield made
        finally:
            for warehouse in made.values():
                for source in TABLES:
                    warehouse.remove_source(source, cascade=True)
                warehouse.close()

    def _made(self, kind: str, replicate: bool) -> matview.Warehouse:
        warehouse = matview.open(self._scratch / kind, spark=spark_session())
        for source, tables in TABLES.items():
            self._run("", [f"CREATE DATABASE {kind}_{source}"])
            filled = [f"CREATE TABLE {table} ({columns})" for table, columns in tables.items()]
            filled += [f"INSERT INTO {table} {FILLED[table].format(**self._sizes)}" for table in tables]
            self._run(f"{kind}_{source}", [*filled, *INDEXES.get(source, ()), "VACUUM ANALYZE"])
            warehouse.add_source(source, self._at(f"{kind}_{source}"), list(tables), replicate=replicate)
        warehouse.sql(f"CREATE MATERIALIZED VIEW v MAINTAIN IMMEDIATE AS {VIEW}")
        return warehouse

    def _at(self, database: str) -> str:
        """The URL of another database of the same server."""
        address, question, options = self._url.partition("?")
        return f"{address.rsplit('/', 1)[0]}/{database}{question}{options}" if database else self._url

    def _run(self, database: str, statements: Sequence[str]) -> None:
        connection: psycopg.Connection[Any]
        with closing(psycopg.connect(self._at(database), autocommit=True)) as connection:
            for statement in statements:
                connection.execute(statement)
