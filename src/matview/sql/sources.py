"""The statements about sources.

CREATE SOURCE [IF NOT EXISTS] name FROM 'url' TABLES (table [AS name] [REMOTE], ...) [PREFIX 'text'] [WITHOUT REPLICAS]
    [CONSISTENCY STRONG | COMPLETE]
DROP SOURCE [IF EXISTS] name [CASCADE]      REFRESH SOURCE name      SHOW SOURCES
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from matview.errors import BadDefinition
from matview.sql import statements as st
from matview.sql.tokens import TokenReader

SOURCE_STATEMENTS = (("CREATE", "SOURCE"), ("DROP", "SOURCE"), ("REFRESH", "SOURCE"), ("SHOW", "SOURCES"))
_PLAIN = re.compile(r"[^\W\d]\w*\Z")
_CONSISTENCY: dict[tuple[str, ...], Literal["strong", "complete"]] = {("STRONG",): "strong", ("COMPLETE",): "complete"}


@dataclass(frozen=True, slots=True)
class _Table:
    """The last part of its name there, what it shall be called here, and whether it stays where it is."""

    last: str
    alias: str | None
    remote: bool


class SourceParser(TokenReader):
    """Reads one statement about sources."""

    def statement(self) -> st.Statement:
        if self.took("CREATE", "SOURCE"):
            return self._create()
        if self.took("DROP", "SOURCE"):
            if_exists = self.took("IF", "EXISTS")
            return self.ended(st.DropSource(self.name(), if_exists, self.took("CASCADE")))
        if self.took("REFRESH", "SOURCE"):
            return self.ended(st.RefreshSource(self.name()))
        self.expect("SHOW", "SOURCES")
        return self.ended(st.ShowSources())

    def _create(self) -> st.CreateSource:
        if_not_exists = self.took("IF", "NOT", "EXISTS")
        name = self.name()
        self.expect("FROM")
        url = self.string()
        self.expect("TABLES")
        tables = self._tables()
        prefix = self.string() if self.took("PREFIX") else ""
        without = self.took("WITHOUT", "REPLICAS")
        mode = self.choice(_CONSISTENCY, "STRONG or COMPLETE") if self.took("CONSISTENCY") else "strong"
        named = {table: one.alias or prefix + one.last for table, one in tables.items()}
        remote = frozenset(table for table, one in tables.items() if without or one.remote)
        return self.ended(st.CreateSource(name, url, named, remote, mode, if_not_exists))

    def _tables(self) -> dict[str, _Table]:
        self.expect("(")
        found: dict[str, _Table] = {}
        while True:
            where = self.here()
            parts = self._qualified()
            name = ".".join(map(_written, parts))
            if name in found:
                raise BadDefinition(f"table {name} is named twice", where=where)
            alias = self.name() if self.took("AS") else None
            found[name] = _Table(parts[-1], alias, self.took("REMOTE"))
            if not self.took(","):
                break
        self.expect(")")
        return found

    def _qualified(self) -> list[str]:
        """The parts of a table's name at its source."""
        parts = [self.part()]
        while self.took("."):
            parts.append(self.part())
        return parts


def _written(part: str) -> str:
    """A part of a name as sources write it."""
    return part if _PLAIN.match(part) else '"' + part.replace('"', '""') + '"'
