"""A query in a world: lowered, normalised, changed, and held against computing it anew.

Six laws: the lowered query gives what the text gives; normalising changes nothing; the new result is the old one and
the change together; the change is the same if tables are narrowed to what the changed rows can meet, and if it is
computed here, in Python; result and change are the same if some of the tables stay at sites that are asked for their
part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import cache, cached_property
from random import Random

import duckdb
import sqlglot
from sqlglot import exp
from tests.delta.harness import Bag, Duck, Row, added, after, bag, duck_type, summed, weighed
from tests.plan.sites.asking import Asking

from matview.algebra.keys import key_of
from matview.algebra.nodes import Change, Node, Scan, Stored, Window, tables, walk
from matview.algebra.passes import normalised
from matview.algebra.schema import Field
from matview.delta import change
from matview.plan.narrow import Known, Values, narrowed
from matview.plan.united import united
from matview.sql.lower import lower
from matview.sql.parse import parse_one
from matview.sql.render import Name, plain_name
from matview.sql.render import query as render
from matview.versions.text import foreign_text

from .at_hand import rows_at_hand
from .tables import TABLES, World, schema_of

NEW = "′"
"""After a table's name: its new state."""


class Broken(Exception):
    """A law that does not hold; `law` is its name."""

    def __init__(self, law: str, what: str) -> None:
        self.law = law
        super().__init__(f"{law}: {what}")


class Prepared:
    """A query's text, all the way to the text of its change when the tables of `changed` do; each step once."""

    def __init__(self, text: str, changed: Collection[str] | None = None) -> None:
        self.text = text
        self._changed = changed

    @cached_property
    def lowered(self) -> Node:
        return lower(parse_one(self.text).query, schema_of)

    @cached_property
    def node(self) -> Node:
        return normalised(united(self.lowered, typed))

    @cached_property
    def changed(self) -> frozenset[str]:
        """Unless they are given, some of the tables that the query reads, always the same."""
        if self._changed is not None:
            return frozenset(self._changed)
        random, read = Random(self.text), sorted(tables(self.lowered))
        some = random.sample(read, random.randint(1, len(read))) if read else []
        return frozenset(read if random.random() < 0.5 else some)

    @cached_property
    def original_sql(self) -> str:
        return foreign_text(sqlglot.parse_one(self.text, read="spark"), "duckdb")

    @cached_property
    def lowered_sql(self) -> str:
        return _duckdb(self.lowered)

    @cached_property
    def old_sql(self) -> str:
        return _duckdb(self.node)

    @cached_property
    def new_sql(self) -> str:
        return _duckdb(self.node, self._name)

    @cached_property
    def change(self) -> Node | None:
        return change(self.node, self.changed)

    @cached_property
    def change_sql(self) -> str | None:
        return None if self.change is None else _duckdb(self.change, self._name)

    def narrowed_sql(self, known: Known) -> str | None:
        """The text of the change, narrowed; None if nothing is."""
        if self.change is None or (narrow := narrowed(self.change, known)) == self.change:
            return None
        return _duckdb(narrow, self._name)

    def _name(self, leaf: Scan | Change | Stored) -> exp.Table:
        """Tables that changed are read in their new state."""
        if isinstance(leaf, Scan) and leaf.table in self.changed:
            return exp.to_table(f'"{leaf.table}{NEW}"', dialect="duckdb")
        return plain_name(leaf)

    @cached_property
    def sites(self) -> dict[str, str]:
        """Where the tables are that are not in the warehouse: at least one, at one of two sites."""
        random, read = Random(self.text), sorted(tables(self.lowered))
        remote = random.sample(read, random.randint(1, len(read))) if read else []
        return {table: random.choice("ef") for table in remote}

    @cached_property
    def is_left_open(self) -> bool:
        """Several windows look at rows that may be equal: which is which, SQL leaves open and the lowering settles."""
        over = [node for node in walk(self.lowered) if isinstance(node, Window) and key_of(node.input) is None]
        return len(over) > 1

    def operators(self) -> Counter[str]:
        return Counter(type(node).__name__ for node in walk(self.lowered))


def _duckdb(node: Node, name: Name = plain_name) -> str:
    return foreign_text(render(node, name), "duckdb")


@cache
def _empty() -> duckdb.DuckDBPyConnection:
    """The tables without rows."""
    made = duckdb.connect(config={"threads": 1})
    for table, schema in TABLES.items():
        made.execute(f'CREATE TABLE "{table}" ({", ".join(f"{c.name} {duck_type(c.type)}" for c in schema.columns)})')
    return made


def typed(node: Node) -> tuple[Field, ...]:
    """The columns of a node with the types that DuckDB gives them."""
    described = _empty().execute(f"DESCRIBE {_duckdb(node)}").fetchall()
    kinds = [kind.lower().replace("hugeint", "bigint") for _, kind, *_ in described]
    return tuple(Field(f.name, kind, f.nullable) for f, kind in zip(node.fields, kinds, strict=True))


