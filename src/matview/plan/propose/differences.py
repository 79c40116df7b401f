"""What a CREATE says against what is there: nothing, or each difference in words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import sqlglot
from sqlglot import exp

from matview.algebra.schema import Column, Schema
from matview.groups.graph import Maintain
from matview.plan.propose.inventory import Group, Table, View
from matview.sql import statements as st
from matview.sql.pieces import DIALECT


def of_table(there: Table, said: st.CreateTable) -> tuple[str, ...]:
    """A table keeps what it was made with: any of these stands in the way."""
    return (*_columns(there.schema, said.schema), *_kept(there, said.cluster_by, said.properties))


def of_kept(there: View, said: st.CreateView) -> tuple[str, ...]:
    """What of a view cannot be altered."""
    return tuple(_kept(there, said.cluster_by, said.properties))


def of_query(there: View, query: exp.Expr, shown: tuple[str, ...] | None) -> tuple[str, ...]:
    """Another query, or other columns; `shown` is None where only Spark can tell what they are called."""
    found = [] if same_query(there.text, query) else ["another query"]
    if shown is not None and there.shown is not None and shown != there.shown.visible:
        found.append(f"columns {', '.join(there.shown.visible)}, to be {', '.join(shown)}")
    return tuple(found)


def of_settings(there: View, after: View) -> tuple[str, ...]:
    """Policy, viewgroup and schedule, as a view has them and as it is to have them."""
    pairs = {
        "maintain": (there.maintain, after.maintain),
        "viewgroup": (there.group, after.group),
        "refresh": (there.schedule, after.schedule),
        "refresh policy": (there.policy, after.policy),
    }
    return tuple(f"{what} {_word(old)}, to be {_word(new)}" for what, (old, new) in pairs.items() if old != new)


def of_group(there: Group, after: Group) -> tuple[str, ...]:
    pairs = {"refresh": (there.schedule, after.schedule), "comment": (there.comment, after.comment)}
    return tuple(f"{what} {_word(old)}, to be {_word(new)}" for what, (old, new) in pairs.items() if old != new)


def same_query(text: str, query: exp.Expr) -> bool:
    """The same query, however it is laid out and commented."""
    return sqlglot.parse_one(text, dialect=DIALECT) == query


def _word(value: object) -> str:
    return "none" if value is None else value.value if isinstance(value, Maintain) else str(value)


# what is stored -------------------------------------------------------------------------------------------------------


def _columns(there: Schema, said: Schema) -> Iterator[str]:
    known = {c.name.casefold(): c for c in there.columns}
    for column in said.columns:
        old = known.pop(column.name.casefold(), None)
        if old is None:
            yield f"no column {column.name} is there"
        elif _kind(old) != _kind(column):
            yield f"column {column.name} is {_kind(old)}, not {_kind(column)}"
    yield from (f"a column {old.name} is there" for old in known.values())
    if _folded(there.key) != _folded(said.key):
        yield f"the key is ({', '.join(there.key)}), not ({', '.join(said.key)})"


def _kind(column: Column) -> str:
    return _type(column.type) + ("" if column.nullable else " not null")


def _type(text: str) -> str:
    """One spelling for each type: the catalog has Spark's, a statement the user's."""
    kind = exp.DataType.build(text, dialect=DIALECT)
    for field in kind.find_all(exp.ColumnDef):
        field.set("constraints", None)  # of the fields of a struct: the catalog has none
    plain = kind.sql(DIALECT).lower().replace(" ", "")
    plain = re.sub(r"\btimestamp_ltz\b", "timestamp", plain)
    return re.sub(r"\bdecimal(?:\((\d+)\)|(?!\())", lambda found: f"decimal({found[1] or 10},0)", plain)


def _kept(there: Table | View, cluster_by: tuple[str, ...], properties: Mapping[str, str]) -> Iterator[str]:
    if _folded(there.cluster_by) != _folded(cluster_by):
        yield f"it is clustered by ({', '.join(there.cluster_by)}), not by ({', '.join(cluster_by)})"
    for name in sorted({*there.properties, *properties}):
        old, new = there.properties.get(name), properties.get(name)
        if old != new:
            yield f"its property {name!r} is {_word(old)}, not {_word(new)}"


def _folded(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.casefold() for name in names)
