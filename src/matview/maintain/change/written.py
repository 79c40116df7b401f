"""Rows that are written out in a statement: computed on the driver, where Arrow computes as Spark does."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql.types import LongType, StructField, StructType
from sqlglot import exp

from matview.algebra.nodes import WEIGHT
from matview.algebra.schema import Column
from matview.local.batch import Batch, one_array
from matview.local.kinds import FOR_SPARK, NotLocal
from matview.local.matching import alike
from matview.local.scalars import Scope, converted, scalar
from matview.maintain.change.assign import is_sized
from matview.maintain.change.given import Given
from matview.storage.few import are_few, arrow_schema
from matview.storage.table import VersionedTable

_NOTHING = Batch.of((), 1)
_PLAIN = {"expressions"}
"""What a SELECT of constants has."""


def written(table: VersionedTable, names: Sequence[str], source: exp.Expr) -> Given | None:
    """The rows of VALUES or of a SELECT of constants for those columns; None if they are for Spark to compute.

    Rows for a bag are net, each with its weight.
    """
    lines, columns = _lines(source), [table.schema.column(name) for name in names]
    struct = StructType([table.engine.struct(table.layout.columns)[c.name] for c in table.schema.columns])
    schema = arrow_schema(struct)
    if schema is None or not lines or any(len(line) != len(names) for line in lines):
        return None
    if not are_few(len(lines) * len(names)):
        return None
    if None in columns or len({c.name for c in columns if c is not None}) < len(columns):
        return None
    places = [None if c not in columns else columns.index(c) for c in table.schema.columns]
    try:
        kinds = [_kind(c) for c in table.schema.columns]
        cells = [[_cell(line, place, kind) for place, kind in zip(places, kinds, strict=True)] for line in lines]
        columns_of = [_column([line[i] for line in cells], field.type) for i, field in enumerate(schema)]
        rows = pa.Table.from_arrays(columns_of, schema=schema)
        return _weighed(table, rows, struct) if table.schema.is_bag else Given.local(table.engine, rows, struct)
    except FOR_SPARK:
        return None


def _lines(source: exp.Expr) -> list[list[exp.Expr]] | None:
    match source:
        case exp.Values():
            return [list(line.expressions) if isinstance(line, exp.Tuple) else [line] for line in source.expressions]
        case exp.Select() if {name for name, value in source.args.items() if value} <= _PLAIN:
            return [list(source.expressions)]
    return None


def _kind(column: Column) -> exp.DataType:
    if is_sized(column.type):
        raise NotLocal("a text of limited length")
    return exp.DataType.build(column.type, dialect="spark")


def _cell(line: Sequence[exp.Expr], place: int | None, kind: exp.DataType) -> exp.Expr:
    """A value on its way into its column; without one, null."""
    value = exp.null() if place is None else line[place].unalias()
    return exp.cast(value.copy(), kind.copy())


def _column(cells: Sequence[exp.Expr], to: pa.DataType) -> pa.Array:
    """The values of a column, each of them a constant."""
    found = [scalar(cell, Scope({})).rows(_NOTHING) for cell in cells]
    return pa.concat_arrays([converted(one, to) for one in found])


def _weighed(table: VersionedTable, rows: pa.Table, struct: StructType) -> Given:
    names = [f"c{i}" for i in range(rows.num_columns)]
    same = pa.table([alike(one_array(column)) for column in rows.columns], names=names)
    counted = same.group_by(names, use_threads=False).aggregate([([], "count_all")])
    told = counted.select([*names, "count_all"]).rename_columns([*rows.column_names, WEIGHT])
    return Given.local(table.engine, told, StructType([*struct.fields, StructField(WEIGHT, LongType())]))
