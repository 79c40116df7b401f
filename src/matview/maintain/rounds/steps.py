"""The four steps of a round (section 5.6 of the paper).

What step 1 fixes and step 2 computes is kept until step 4 has ended: in the catalog, and in files that it names.
Nothing is deleted at a source before that, so a round that nobody has installed can be computed again from the same
set, by anybody; and one that was installed is acknowledged again, which is harmless. No message of a source is waited
for: what matters is what its delta tables hold.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame

from matview.catalog.described import all_described
from matview.catalog.rounds import WAITING, Beginning
from matview.catalog.source_records import RoundPart, RoundRecord, SourceChanges, SourceRecord, SourceTableRecord
from matview.errors import (
    CaptureBypassed,
    CatalogUnavailable,
    DuplicateKey,
    ImpossibleOperation,
    LeaseLost,
    MaintenanceBusy,
    MatviewError,
    NullKey,
    SourceDrifted,
    SparkFailure,
    StorageFailure,
    WarehouseClosed,
)
from matview.groups.edits import quoted
from matview.maintain.outcome import Outcome
from matview.maintain.rounds.drift import look, stop, stop_table
from matview.maintain.rounds.place import Place
from matview.maintain.transaction import MaintenanceTransaction
from matview.sources.engine import WEIGHT, Captured
from matview.storage import rounds as files
from matview.storage.few import are_few

SIDE_BY_SIDE = 8
T = TypeVar("T")

Changes = Mapping[str, Mapping[str, pa.Table]]
"""By the id of the source, then by the table's name there."""


@dataclass(frozen=True)
class Fixed:
    """A round in the queue (None if there was nothing to take), its changes, and the sources that failed."""

    round: RoundRecord | None = None
    changes: Changes = field(default_factory=dict)
    failed: Mapping[str, MatviewError] = field(default_factory=dict)


# step 1 ---------------------------------------------------------------------------------------------------------------


def query_transactions(place: Place, names: Sequence[str], most: int | None = None) -> Fixed:
    """Step 1: of each source the set of transactions that have committed, whatever their order, fixed in the catalog.

    A source that fails is left out, and so is a table that has drifted. If another round was fixed meanwhile, what was
    captured may be in it: then it is captured again.
    """
    while True:
        beginning = place.runtime.catalog.rounds.beginning()
        sources = [source for source in beginning.sources if source.name in names]
        answers = _side_by_side(partial(_asked, place, beginning, most), sources)
        pairs = list(zip(sources, answers, strict=True))
        failed = {source.name: answer for source, answer in pairs if isinstance(answer, MatviewError)}
        captured = {source.id: answer for source, answer in pairs if isinstance(answer, _Answer)}
        parts = [_part(source_id, answer) for source_id, answer in captured.items() if answer.captured.rows]
        if not parts:
            return Fixed(failed=failed)
        place.step("captured")
        made = place.runtime.catalog.rounds.fix(parts, {key: one.sequence for key, one in captured.items()})
        if made is not None:
            place.step("fixed")
            changes = {part.source_id: captured[part.source_id].captured.changes for part in parts}
            return Fixed(made, changes, failed)


@dataclass(frozen=True)
class _Answer:
    captured: Captured
    tables: tuple[str, ...]
    sequence: int


def _asked(place: Place, beginning: Beginning, most: int | None, source: SourceRecord) -> _Answer | MatviewError:
    try:
        answer = _captured(place, source, beginning, most)
    except MatviewError as error:
        note_failure(place, source, error)
        return error
    if source.error is not None:
        place.runtime.catalog.sources.note(source.id, None)
    return answer


def _captured(place: Place, source: SourceRecord, beginning: Beginning, most: int | None) -> _Answer:
    """What the tables that have not drifted tell; the others are stopped. A capture refuses drift in the very snapshot
    that it reads; only then is each table looked at."""
    engine, besides = place.connections.of(source), beginning.besides(source.id)
    tables = all_described(source.going)
    if not tables:
        return _Answer(Captured({}, 0, 0, {}), (), source.sequence)
    try:
        found = engine.capture(tables, most=most, besides=besides)
        return _Answer(found, files.names_of(source.going), source.sequence)
    except MatviewError:
        if not (drifted := stop(place, source, look(place, source))):
            raise
    left = [table for table in source.tables if table.name not in drifted]
    stopped = sum(table.name in drifted for table in source.going)
    return _captured(place, replace(source, tables=tuple(left), sequence=source.sequence + stopped), beginning, most)


def _part(source_id: str, answer: _Answer) -> RoundPart:
    found = answer.captured
    return RoundPart(source_id, answer.tables, found.taken, found.transactions, found.rows)


