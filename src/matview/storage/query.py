"""A user's query over versioned tables, as a Spark data frame or as text for another engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from sqlglot import exp

from matview.storage.engine import Engine, relation, relation_name
from matview.storage.snapshot import DataFile, Level, Snapshot
from matview.storage.table import VersionedTable
from matview.versions.expiry import Grain
from matview.versions.predicates import Predicate, sargable
from matview.versions.pruning import may_match
from matview.versions.references import rewrite_query
from matview.versions.rewrite import Dialect, reading
from matview.versions.text import spark_text


@dataclass(frozen=True, slots=True)
class Found:
    """What a table's name stands for: the table, and the snapshot of it to be read."""

    table: VersionedTable
    snapshot: Snapshot

    def files(self, predicates: tuple[Predicate, ...], version: int) -> tuple[DataFile, ...]:
        """The files that can hold a tuple that meets the predicates at a version, by their statistics."""
        layout = self.table.layout
        return tuple(
            f for f in self.snapshot.files if may_match(predicates, layout, f.minimum, f.maximum, session_vn=version)
        )


Lookup = Callable[[exp.Table], Found]


def run_query(
    engine: Engine,
    query: exp.Expr,
    lookup: Lookup,
    version: int,
    grain: Grain = "table",
    bound: Mapping[str, DataFrame] | None = None,
) -> DataFrame:
    """The query as of `version`, each table read from the snapshot that `lookup` gives; names in `bound` stay."""
    relations: dict[str, DataFrame] = dict(bound or {})

    def replace(reference: exp.Table) -> exp.Expr:
        if bound and reference.name in bound:
            return relation(reference.name)
        found = lookup(reference)
        predicates = sargable(reference, found.table.schema)
        tuples = relation_name()
        relations[tuples] = found.table.tuples(found.files(predicates, version))
        overlay = None
        if found.snapshot.overlay:
            name = relation_name()
            relations[name] = found.table.hiders(found.snapshot.overlay)
            overlay = relation(name)
        layout = found.table.layout
        facts = found.snapshot.facts(layout)
        return reading(layout, version, facts, relation(tuples), overlay, grain=grain, predicates=predicates)

    rewritten = rewrite_query(query, replace)
    return engine.sql(rewritten, relations)


def query_text(query: exp.Expr, lookup: Lookup, version: int, dialect: Dialect) -> str:
    """The query as of `version` for another engine, over the same files; PostgreSQL: over `<table>__base`, `__overlay`."""

    def replace(reference: exp.Table) -> exp.Expr:
        found = lookup(reference)
        predicates = sargable(reference, found.table.schema)
        overlay = _files(found, found.snapshot.overlay, dialect) if found.snapshot.overlay else None
        layout = found.table.layout
        return reading(
            layout,
            version,
            found.snapshot.facts(layout),
            exp.Subquery(this=_tuples(found, found.files(predicates, version), dialect)),
            overlay,
            hide="not_exists",
            predicates=predicates,
            dialect=dialect,
        )

    rewritten = rewrite_query(query, replace)
    return spark_text(rewritten) if dialect == "spark" else rewritten.sql(dialect, pretty=True)


def _tuples(found: Found, files: tuple[DataFile, ...], dialect: Dialect) -> exp.Query:
    """Base and overlay files together, each tuple with its level."""
    parts = [
        exp.select("*", exp.alias_(exp.Literal.string(level.value), "__level")).from_(_files(found, chosen, dialect))
        for level in Level
        if (chosen := tuple(f for f in files if f.level is level)) or level is Level.BASE
    ]
    if len(parts) == 1:
        return parts[0]
    union = exp.union(parts[0], parts[1], distinct=False)
    if dialect == "duckdb":
        union.set("by_name", True)
    return union


def _files(found: Found, files: tuple[DataFile, ...], dialect: Dialect) -> exp.Expr:
    """Parquet files as a relation."""
    paths = [exp.Literal.string(found.table.files.uri(f.path)) for f in files]
    match dialect:
        case "duckdb":
            by_name = exp.EQ(this=exp.column("union_by_name"), expression=exp.true())
            level_of_ours = exp.EQ(
                this=exp.column("hive_partitioning"), expression=exp.false()
            )  # paths say __level=...
            call = exp.Anonymous(
                this="read_parquet", expressions=[exp.Array(expressions=paths), by_name, level_of_ours]
            )
            return exp.Table(this=call)
        case "spark":
            return _spark_files(paths)
        case "postgres":
            level = files[0].level if files else Level.BASE
            return exp.to_table(f'"{found.table.name}__{level.value}"', dialect="postgres")


def _spark_files(paths: list[exp.Literal]) -> exp.Expr:
    """Spark names a file as parquet.`path`; several of them are a union."""
    tables = [exp.select("*").from_(exp.table_(exp.to_identifier(p.this, quoted=True), db="parquet")) for p in paths]
    whole: exp.Query = tables[0]
    for table in tables[1:]:
        whole = exp.union(whole, table, distinct=False)
    return exp.Subquery(this=whole)
