"""Floating columns in Parquet files: what Spark skips row groups by, and must not.

Spark says that NaN is greater than all numbers, and that 0.0 is -0.0. Arrow's statistics leave NaN out, and Spark looks
both up, in statistics and in dictionaries, as Java tells them apart, where -0.0 is less than 0.0. So no file has a
dictionary of floating values, and those that Arrow writes have no statistics of them either; Spark's own are right.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import types as t

DICTIONARY = "parquet.enable.dictionary"


def exact_columns(schema: pa.Schema) -> list[str]:
    """The columns by which Spark may skip row groups of a file that Arrow writes."""
    return [field.name for field in schema if not pa.types.is_floating(field.type)]


def arrow_options(schema: pa.Schema) -> dict[str, list[str]]:
    return {"write_statistics": exact_columns(schema), "use_dictionary": exact_columns(schema)}


def spark_options(struct: t.StructType) -> dict[str, str]:
    """No dictionary for a floating value, however deep it stands; for none at all, if a name could be taken for two."""
    paths = list(_floating((), struct))
    if any("." in name for path in paths for name in path):
        return {DICTIONARY: "false"}
    return {f"{DICTIONARY}#{'.'.join(path)}": "false" for path in paths}


def _floating(path: tuple[str, ...], kind: t.DataType) -> Iterator[tuple[str, ...]]:
    """The paths of floating values as Parquet spells them. Arrays and maps are left out: nothing is skipped by them."""
    if isinstance(kind, t.FloatType | t.DoubleType):
        yield path
    elif isinstance(kind, t.StructType):
        for field in kind.fields:
            yield from _floating((*path, field.name), field.dataType)
