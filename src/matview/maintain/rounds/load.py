"""First states: a source is added, a table that was stopped is read whole again, a source is removed.

    add      catalog: adding -> capture is installed -> first state, read beside writers, into files of the warehouse
               -> one maintenance transaction: tables, rows, source active, and the set that they hold already
               -> that set is deleted at the source
    remove   one maintenance transaction: tables dropped, source removing -> capture is removed -> catalog: gone

A crash leaves a source that is `adding` or `removing`: adding it again, or removing it, ends it either way.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote, unquote

from pyspark.sql import DataFrame

from matview.catalog.described import all_described, described
from matview.catalog.settings import WAREHOUSE_ID
from matview.catalog.source_records import Consistency, RoundPart, SourceChanges, SourceRecord, SourceTableRecord
from matview.errors import (
    CannotCapture,
    MatviewError,
    SourceDrifted,
    SourceTableUnknown,
    SourceUnreachable,
    TableExists,
)
from matview.groups.edits import quoted
from matview.maintain.change.stage import adopt
from matview.maintain.change.statements import fill
from matview.maintain.change.working import Counts, Working
from matview.maintain.outcome import Outcome
from matview.maintain.rounds.convert import recorded, schema_of
from matview.maintain.rounds.holding import Holding, new_holder
from matview.maintain.rounds.ingest import Tally, chosen, finish
from matview.maintain.rounds.named import described_by_name
from matview.maintain.rounds.place import Place
from matview.maintain.rounds.steps import Changes, delete_consumed, feed, waiting
from matview.maintain.tables import storable
from matview.maintain.views.stopped import why_stopped
from matview.sources import connect
from matview.sources.engine import FirstState, Problem, Slice, Source
from matview.sources.problems import not_one_at_a_time
from matview.sources.types import arrow_schema
from matview.sources.urls import SourceUrl
from matview.storage import rounds as files
from matview.storage.bulk import Bulk, bulk, gathered, write
from matview.versions.layout import Layout

SLICE_ROWS = 500_000
READERS = 4


@dataclass(frozen=True, slots=True)
class Wanted:
    """A source to be: its tables by the names that they shall have in the warehouse."""

    name: str
    url: str
    tables: Mapping[str, str]
    mode: Consistency
    replicate: frozenset[str]
    """Those that are copied, while the others stay where they are."""


def add(place: Place, wanted: Wanted) -> Outcome:
    """Capture is set up at the source, and its tables are read whole; from then on rounds follow what changes."""
    if not wanted.tables:
        raise SourceTableUnknown(f"source {wanted.name} needs tables", help="name those that views shall read")
    wanted = replace(wanted, url=_apart(place, wanted))
    engine = connect(wanted.url)
    try:
        return _add(place, wanted, engine)
    except BaseException:
        engine.close()
        raise


def _add(place: Place, wanted: Wanted, engine: Source) -> Outcome:
    found = described_by_name(engine, list(wanted.tables))
    pairs = zip(found, wanted.tables.items(), strict=True)
    tables = [recorded(table, name, there in wanted.replicate) for table, (there, name) in pairs]
    _refuse_names(place, tables)
    if wanted.mode == "complete" and not engine.tells_transactions:
        raise not_one_at_a_time(f"source {wanted.name}")
    _refuse_problems(wanted.name, engine.check(found, installed=False))
    source = SourceRecord(secrets.token_hex(6), wanted.name, _stored(wanted.url), wanted.mode, tables=tuple(tables))
    source = replace(source, holder=new_holder(place))
    _clear_left(place, source, engine)
    source = place.runtime.catalog.sources.add(source, place.runtime.settings.lease_ttl)
    outcome = _installed(place, source, engine)
    place.connections.keep(source.id, wanted.url, engine)
    delete_consumed(place)
    return outcome


def _installed(place: Place, source: SourceRecord, engine: Source) -> Outcome:
    """Capture, then the first state. What fails leaves nothing at the source, as long as that is ours to say: it may
    have become active although nobody heard the answer, or be another's, who took us for dead."""
    assert source.holder is not None
    found = all_described(source.tables)
    with Holding(place, source.id, source.holder) as holding:
        try:
            engine.install(found)
            place.step("capturing")
            return _loaded(place, source, engine)
        except MatviewError:
            with suppress(MatviewError):  # what went wrong first is what matters; adding it again clears what is left
                if holding.is_ours:
                    engine.remove(found)
                    place.runtime.catalog.sources.forget(source.id)
            raise


