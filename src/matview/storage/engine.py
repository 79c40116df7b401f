"""Spark, as the store uses it: scans of named files, SQL over relations in hand, writes that are observed."""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType
from sqlglot import exp

from matview.errors import BadDefinition, TypeMismatch
from matview.spark.errors import translated
from matview.spark.session import ADAPTIVE, CONSTRAINTS, OWN, turned_off
from matview.storage.files import Files
from matview.storage.floats import spark_options
from matview.storage.groups import GROUP_BYTES, GROUP_ROWS
from matview.storage.snapshot import DataFile, Level
from matview.storage.stats import data_file
from matview.versions.facts import BROADCAST_ROWS
from matview.versions.layout import LEVEL
from matview.versions.text import spark_text

UNCOMMITTED = "nothing was committed; free space or mend what Spark's own log names, then run it again"
"""So few, and so small, that the driver reads a row group in some hundredths of a second. Of half as many a look-up
would take a third of the time, and a scan a twentieth longer."""
WRITE_OPTIONS = {
    "compression": "zstd",
    "parquet.writer.version": "PARQUET_2_0",
    "parquet.block.row.count.limit": str(GROUP_ROWS),
    "parquet.block.size": str(GROUP_BYTES),
}


@dataclass(frozen=True, slots=True)
class Written:
    """What one write job left: its files, and what was observed on the way."""

    files: tuple[DataFile, ...]
    observed: Mapping[str, object]


class _ForChanges:
    """Settings of Spark while changes are planned, from when it is first asked for.

    Of a condition on renamed columns Spark derives one for every choice of old and new names: a filter on twenty
    columns would take it hours. And plans of few rows are not adapted while they run: everything is known before,
    and each look at what came out of a stage costs as much as a stage. That only where Spark is our own.
    """

    def __init__(self, few: bool) -> None:
        self._few = few
        self._lock = threading.Lock()
        self._off: ExitStack | None = None
        self._ended = False

    def take_effect(self, session: SparkSession) -> None:
        with self._lock:
            if self._off is not None or self._ended:
                return
            self._off = ExitStack()
            self._off.enter_context(turned_off(session, CONSTRAINTS))
            if self._few and session.conf.get(OWN, "false") == "true":
                self._off.enter_context(turned_off(session, ADAPTIVE))

    def end(self) -> None:
        with self._lock:
            self._ended = True
            if self._off is not None:
                self._off.close()


