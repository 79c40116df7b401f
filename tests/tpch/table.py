"""The 22 queries of TPC-H as views: what is stored for each, how it is maintained, and why so.

`python -m tests.tpch.table` writes the table into docs/reference/views.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from sqlglot import exp

from matview.algebra.nodes import Join, Node, Outer, Semi, TopK, walk
from matview.algebra.passes import normalised
from matview.algebra.schema import Field, Schema
from matview.plan import strategies
from matview.plan.definition import Part, parts_of
from matview.plan.summary import Summary, Typing
from matview.sql import statements as st
from matview.sql.lower import lower
from matview.sql.parse import parse

HERE = Path(__file__).parent
DOCUMENT = HERE.parents[1] / "docs" / "reference" / "views.md"
BEGIN, END = "<!-- the table of tests/tpch/table.py begins -->\n", "<!-- and ends -->\n"
HEAD = "| query | stored | strategy | why |\n| --- | --- | --- | --- |\n"


def tables() -> dict[str, Schema]:
    found = parse((HERE / "tables.sql").read_text())
    return {table.name: table.schema for table in found if isinstance(table, st.CreateTable)}


def queries() -> list[exp.Expr]:
    found = parse((HERE / "queries.sql").read_text())
    return [statement.query for statement in found if isinstance(statement, st.Query)]


def as_parsed(node: Node) -> tuple[Field, ...]:
    """The types that the parser tells; Spark's differ in the digits of decimals, which does not matter here."""
    return tuple(replace(field, type=field.type.lower()) for field in node.fields)


def view_of(number: int, query: exp.Expr, typing: Typing) -> tuple[Part, ...]:
    schemas = tables()
    return parts_of(f"q{number}", normalised(lower(query, lambda table: schemas[table.name])), typing)


# in words -------------------------------------------------------------------------------------------------------------


def table(typing: Typing = as_parsed) -> str:
    views = [view_of(number, query, typing) for number, query in enumerate(queries(), 1)]
    return HEAD + "".join(line for number, parts in enumerate(views, 1) for line in _lines(number, parts))


def _lines(number: int, parts: tuple[Part, ...]) -> Iterator[str]:
    """A line for each stored relation; the view itself is the last."""
    for place, part in enumerate(parts):
        query = f"Q{number}" if place == 0 else ""
        stored = "the view" if part is parts[-1] else f"hidden {place + 1}"
        yield f"| {query} | {stored}: {_key(part)} | {strategy(part)} | {why(part)} |\n"


def _key(part: Part) -> str:
    if part.summary is not None:
        keys = part.summary.aggregate.keys
        return "one row" if not keys else f"{len(keys)} key column{'s' * (len(keys) > 1)}"
    return "rows with a key" if part.schema.key else "a bag"


def strategy(part: Part) -> str:
    """What applies besides full, which always does."""
    changed = part.reads
    always = strategies.delta(part, changed) is not None
    inserts = strategies.delta(part, changed, only_inserts=True) is not None
    found = ["delta"] if always else ["delta if rows only come"] if inserts else []
    return ", ".join([*found, *["affected"] * (strategies.affected(part, changed) is not None)])


def why(part: Part) -> str:
    summary = part.summary
    reasons = [_rows(part.node)] if summary is None else [_states(summary), _rows(summary.aggregate.input)]
    return "; ".join(reason for reason in reasons if reason)


def _states(summary: Summary) -> str:
    functions = Counter(_function(made) for _, made in summary.aggregate.aggregates)
    names = ", ".join(functions)
    match summary.method:
        case "additive":
            return f"{names}: changes are added" if names else "groups are counted"
        case "growing":
            return f"{names}: a delete may take the extreme away"
        case "affected":
            return f"{names}: groups are computed anew"


def _function(made: exp.Expr) -> str:
    inner = made.this if isinstance(made, exp.Filter) else made
    name = inner.sql_name().lower() if isinstance(inner, exp.Func) else type(inner).__name__.lower()
    return f"{name}(distinct)" if isinstance(inner.this, exp.Distinct) else name


def _rows(node: Node) -> str:
    """What the rows go through, from the root down."""
    met = Counter(words for part in walk(node) if (words := _operator(part)))
    return ", ".join(words if times == 1 else f"{words} ({times} times)" for words, times in met.items())


def _operator(node: Node) -> str:
    match node:
        case Join(parts):
            return f"join of {len(parts)}"
        case Outer(kind) | Semi(kind):
            return f"{kind} join"
        case TopK(_, _, rows):
            return f"the first {rows} are compared with those stored"
    return ""


# the document ---------------------------------------------------------------------------------------------------------


def with_table(document: str) -> str:
    """The document with the table that the code gives today."""
    before, rest = document.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


if __name__ == "__main__":
    DOCUMENT.write_text(with_table(DOCUMENT.read_text()))