def _apart(place: Place, wanted: Wanted) -> str:
    """The URL, with a name for what capture makes at the source that is no other's: another warehouse on these tables
    would otherwise take our changes away, and we its. An adding that was cut short has the same when it is repeated."""
    if "matview_schema=" in wanted.url:
        return wanted.url
    whose = f"{place.runtime.catalog.settings.get(WAREHOUSE_ID)}/{wanted.name.casefold()}"
    name = f"matview_{sha256(whose.encode()).hexdigest()[:8]}"
    return f"{wanted.url}{'&' if '?' in wanted.url else '?'}matview_schema={name}"


def _stored(url: str) -> str:
    """The URL without a password; a file is found again from any directory."""
    address = SourceUrl.parse(url)
    place = address.stored.partition("://")[2].partition("?")[0].removeprefix("/")
    if address.engine != "sqlite" or place.startswith(("/", "$")):
        return address.stored
    return address.stored.replace(f"///{place}", f"///{quote(str(Path(unquote(place)).absolute()))}", 1)


def _refuse_names(place: Place, tables: Sequence[SourceTableRecord]) -> None:
    """Before anything is touched: the names are free, the columns can be columns, two tables do not get one name."""
    current = place.runtime.catalog.version().current_vn
    seen: set[str] = set()
    for table in tables:
        schema_of(table)
        if table.table.casefold() in seen or place.runtime.catalog.tables.find(table.table, current) is not None:
            raise TableExists(
                f"there is a table {table.table!r} already",
                help=f"give it another name: TABLES ({quoted(table.name)} AS other), or a prefix",
            )
        seen.add(table.table.casefold())


def _refuse_problems(name: str, problems: Sequence[Problem]) -> None:
    if problems:
        what = "; ".join(p.what for p in problems)
        raise CannotCapture(f"source {name}: {what}", help="; ".join(dict.fromkeys(p.help for p in problems if p.help)))


def _clear_left(place: Place, source: SourceRecord, engine: Source) -> None:
    """What an attempt left that was cut short: its tables may have been others."""
    assert source.holder is not None
    left = place.runtime.catalog.sources.claim(source.name, source.holder, place.runtime.settings.lease_ttl)
    if left is not None:
        with Holding(place, left.id, source.holder):
            engine.remove(all_described(left.tables))


# reading whole --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Whole:
    """All rows of a table, in files of the warehouse; as tuples already, if they could be made on the way."""

    table: SourceTableRecord
    paths: tuple[str, ...] = ()
    tuples: Bulk | None = None


def _loaded(place: Place, source: SourceRecord, engine: Source) -> Outcome:
    home = f"{files.HOME}/load-{source.id}"
    try:
        with engine.first_state(all_described(source.tables)) as first:
            taken = first.taken
            found = read_whole(place, first, [table for table in source.tables if table.replicate], home)
            rows = {table.name: _about(first, table) for table in source.tables if not table.replicate}
        place.step("read")
        return _commit(place, source, found, rows, RoundPart(source.id, files.names_of(source.tables), taken))
    finally:
        with suppress(MatviewError):
            files.forget(place.runtime.tables.root, [home])


def _about(first: FirstState, table: SourceTableRecord) -> int:
    """About how many rows a table has that stays where it is."""
    return sum(part.rows for part in first.slices(described(table), SLICE_ROWS))


def _commit(
    place: Place, source: SourceRecord, found: Sequence[Whole], remote: Mapping[str, int], part: RoundPart
) -> Outcome:
    whole_of = {whole.table.name: whole for whole in found}
    with place.begin(place.step) as tx:
        tables = []
        for table in source.tables:
            if table.name in remote:
                made = tx.stay(table.table, schema_of(table), source.name, remote[table.name])
            else:
                made = tx.load(table.table, schema_of(table), partial(_fill, place, whole_of[table.name]))
            tables.append(replace(table, table_id=made))
        tx.tell(SourceChanges(added=(replace(source, tables=tuple(tables)),), loaded=(part,)))
        outcome = tx.commit()
    place.step("installed")
    return outcome