def note_failure(place: Place, source: SourceRecord, error: MatviewError) -> None:
    """The next attempt connects anew; until then `status` says what went wrong."""
    place.connections.drop(source.id)
    place.runtime.catalog.sources.note(source.id, str(error))


# step 2 ---------------------------------------------------------------------------------------------------------------


def evaluate(place: Place, fixed: Fixed) -> None:
    """Step 2: what the sets changed, stored at the warehouse: ADD and DEL of each table itself.

    Those of views follow by their own policies, from the logs. What they need of tables that stay at their sources is
    asked for when the round's turn has come, in the state that was fixed in step 1, and stored as well: only then is it
    settled what the tables of the warehouse are that a view reads beside them.
    """
    assert fixed.round is not None
    root, home = place.runtime.tables.root, files.directory(fixed.round.number)

    def written(number: int, source_id: str) -> tuple[str, dict[str, str]]:
        return source_id, files.write_changes(root, f"{home}/{number}", fixed.changes[source_id])

    tasks = list(enumerate(sorted(fixed.changes)))
    place.runtime.catalog.rounds.computed(fixed.round.number, dict(_side_by_side(lambda t: written(*t), tasks)))
    place.step("computed")


# step 3 ---------------------------------------------------------------------------------------------------------------


PASSING = (MaintenanceBusy, CatalogUnavailable, LeaseLost, StorageFailure, SparkFailure, WarehouseClosed)
"""What passes by itself: the round waits for it."""


@dataclass(frozen=True, slots=True)
class Installed:
    """What became of a round: the version that shows it, or why it cannot be installed."""

    round: RoundRecord
    outcome: Outcome | None = None
    error: MatviewError | None = None


def install(place: Place, in_hand: Mapping[int, Changes]) -> Installed | None:
    """Step 3: the oldest round that waits, as one maintenance transaction, whoever had fixed it; None if none waits.

    Whether it still waits is decided by the commit itself, so nothing is ever installed twice.
    """
    if not waiting(place):
        return None
    oldest: RoundRecord | None = None
    try:
        with place.begin(place.step) as tx:
            oldest = next(iter(waiting(place)), None)
            if oldest is None:
                tx.rollback()
                return None
            outcome = _installed(place, tx, oldest, in_hand.get(oldest.number))
    except PASSING:
        raise
    except MatviewError as error:
        if oldest is None:
            raise
        return Installed(oldest, error=_told(place, error))
    place.step("installed")
    return Installed(oldest, outcome)


def _told(place: Place, error: MatviewError) -> MatviewError:
    """A table that stays at its source may drift after step 1: it is stopped, and the round can do without it."""
    if isinstance(error, SourceDrifted | CaptureBypassed) and not names_table(error):
        for source in place.runtime.catalog.sources.list():
            remote = [table.name for table in source.going if not table.replicate]
            if source.state == "active" and remote:
                with suppress(MatviewError):
                    if drifted := stop(place, source, look(place, source)):
                        return _bypassed(source, min(drifted), error)
    return error


def _installed(place: Place, tx: MaintenanceTransaction, oldest: RoundRecord, in_hand: Changes | None) -> Outcome:
    known = {source.id: source for source in place.runtime.catalog.sources.list()}
    tx.remote.answers.keep_with(oldest.number)
    for part in oldest.parts:
        tx.remote.taken[part.source_id] = part.taken
        if part.source_id in known:
            feed(place, tx, known[part.source_id], part, in_hand)
    tx.tell(SourceChanges(installed=(oldest.number,)))
    return tx.commit()


def waiting(place: Place) -> list[RoundRecord]:
    """The rounds that are not installed yet, oldest first."""
    return [one for one in place.runtime.catalog.rounds.pending() if one.state in WAITING]


def feed(
    place: Place, tx: MaintenanceTransaction, source: SourceRecord, part: RoundPart, in_hand: Changes | None
) -> None:
    """The changes of one source into its tables; those in hand, if there are any, are the same as those stored.

    A table that is not there any more gets nothing, and neither does another that has its name by now.
    """
    tables = [table for table in source.tables if _is_there(tx, table)]
    if not tables:
        return
    changes = _changes(place, source, part) if in_hand is None else in_hand[part.source_id]
    for table in tables:
        rows = changes.get(table.name)
        if rows is None or not rows.num_rows:
            continue
        try:
            if not table.replicate:
                tx.note(table.table, rows)
                continue
            tx.feed(table.table, _frame(place, rows, part.files.get(table.name), tx, table.table))
        except (ImpossibleOperation, DuplicateKey, NullKey) as error:
            raise _bypassed(source, table.name, error) from error