class Engine:
    """A Spark session, or a way to start one when it is first needed, and the few things that Matview asks of it."""

    def __init__(self, spark: SparkSession | Callable[[], SparkSession]) -> None:
        self._factory: Callable[[], SparkSession] = spark if callable(spark) else lambda: spark
        self._spark: SparkSession | None = None
        self._starting = threading.RLock()
        self._structs: dict[tuple[tuple[str, str], ...], StructType] = {}
        self._changing: list[_ForChanges] = []

    @property
    def spark(self) -> SparkSession:
        session = self.start()
        for settings in tuple(self._changing):
            settings.take_effect(session)
        return session

    def start(self) -> SparkSession:
        """Spark, now: started if it was not."""
        with self._starting:
            if self._spark is None:
                self._spark = self._factory()
            return self._spark

    @contextmanager
    def for_changes(self, *, few: bool) -> Iterator[None]:
        """How plans of changes are made inside; answers are the same. What never asks for Spark sets nothing."""
        settings = _ForChanges(few)
        self._changing.append(settings)
        try:
            yield
        finally:
            self._changing.remove(settings)
            settings.end()

    def struct(self, columns: Sequence[tuple[str, str]]) -> StructType:
        """Spark's own types for (name, type text) pairs; every column nullable."""
        wanted = tuple(columns)
        if wanted not in self._structs:
            self._structs[wanted] = self._resolve(wanted)
        return self._structs[wanted]

    def _resolve(self, columns: tuple[tuple[str, str], ...]) -> StructType:
        texts = ", ".join(f"CAST(NULL AS {type_}) AS c{i}" for i, (_, type_) in enumerate(columns))
        try:
            resolved = self.spark.sql(f"SELECT {texts}").schema
        except PySparkException as error:
            raise BadDefinition(f"a type is not one of Spark's: {str(error).splitlines()[0]}") from None
        return StructType(
            [StructField(name, field.dataType, True) for (name, _), field in zip(columns, resolved, strict=True)]
        )

    def scan(self, files: Files, data: Sequence[DataFile], columns: Sequence[tuple[str, str]]) -> DataFrame:
        """The tuples of the named files, with `__level`; a column that a file lacks is null."""
        struct = self.struct(columns)
        parts = [self._scan_level(files, data, struct, level) for level in Level]
        found = [part for part in parts if part is not None]
        if not found:
            return self.empty(columns).withColumn(LEVEL, F.lit(Level.BASE.value))
        return found[0] if len(found) == 1 else found[0].unionAll(found[1])

    def empty(self, columns: Sequence[tuple[str, str]]) -> DataFrame:
        """No rows, of these columns; said in SQL, because createDataFrame would start Python workers."""
        texts = ", ".join(f"CAST(NULL AS {kind}) AS `{name.replace('`', '``')}`" for name, kind in columns)
        return self.spark.sql(f"SELECT {texts} WHERE FALSE")

    def local(self, rows: pa.Table, struct: StructType) -> DataFrame:
        """Rows of the driver, which stand in the plan itself."""
        return self.spark.createDataFrame(rows, struct)

    def frame(self, rows: object) -> DataFrame:
        """Rows that a user gives, as a data frame."""
        if isinstance(rows, DataFrame):
            return rows
        if isinstance(rows, pa.Table) or type(rows).__module__.partition(".")[0] == "pandas":
            return self.spark.createDataFrame(rows)
        given = f"{type(rows).__name__} {rows!r:.40}"
        raise TypeMismatch(f"rows are a Spark DataFrame, a pyarrow Table or a pandas DataFrame; this is {given}")

    def _scan_level(self, files: Files, data: Sequence[DataFile], struct: StructType, level: Level) -> DataFrame | None:
        paths = [files.spark_uri(f.path) for f in data if f.level is level]
        if not paths:
            return None
        return self.spark.read.schema(struct).parquet(*paths).withColumn(LEVEL, F.lit(level.value))

    def sql(self, query: exp.Expr | str, relations: Mapping[str, DataFrame | str]) -> DataFrame:
        """Runs a query in which the names of `relations` stand for data frames, or for queries."""
        text = query if isinstance(query, str) else spark_text(query)
        frames = {name: rows for name, rows in relations.items() if isinstance(rows, DataFrame)}
        spelled = {name: f"({rows})" for name, rows in relations.items() if isinstance(rows, str)}
        text = _with_relations(text, spelled)
        with translated():
            return self.spark.sql(_with_fields(text, frames), None, **frames) if frames else self.spark.sql(text)

    def write(
        self,
        rows: DataFrame,
        files: Files,
        directory: str,
        levels: Sequence[Level],
        observe: Mapping[str, Column],
        drop: Sequence[str] = (),
        unless: str = "FALSE",
    ) -> Written:
        """Writes tuples into a fresh directory of the table, one job.

        `drop` are columns that are only observed, and so are the rows of which `unless` holds.
        """
        observation = Observation()
        observed = rows.observe(observation, *(column.alias(name) for name, column in observe.items()))
        kept = observed.where(f"NOT ({unless})").drop(*drop)
        options = WRITE_OPTIONS | spark_options(kept.schema)
        with translated("writing tuples", UNCOMMITTED):
            if len(levels) == 1:
                target = files.uri(f"{directory}/{LEVEL}={levels[0].value}")
                kept.drop(LEVEL).write.options(**options).parquet(target)
            else:
                kept.write.options(**options).partitionBy(LEVEL).parquet(files.uri(directory))
        return Written(self.written(files, directory), observation.get)

    @staticmethod
    def written(files: Files, directory: str) -> tuple[DataFile, ...]:
        """The files of one write that hold any tuple."""
        made = []
        for path, size, _ in files.list(directory):
            name = path.rsplit("/", 1)[-1]
            if name.startswith(("_", ".")) or not name.endswith(".parquet"):
                continue
            level = Level.OVERLAY if f"{LEVEL}={Level.OVERLAY.value}/" in path else Level.BASE
            made.append(data_file(files, path, level, size))
        return tuple(f for f in made if f.rows)


def _with_fields(text: str, relations: Iterable[str]) -> str:
    """The text as a format string whose fields are the relations; braces of its own are doubled."""
    text = text.replace("{", "{{").replace("}", "}}")
    return _with_relations(text, {name: "{" + name + "}" for name in relations})


def _with_relations(text: str, relations: Mapping[str, str]) -> str:
    for name, told in relations.items():
        text = told.join(re.split(rf"`?\b{re.escape(name)}\b`?", text))
    return text


def small(rows: DataFrame, count: int) -> DataFrame:
    """Rows to be joined with, at most `count` of them: every executor gets a copy, unless they are too many."""
    return F.broadcast(rows) if count <= BROADCAST_ROWS else rows


def relation_name() -> str:
    """A name for a relation in hand that no text of a user's can hold by accident."""
    return f"__mv_{secrets.token_hex(6)}"


def relation(name: str) -> exp.Table:
    return exp.Table(this=exp.to_identifier(name))


def named_table(name: str) -> exp.Table:
    """A reference to a table of the warehouse."""
    return exp.Table(this=exp.to_identifier(name, quoted=True))