def _fill(place: Place, whole: Whole, working: Working) -> Counts:
    if whole.tuples is not None:
        return adopt(working, place.runtime.tables.root, whole.paths, whole.tuples.next_rid)
    rows = frame(place, whole)
    return Counts() if rows is None else fill(working, rows)


def read_whole(
    place: Place, first: FirstState, tables: Sequence[SourceTableRecord], home: str, *, as_tuples: bool = True
) -> list[Whole]:
    """Slices side by side, batch after batch, into files. Never much of it in memory."""
    made = [_tuples(place, table) if as_tuples else None for table in tables]
    tasks = [
        (number, place_, part)
        for number, table in enumerate(all_described(tables))
        for place_, part in enumerate(first.slices(table, SLICE_ROWS))
    ]

    def read(task: tuple[int, int, Slice]) -> tuple[int, str] | None:
        number, place_, part = task
        path, schema, own = f"{home}/{number}/part-{place_}.parquet", arrow_schema(part.table), made[number]
        rows = gathered(first.read(part), schema)
        tuples = rows if own is None else map(own.tuples, rows)
        there = write(place.runtime.tables.root, path, schema if own is None else own.schema, tuples)
        return (number, path) if there else None

    with ThreadPoolExecutor(READERS, thread_name_prefix="matview-load") as pool:
        written = [one for one in pool.map(read, tasks) if one is not None]
    paths = [tuple(path for number, path in written if number == place_) for place_ in range(len(tables))]
    return [Whole(*whole) for whole in zip(tables, paths, made, strict=True)]


def _tuples(place: Place, table: SourceTableRecord) -> Bulk | None:
    state = place.runtime.catalog.version()
    layout = Layout(storable(place.runtime, schema_of(table)), state.versions)
    return bulk(place.runtime.engine, layout, state.current_vn)


def frame(place: Place, whole: Whole) -> DataFrame | None:
    """The rows of the files; None without any."""
    engine, root = place.runtime.engine, place.runtime.tables.root
    struct = engine.struct([(column.name, column.type) for column in whole.table.columns])
    return engine.spark.read.schema(struct).parquet(*map(root.spark_uri, whole.paths)) if whole.paths else None


# again ----------------------------------------------------------------------------------------------------------------


def reload(place: Place, name: str) -> Outcome:
    """The stopped tables of a source are read whole again and go on, in step with the others of the source.

    Until then no round takes from the source, whoever asks for one.
    """
    (source,) = chosen(place, [name])
    holder = new_holder(place)
    place.runtime.catalog.sources.hold(source.id, holder, place.runtime.settings.lease_ttl)
    with Holding(place, source.id, holder):
        finish(place, Tally())
        return _reload(place, place.runtime.catalog.sources.find(name))


def _reload(place: Place, source: SourceRecord) -> Outcome:
    if place.runtime.catalog.rounds.beginning().besides(source.id):
        raise SourceUnreachable(f"source {source.name} has yet to acknowledge a round", help="`matview ingest` first")
    stopped = [table for table in source.tables if table.error is not None]
    engine = place.connections.of(source)
    now = [_unchanged(source, table, engine) for table in stopped]
    if stopped:
        engine.remove(all_described(stopped))
        engine.install(all_described(now))
    home = f"{files.HOME}/reload-{source.id}"
    going = all_described(source.going)
    try:
        with engine.first_state([*all_described(now), *going]) as first:
            found = read_whole(place, first, [table for table in now if table.replicate], home, as_tuples=False)
            part = RoundPart(source.id, files.names_of(source.tables), first.taken)
        changed = engine.changes(going, part.taken)
        part = replace(part, rows=changed.rows, transactions=changed.transactions)
        remote = [table for table in now if not table.replicate]
        outcome = _recommit(place, source, found, remote, part, {source.id: changed.changes})
    finally:
        with suppress(MatviewError):
            files.forget(place.runtime.tables.root, [home])
    delete_consumed(place)
    return outcome