# the laws -------------------------------------------------------------------------------------------------------------


class Loaded:
    """A world in a database: the tables as they were, as they are, and their changes. To be filled again and again."""

    def __init__(self) -> None:
        columns = {table: {c.name: c.type for c in schema.columns} for table, schema in TABLES.items()}
        self._duck = Duck({**columns, **{table + NEW: types for table, types in columns.items()}})

    def load(self, world: World, read: Collection[str] = tuple(TABLES)) -> None:
        """The tables that are read; what others hold does not matter."""
        rows: dict[str, Sequence[Row]] = {}
        for table in read:
            signed = world.change.get(table, [])
            rows[table] = world.before[table]
            rows[table + NEW] = after(world.before[table], signed)
            rows["Δ" + table] = weighed(signed)
        self._duck.load(rows)

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        return self._duck.connection

    def bag(self, text: str) -> Bag:
        return bag(self._duck.rows(text))

    def signed(self, text: str) -> dict[Row, int]:
        return summed((row[-1], row[:-1]) for row in self._duck.rows(text))

    def known(self, leaf: Change | Stored, name: str) -> Values | None:
        """The values of a column of a change."""
        if isinstance(leaf, Stored):
            return None
        own = leaf.scan.columns[leaf.scan.names.index(name)]
        return frozenset(row[0] for row in self._duck.fetch(f'SELECT DISTINCT "{own}" FROM "Δ{leaf.scan.table}"'))


def check_text(prepared: Prepared, loaded: Loaded) -> bool:
    """The lowered query gives what the text gives, normalising changes nothing. False: DuckDB cannot run the text."""
    lowered, original = loaded.bag(prepared.lowered_sql), _original(prepared, loaded)
    if original is not None and original != lowered:
        if prepared.is_left_open:
            return False
        raise Broken("lowering", _differing(original, lowered))
    if (plain := loaded.bag(prepared.old_sql)) != lowered:
        raise Broken("normalising", _differing(lowered, plain))
    return original is not None


def _original(prepared: Prepared, loaded: Loaded) -> Bag | None:
    try:
        return loaded.bag(prepared.original_sql)
    except duckdb.InternalException:
        raise
    except duckdb.Error:
        return None


def check_change(prepared: Prepared, loaded: Loaded) -> dict[Row, int]:
    """The new result is the old one and the change together; gives the change, net."""
    old, new = loaded.bag(prepared.old_sql), loaded.bag(prepared.new_sql)
    delta = {} if prepared.change_sql is None else loaded.signed(prepared.change_sql)
    if (made := added(old, delta)) != dict(new):
        raise Broken("change", _differing(new, made))
    return delta


def check_narrowed(prepared: Prepared, loaded: Loaded) -> bool:
    """Narrowing changes nothing. False: there was nothing to narrow."""
    text = prepared.narrowed_sql(loaded.known)
    if text is None or prepared.change_sql is None:
        return False
    expected, found = loaded.signed(prepared.change_sql), loaded.signed(text)
    if found != expected:
        raise Broken("narrowing", _differing(expected, found))
    return True


def check_at_hand(prepared: Prepared, loaded: Loaded) -> bool:
    """What is computed here is what DuckDB computes. False: none of it is."""
    if prepared.change is None or prepared.change_sql is None:
        return False
    computed = False
    for large in (False, True):
        found = rows_at_hand(loaded.connection, prepared._name, prepared.change, large=large)
        if found is None:
            continue
        computed = True
        told, expected = summed((row[-1], row[:-1]) for row in found), loaded.signed(prepared.change_sql)
        if told != expected:
            raise Broken("at hand", _differing(expected, told))
    return computed


def check_sites(prepared: Prepared, loaded: Loaded) -> int:
    """Tables that stay at their sites change nothing; how many queries the sites got."""
    asking = Asking(loaded.connection, prepared._name, prepared.sites)
    expected, found = loaded.bag(prepared.new_sql), bag(asking.rows(prepared.node))
    if found != expected:
        raise Broken("sites", _differing(expected, found))
    if prepared.change is not None and prepared.change_sql is not None:
        change, moved = loaded.signed(prepared.change_sql), asking.rows(prepared.change)
        told = summed((row[-1], row[:-1]) for row in moved)  # type: ignore[misc]
        if told != change:
            raise Broken("sites of a change", _differing(change, told))
    return len(asking.asked)


def _differing(expected: Mapping[Row, int], found: Mapping[Row, int]) -> str:
    """What is missing and what is too much."""
    difference = added(found, {row: -times for row, times in expected.items()})
    shown = [f"{times:+d} of {row}" for row, times in sorted(difference.items(), key=repr)[:5]]
    return f"{'; '.join(shown)}{' ...' if len(difference) > 5 else ''}"
