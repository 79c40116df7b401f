"""A user's query over versioned tables, as text for another engine to run on the same files.

DuckDB and Spark read the Parquet files by their paths. PostgreSQL reads none: there the query is over two relations per
table, `<table>__base` and `<table>__overlay`, with the stored columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from sqlglot import exp

from matview.storage.query import Found, Lookup, check_reference, refuse_remote
from matview.storage.snapshot import DataFile, Level
from matview.versions.layout import LEVEL
from matview.versions.predicates import sargable
from matview.versions.references import rewrite_query
from matview.versions.rewrite import Dialect, reading
from matview.versions.text import foreign_text, spark_text


def query_text(query: exp.Expr, lookup: Lookup, version: int, dialect: Dialect) -> str:
    """The query as of `version`."""

    def replace(reference: exp.Table) -> exp.Expr:
        check_reference(reference)
        found = lookup(reference)
        refuse_remote(found.table, reference)
        predicates = sargable(reference, found.table.schema)
        overlay = found.snapshot.overlay
        layout = found.table.layout
        return reading(
            layout,
            version,
            found.snapshot.facts(layout),
            exp.Subquery(this=_tuples(found, found.files(predicates, version), dialect)),
            exp.Subquery(this=_tuples(found, overlay, dialect)) if overlay else None,
            hide="not_exists",
            predicates=predicates,
            dialect=dialect,
        )

    rewritten = rewrite_query(query, replace)
    return spark_text(rewritten) if dialect == "spark" else foreign_text(rewritten, dialect, pretty=True)


def _tuples(found: Found, files: Sequence[DataFile], dialect: Dialect) -> exp.Query:
    """The stored tuples of files, each with its level; a column that a file lacks is null."""
    parts = [_part(found, group, dialect) for group in _alike(found, files, dialect)]
    if not parts:
        return _columns(found, set()).where(exp.false())
    whole: exp.Query = parts[0]
    for part in parts[1:]:
        whole = exp.union(whole, part, distinct=False)
    return whole


def _alike(found: Found, files: Sequence[DataFile], dialect: Dialect) -> list[list[DataFile]]:
    """Files that one relation can name together: of one level and with the same columns (Spark names one at a time)."""

    def kind(file: DataFile) -> tuple[str, ...]:
        return (
            (file.level.value, file.path) if dialect == "spark" else (file.level.value, *_stored(found, file, dialect))
        )

    return [list(group) for _, group in groupby(sorted(files, key=kind), kind)]


def _stored(found: Found, file: DataFile, dialect: Dialect) -> list[str]:
    """The columns of a file, from its footer."""
    if dialect == "postgres":
        return [name for name, _ in found.table.layout.columns]
    return list(found.table.files.parquet(file.path).schema.to_arrow_schema().names)


def _part(found: Found, files: list[DataFile], dialect: Dialect) -> exp.Select:
    columns = set(_stored(found, files[0], dialect))
    return _columns(found, columns, files[0].level).from_(_relation(found, files, dialect))


def _columns(found: Found, there: set[str], level: Level = Level.BASE) -> exp.Select:
    items: list[exp.Expr] = []
    for name, kind in found.table.layout.columns:
        null = exp.cast(exp.null(), exp.DataType.build(kind, dialect="spark"))
        items.append(exp.column(name, quoted=True) if name in there else exp.alias_(null, name, quoted=True))
    return exp.select(*items, exp.alias_(exp.Literal.string(level.value), LEVEL, quoted=True))


def _relation(found: Found, files: list[DataFile], dialect: Dialect) -> exp.Expr:
    """Parquet files by their paths."""
    stored = found.table.files
    paths = [(stored.spark_uri if dialect == "spark" else stored.uri)(f.path) for f in files]
    match dialect:
        case "duckdb":
            listed = exp.Array(expressions=[exp.Literal.string(path) for path in paths])
            plain = exp.EQ(this=exp.column("hive_partitioning"), expression=exp.false())  # the paths say __level=...
            return exp.Table(this=exp.Anonymous(this="read_parquet", expressions=[listed, plain]))
        case "spark":
            return exp.table_(exp.to_identifier(paths[0], quoted=True), db="parquet")
        case "postgres":
            return exp.table_(exp.to_identifier(f"{found.table.name}__{files[0].level.value}", quoted=True))
