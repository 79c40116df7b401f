"""Sites in DuckDB: each question is run over the tables of its site and what is sent along, and over nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import duckdb
from sqlglot import exp

from matview.algebra.nodes import Change, Node, Scan, Stored
from matview.plan.sites import Ask, Cut, Where, cut, question, stages
from matview.sources.sayable import sayable
from matview.sql.render import Name, query, spelled_out
from matview.versions.text import foreign_text

Run = Callable[[str], list[tuple[object, ...]]]


@dataclass
class Asking:
    """Runs a cut expression. `name` is what a table, or the change of one, is called in the database."""

    connection: duckdb.DuckDBPyConnection
    name: Name
    sites: Mapping[str, str]
    where: Where | None = None
    """What else is known; nothing, if not given."""
    asked: list[tuple[str, tuple[Ask, ...]]] = field(default_factory=list)
    """The queries that sites got, in their order."""
    _made: list[str] = field(default_factory=list)

    def rows(self, node: Node) -> list[tuple[object, ...]]:
        try:
            return self._run(cut(node, self.where or Where(self.sites, sayable)))
        finally:
            for name in self._made:
                self.connection.execute(f'DROP TABLE "{name}"')
            self._made.clear()

    def _run(self, found: Cut) -> list[tuple[object, ...]]:
        for stage in stages(found.asks):
            for site, asks in stage:
                self._ask(site, asks)
        return self._fetch(found.node)

    def _ask(self, site: str, asks: tuple[Ask, ...]) -> None:
        self.asked.append((site, asks))
        sent = [one for ask in asks for one in ask.sent]
        for name, node in sent:
            columns = [f"k{n}" for n in range(len(node.names))]
            self._table(name, self._sql(node), columns)
        made = question(asks)

        def named(leaf: Scan | Change | Stored) -> exp.Table:
            assert not isinstance(leaf, Stored)
            if isinstance(leaf, Scan) and leaf.table in dict(sent):
                return exp.to_table(f'"{leaf.table}"', dialect="duckdb")
            table = leaf.scan.table if isinstance(leaf, Change) else leaf.table
            assert self.sites[table] == site, "a site has its own tables only"
            return self.name(leaf)

        whole = f"__whole_{asks[0].name}"
        self._table(whole, foreign_text(spelled_out(made.node, named), "duckdb"))
        for number, (ask, columns) in enumerate(zip(asks, made.columns, strict=True)):
            names = zip(columns, ask.node.names, strict=True)
            shown = ", ".join(f'"{short}" AS "{name}"' for short, name in names)
            only = f" WHERE n = {number}" if made.is_numbered else ""
            self._table(ask.name, f'SELECT {shown} FROM "{whole}"{only}')

    def _table(self, name: str, text: str, columns: Sequence[str] = ()) -> None:
        named = f" ({', '.join(columns)})" if columns else ""
        self.connection.execute(f'CREATE TEMP TABLE "{name}"{named} AS {text}')
        self._made.append(name)

    def _fetch(self, node: Node) -> list[tuple[object, ...]]:
        return self.connection.execute(self._sql(node)).fetchall()

    def _sql(self, node: Node) -> str:
        return foreign_text(query(node, self._here), "duckdb")

    def _here(self, leaf: Scan | Change | Stored) -> exp.Table:
        assert not isinstance(leaf, Scan) or leaf.table not in self.sites, "tables of sites are asked for"
        return self.name(leaf)