def _is_there(tx: MaintenanceTransaction, table: SourceTableRecord) -> bool:
    there = table.table_id is not None and table.table in tx.tables
    return there and tx.tables[table.table].table.id == table.table_id


def _bypassed(source: SourceRecord, table: str, error: MatviewError) -> CaptureBypassed:
    """What was captured does not fit what is there: something was changed that was not captured."""
    what = f"table {table} of source {source.name} was changed behind capture: {error.what}"
    told = CaptureBypassed(what, help=f"`matview source check {quoted(source.name)}` says what to do")
    return told.of(source.id, table)


def names_table(error: MatviewError) -> bool:
    """The error says which table stands in the way: a round can do without it."""
    return isinstance(error, CaptureBypassed) and error.table is not None


def _changes(place: Place, source: SourceRecord, part: RoundPart) -> Mapping[str, pa.Table]:
    """From the files, or from the source once more: the set is the same, and so is what it changed."""
    tables = {table.name: table for table in all_described(source.tables) if table.name in part.tables}
    if part.files or not part.rows:
        found = files.read_changes(place.runtime.tables.root, part, tables)
        if found is not None:
            return found
    return place.connections.of(source).changes(list(tables.values()), part.taken).changes


def _frame(place: Place, rows: pa.Table, path: str | None, tx: MaintenanceTransaction, table: str) -> DataFrame:
    """Few rows stand in the plan itself; many are read by Spark, from the file."""
    engine, schema = place.runtime.engine, tx.tables[table].table.schema
    struct = engine.struct([*((column.name, column.type) for column in schema.columns), (WEIGHT, "bigint")])
    if path is None or are_few(rows.num_rows):
        return engine.local(rows.select(struct.names), struct)
    return engine.spark.read.schema(struct).parquet(place.runtime.tables.root.spark_uri(path))


def give_up(place: Place, number: int, error: MatviewError) -> None:
    """A round that cannot be installed is thrown away, and those that follow from it: nothing was deleted at the
    sources, and the next capture takes their transactions, without the table that stands in the way."""
    discarded = place.runtime.catalog.rounds.discard(number)
    if discarded and isinstance(error, CaptureBypassed) and error.source_id is not None and error.table is not None:
        stop_table(place, error.source_id, error.table, error)
    files.forget(place.runtime.tables.root, [files.directory(one.number) for one in discarded])


# step 4 ---------------------------------------------------------------------------------------------------------------


def delete_consumed(place: Place, skip: Collection[str] = ()) -> dict[str, MatviewError]:
    """Step 4: of every round that is installed the delta rows go; repeating it is harmless. Who could not be asked.

    In the order of rounds: after one that a source could not delete, no later one is asked of it. Those to `skip` are
    not asked at all.
    """
    known = {source.id: source for source in place.runtime.catalog.sources.list()}
    failed: dict[str, MatviewError] = {}
    for one in place.runtime.catalog.rounds.pending():
        if one.state != "installed":
            continue
        left = [part for part in one.parts if not part.acknowledged]
        out = {source_id for source_id, source in known.items() if source.name in failed or source.name in skip}
        parts = [part for part in left if part.source_id not in out]
        errors = _side_by_side(partial(_acknowledged, place, known, one.number), parts)
        failed |= {known[part.source_id].name: e for part, e in zip(parts, errors, strict=True) if e is not None}
        if not any(errors) and len(parts) == len(left):
            files.forget(place.runtime.tables.root, [files.directory(one.number)])
            place.runtime.catalog.rounds.end(one.number)
            place.step("ended")
    return failed


def _acknowledged(place: Place, known: Mapping[str, SourceRecord], number: int, part: RoundPart) -> MatviewError | None:
    source = known.get(part.source_id)
    try:
        if source is not None:
            tables = [table for table in source.tables if table.name in part.tables]
            place.connections.of(source).acknowledge(all_described(tables), part.taken)
            place.step("deleted")
    except MatviewError as error:
        assert source is not None
        note_failure(place, source, error)
        return error
    place.runtime.catalog.rounds.acknowledge(number, part.source_id)
    return None


def _side_by_side(work: Callable[..., T], tasks: Sequence[object]) -> list[T]:
    """The work on each task; threads only where there are several."""
    if len(tasks) < 2:
        return [work(task) for task in tasks]
    with ThreadPoolExecutor(min(SIDE_BY_SIDE, len(tasks)), thread_name_prefix="matview-source") as pool:
        return list(pool.map(work, tasks))
