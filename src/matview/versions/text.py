"""Spark SQL text of a query, with every WITH where it stood."""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.generators.spark import SparkGenerator


class _ScopedSpark(Spark):
    """sqlglot lifts nested WITHs to the top for Spark, where two of one name collide; Spark takes them in place."""

    class Generator(SparkGenerator):
        EXPRESSIONS_WITHOUT_NESTED_CTES: ClassVar[set[type[exp.Expr]]] = set()
        TABLESAMPLE_SEED_KEYWORD = "REPEATABLE"


def spark_text(query: exp.Expr) -> str:
    """The query as Spark SQL."""
    return _ScopedSpark().generate(query)


def quoted(name: str) -> str:
    """A name as Spark SQL takes it, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"
