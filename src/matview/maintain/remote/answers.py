"""Answers of sources. Few rows are kept on the driver; many go through a file, batch by batch, and Spark reads it. A
transaction asks nothing twice: its state is one and the same, whoever asks.

While a round is installed every answer is in a file that goes with the round (M10): whoever installs it after a crash
finds what was asked already, in the same state and with the same rows sent along, and asks for nothing twice.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import functions as F

from matview.algebra.schema import Field
from matview.errors import MatviewError, StorageFailure
from matview.maintain.change.given import Given
from matview.plan.sites.together import NUMBER
from matview.sources.types import arrow_type, spark_type
from matview.storage import rounds as files
from matview.storage.few import are_few
from matview.storage.floats import arrow_options
from matview.storage.runtime import Runtime

Asked = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class Answer:
    """All that one query gave: on the driver, or in a file."""

    schema: pa.Schema
    few: pa.Table | None = None
    path: str | None = None


class Answers:
    """The answers that one transaction got; `token` is its own."""

    def __init__(self, runtime: Runtime, token: str) -> None:
        self._runtime = runtime
        self._own = f"{files.HOME}/asked-{token}"
        self._round: str | None = None
        self._used = False
        self._known: dict[str, Answer] = {}
        self._lock = threading.Lock()
        self._turns: dict[str, threading.Lock] = {}

    def keep_with(self, number: int) -> None:
        """From here on answers belong to a round, and are kept with it."""
        self._round = f"{files.directory(number)}/answers"

    def of(self, known: object, schema: pa.Schema, sent: Mapping[str, pa.Table], ask: Callable[[], Asked]) -> Answer:
        """The answer to a question that is `known` by this, and by what is sent along."""
        path = f"{self._round or self._own}/{_digest(known, sent)}.parquet"
        with self._turn(path):  # two views may ask the same at the same time
            found = self._known.get(path) or self._kept(path) or self._asked(path, schema, ask)
            self._known[path] = found
            return found

    def _asked(self, path: str, schema: pa.Schema, ask: Callable[[], Asked]) -> Answer:
        typed = (typed for batch in ask() for typed in pa.Table.from_batches([batch]).cast(schema).to_batches())
        return self._arriving(typed, schema, path)

    def _turn(self, path: str) -> threading.Lock:
        with self._lock:
            return self._turns.setdefault(path, threading.Lock())

    def _kept(self, path: str) -> Answer | None:
        root = self._runtime.tables.root
        if not root.exists(path):
            return None
        try:
            footer = root.parquet(path)
        except StorageFailure:  # it was cut short
            return None
        schema = footer.schema.to_arrow_schema()
        if are_few(footer.num_rows):
            return Answer(schema, few=root.read(path, schema.names))
        return Answer(schema, path=path)

    def _arriving(self, batches: Asked, schema: pa.Schema, path: str) -> Answer:
        """Rows are gathered while they are few; then they go to the file as they come."""
        held: list[pa.RecordBatch] = []
        for batch in batches:
            held.append(batch)
            if not are_few(sum(one.num_rows for one in held)):
                self._write(path, schema, chain(held, batches))
                return Answer(schema, path=path)
        if self._round is not None:
            self._write(path, schema, held)
        return Answer(schema, few=pa.Table.from_batches(held, schema))

    def _write(self, path: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        root = self._runtime.tables.root
        self._used = self._used or self._round is None
        options = {**files.OPTIONS, **arrow_options(schema)}
        with root.output(f"{path}.part") as stream, pq.ParquetWriter(stream, schema, **options) as writer:
            for batch in batches:
                writer.write_batch(batch)
        root.move(f"{path}.part", root, path)

    def part(self, whole: Answer, number: int | None, columns: Sequence[str], fields: Sequence[Field]) -> Given:
        """The rows of one of several questions, in the columns of what was asked for."""
        engine = self._runtime.engine
        named = [(field.name, field.type) for field in fields]
        if whole.path is None:
            few = _few(whole.few, number, columns, named)
            return Given.local(engine, few, engine.struct(named))
        struct = engine.struct([(f.name, spark_type(f.type)) for f in whole.schema])
        rows = engine.spark.read.schema(struct).parquet(self._runtime.tables.root.spark_uri(whole.path))
        rows = rows if number is None else rows.where(F.col(NUMBER) == number)
        return Given.kept(rows.select(*(F.col(c).alias(field.name) for c, field in zip(columns, fields, strict=True))))

    def forget(self) -> None:
        """The transaction has ended; what belongs to a round goes with it."""
        if self._used:
            with suppress(MatviewError):
                files.forget(self._runtime.tables.root, [self._own])


def _few(
    table: pa.Table | None, number: int | None, columns: Sequence[str], named: Sequence[tuple[str, str]]
) -> pa.Table:
    assert table is not None
    schema = pa.schema([pa.field(name, arrow_type(kind)) for name, kind in named])
    own = table if number is None else table.filter(pc.equal(table[NUMBER], number))
    return own.select(list(columns)).rename_columns(schema.names).cast(schema)


def _digest(known: object, sent: Mapping[str, pa.Table]) -> str:
    """Equal for the same question with the same rows sent along."""
    made = sha256(json.dumps(known, sort_keys=True, default=str).encode())
    for name, table in sorted(sent.items()):
        made.update(name.encode())
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table.combine_chunks())
        made.update(sink.getvalue())
    return made.hexdigest()[:40]