def _unchanged(source: SourceRecord, table: SourceTableRecord, engine: Source) -> SourceTableRecord:
    """The table as it is now; SourceDrifted if it has other columns, or another key, than its replica."""
    (found,) = engine.describe([table.name])
    now = replace(recorded(found, table.table, table.replicate), table_id=table.table_id)
    if schema_of(now) != schema_of(table):
        raise SourceDrifted(
            f"table {table.name} of source {source.name} has other columns, or another key, than it had",
            help=f"`matview source remove {quoted(source.name)}`, then add it again",
        )
    _refuse_problems(source.name, engine.check([found], installed=False))
    return now


def _recommit(
    place: Place,
    source: SourceRecord,
    found: Sequence[Whole],
    remote: Sequence[SourceTableRecord],
    part: RoundPart,
    changes: Changes,
) -> Outcome:
    """What was read whole, and what the same set changed in the other tables, as one version."""
    with place.begin(place.step) as tx:
        tx.remote.taken[source.id] = part.taken
        for whole in found:
            tx.reload(whole.table.table, frame(place, whole))
        for table in remote:
            tx.renew(source, table)
        feed(place, tx, source, part, changes)
        resumed = tuple((source.id, table) for table in (*(whole.table for whole in found), *remote))
        tx.tell(SourceChanges(loaded=(part,), resumed=resumed, sequences={source.id: source.sequence}))
        outcome = tx.commit()
    place.step("installed")
    return outcome


# removing -------------------------------------------------------------------------------------------------------------


def remove(place: Place, name: str, *, cascade: bool = False, force: bool = False) -> Outcome:
    """The source's tables go, then what capture had set up there. `cascade`: with the views that read the tables;
    `force`: although the source cannot be reached, and keeps what capture had set up."""
    source = place.runtime.catalog.sources.find(name)
    with _half_added(place, source) if source.state == "adding" else nullcontext():
        return _removed(place, source, cascade, force)


def _half_added(place: Place, source: SourceRecord) -> Holding:
    """An adding that was cut short, to clear away; SourceExists if somebody is still at it."""
    holder = new_holder(place)
    place.runtime.catalog.sources.claim(source.name, holder, place.runtime.settings.lease_ttl)
    return Holding(place, source.id, holder)


def _removed(place: Place, source: SourceRecord, cascade: bool, force: bool) -> Outcome:
    outcome = Outcome(Counts())
    if source.state == "active":
        outcome = _dropped(place, source, cascade)
        place.step("dropped")
    try:
        place.connections.of(source).remove(all_described(source.tables))
    except MatviewError:
        if not force:
            raise
    place.step("removed")
    place.connections.drop(source.id)
    place.runtime.catalog.sources.forget(source.id)
    return replace(outcome, done=", ".join(filter(None, [outcome.done, f"source {source.name} removed"])))


def _dropped(place: Place, source: SourceRecord, cascade: bool) -> Outcome:
    """Its tables are gone, and no round of it waits any more."""
    before = waiting(place)
    with place.begin(place.step) as tx:
        tx.unload(*(table.table for table in source.tables), cascade=cascade)
        tx.tell(SourceChanges(removed=(source.id,)))
        outcome = tx.commit()
    still = {one.number for one in place.runtime.catalog.rounds.pending()}
    gone = [files.directory(one.number) for one in before if one.number not in still]
    with suppress(MatviewError):  # collected as garbage, sooner or later
        files.forget(place.runtime.tables.root, gone)
    return outcome


# looking --------------------------------------------------------------------------------------------------------------


def check(place: Place, name: str) -> list[Problem]:
    """What stands against taking changes over: tables that are stopped, and what has drifted since."""
    source = place.runtime.catalog.sources.find(name)
    try:
        found = place.connections.of(source).check(all_described(source.tables), installed=True)
    except MatviewError:
        place.connections.drop(source.id)
        raise
    told = {problem.table for problem in found}
    again = f"`matview source reload {quoted(source.name)}` reads it whole again, once nothing else stands against it"
    stopped = [t for t in source.tables if t.error is not None and t.name not in told]
    return [*found, *(Problem(why_stopped(t.error or "", f"{t.name} is stopped", again), t.name) for t in stopped)]
