"""Rounds: the sets of transactions that are being taken over, kept until they are deleted at their sources (M10).

    fixed --computed--> computed --(the commit of its maintenance transaction)--> installed --acknowledge--> done
      \\______________________ discard ______________________/

They form a queue in the catalog: whoever holds the lease installs the oldest first, whoever had fixed it. A capture
leaves out the sets of all that wait or are not yet acknowledged; if the queue has changed behind its back, it is made
again (`sequence`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, func, insert, select, update
from sqlalchemy.engine import RowMapping

from matview.catalog import codec, schema
from matview.catalog.source_records import RoundPart, RoundRecord, SourceChanges, SourceRecord
from matview.catalog.sources import activate, begin_removal, read_sources, resume, touch
from matview.catalog.store import Reading, Store, Writing
from matview.errors import TransactionOver

WAITING = ("fixed", "computed")
PENDING = (*WAITING, "installed")
_KEPT = 1000
_rounds, _parts = schema.round_.c, schema.round_source.c


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a capture begins from: the sources that take part in rounds, and the rounds that are not done.

    A source that somebody reads whole takes part again when that has ended.
    """

    sources: tuple[SourceRecord, ...]
    pending: tuple[RoundRecord, ...]

    def besides(self, source_id: str) -> list[Mapping[str, Any]]:
        """The sets that a capture of this source must leave out."""
        parts = (part for one in self.pending for part in one.parts)
        return [part.taken for part in parts if part.source_id == source_id and not part.acknowledged]


class Rounds:
    """The queue; nothing here needs the lease but the commit that installs."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def beginning(self) -> Beginning:
        """Sources and queue of one moment."""
        return self._store.read(_beginning)

    def pending(self) -> tuple[RoundRecord, ...]:
        """Not yet done, oldest first."""
        return self._store.read(lambda reading: _where(reading, _rounds.state.in_(PENDING)))

    def get(self, number: int) -> RoundRecord | None:
        return next(iter(self._store.read(lambda reading: _where(reading, _rounds.number == number))), None)

    def history(self, limit: int = 20) -> list[RoundRecord]:
        """The newest first."""
        newest = select(_rounds.number).order_by(_rounds.number.desc()).limit(limit)
        return self._store.read(lambda reading: list(_where(reading, _rounds.number.in_(newest)))[::-1])

    def fix(self, parts: Sequence[RoundPart], sequences: Mapping[str, int]) -> RoundRecord | None:
        """The round is in the queue; None if a source has moved on since its sequence was looked at."""
        return self._store.exclusive(lambda writing: _fix(writing, parts, sequences))

    def computed(self, number: int, files: Mapping[str, Mapping[str, str]]) -> None:
        """The changes of each source are in these files."""
        self._store.exclusive(lambda writing: _computed(writing, number, files))

    def discard(self, number: int) -> tuple[RoundRecord, ...]:
        """This round, if it waits, and those that follow from it: a later capture takes their transactions. Which
        they were; none if it waits no more, since somebody has seen to it."""
        return self._store.exclusive(lambda writing: _discard(writing, number))

    def acknowledge(self, number: int, source_id: str) -> None:
        """The source has deleted the set of an installed round."""
        part = and_(_parts.number == number, _parts.source_id == source_id)
        done = update(schema.round_source).where(part).values(acknowledged=True)
        self._store.write(lambda writing: writing.change(done))

    def end(self, number: int) -> None:
        """The installed round is done, if all its sources have acknowledged it."""
        self._store.exclusive(lambda writing: _end(writing, number))


def change_sources(writing: Writing, changes: SourceChanges, vn: int) -> None:
    """The part of a commit that is about sources. A round that somebody else has installed or discarded fails it."""
    for source in changes.added:
        activate(writing, source)
    for source_id in changes.removed:
        begin_removal(writing, source_id)
    for source_id, table in changes.resumed:
        resume(writing, source_id, table)
    _refuse_if_moved(writing, changes.sequences)
    for number in changes.installed:
        _install(writing, number, vn)
    for source_id in changes.removed:
        _discard_all_of(writing, source_id)
    if changes.loaded:
        number = _put(writing, "installed", changes.loaded)
        _install(writing, number, vn, of=("installed",))
        touch(writing, [part.source_id for part in changes.loaded])


def _refuse_if_moved(writing: Writing, sequences: Mapping[str, int]) -> None:
    columns = schema.source.c
    for source_id, known in sequences.items():
        if writing.value(select(columns.sequence).where(columns.id == source_id)) != known:
            raise TransactionOver("a round of the same source was fixed meanwhile", help="run it again")


def _beginning(reading: Reading) -> Beginning:
    free = and_(schema.source.c.state == "active", schema.source.c.held_until <= reading.now())
    active = read_sources(reading, free)
    return Beginning(active, _where(reading, _rounds.state.in_(PENDING)))


def _fix(writing: Writing, parts: Sequence[RoundPart], sequences: Mapping[str, int]) -> RoundRecord | None:
    columns = schema.source.c
    active = select(columns.id, columns.sequence).where(columns.state == "active")
    known = {row["id"]: row["sequence"] for row in writing.rows(active)}
    if any(known.get(part.source_id) != sequences[part.source_id] for part in parts):
        return None
    number = _put(writing, "fixed", parts)
    touch(writing, [part.source_id for part in parts])
    return _where(writing, _rounds.number == number)[0]


def _put(writing: Writing, state: str, parts: Sequence[RoundPart]) -> int:
    number = int(writing.value(select(func.max(_rounds.number))) or 0) + 1
    writing.change(insert(schema.round_).values(number=number, state=state, began_at=writing.now()))
    writing.change_each(insert(schema.round_source), [_part_row(number, part) for part in parts])
    return number


def _computed(writing: Writing, number: int, files: Mapping[str, Mapping[str, str]]) -> None:
    waits = and_(_rounds.number == number, _rounds.state == "fixed")
    if writing.change(update(schema.round_).where(waits).values(state="computed")):
        for source_id, paths in files.items():
            part = and_(_parts.number == number, _parts.source_id == source_id)
            writing.change(update(schema.round_source).where(part).values(files=json.dumps(dict(paths))))


def _install(writing: Writing, number: int, vn: int, of: Sequence[str] = WAITING) -> None:
    now = writing.now()
    waits = and_(_rounds.number == number, _rounds.state.in_(of))
    if not writing.change(update(schema.round_).where(waits).values(state="installed", vn=vn, installed_at=now)):
        raise TransactionOver(f"round {number} was installed or discarded by another", help="run it again")
    for part in _where(writing, _rounds.number == number)[0].parts:
        columns = schema.source.c
        more = {"rows": columns.rows + part.rows, "transactions": columns.transactions + part.transactions}
        writing.change(
            update(schema.source).where(columns.id == part.source_id).values(**more, captured_at=now, error=None)
        )


def _discard(writing: Writing, number: int) -> tuple[RoundRecord, ...]:
    return _thrown_away(writing, _with_those_after(_where(writing, _rounds.state.in_(WAITING)), [number]))


def _discard_all_of(writing: Writing, source_id: str) -> None:
    """What waits of a source that is removed has no table any more; those that waited beside it are taken again."""
    waiting = _where(writing, _rounds.state.in_(WAITING))
    own = [one.number for one in waiting if any(part.source_id == source_id for part in one.parts)]
    _thrown_away(writing, _with_those_after(waiting, own))


def _with_those_after(waiting: Sequence[RoundRecord], first: Sequence[int]) -> tuple[RoundRecord, ...]:
    """These rounds, and each later one that takes from a source of theirs: it begins where they would have ended."""
    found, sources = [], set[str]()
    for one in waiting:
        own = {part.source_id for part in one.parts}
        if one.number in first or own & sources:
            found.append(one)
            sources |= own
    return tuple(found)


def _thrown_away(writing: Writing, found: tuple[RoundRecord, ...]) -> tuple[RoundRecord, ...]:
    for one in found:
        gone = {"state": "discarded", "ended_at": writing.now()}
        writing.change(update(schema.round_).where(_rounds.number == one.number).values(**gone))
        touch(writing, [part.source_id for part in one.parts])
    return found


def _end(writing: Writing, number: int) -> None:
    left = writing.value(select(func.count()).where(_parts.number == number, _parts.acknowledged.is_(False)))
    if not left:
        over = and_(_rounds.number == number, _rounds.state == "installed")
        writing.change(update(schema.round_).where(over).values(state="done", ended_at=writing.now()))
        _forget_old(writing)


def _forget_old(writing: Writing) -> None:
    newest = int(writing.value(select(func.max(_rounds.number))) or 0)
    old = and_(_rounds.number <= newest - _KEPT, _rounds.state.not_in(PENDING))
    gone = select(_rounds.number).where(old)
    writing.change(delete(schema.round_source).where(_parts.number.in_(gone)))
    writing.change(delete(schema.round_).where(old))


# rows -----------------------------------------------------------------------------------------------------------------


def _where(reading: Reading, condition: ColumnElement[bool]) -> tuple[RoundRecord, ...]:
    rounds = reading.rows(select(schema.round_).where(condition).order_by(_rounds.number))
    numbers = select(_rounds.number).where(condition)
    of = select(schema.round_source).where(_parts.number.in_(numbers)).order_by(_parts.number, _parts.source_id)
    parts: dict[int, list[RoundPart]] = {}
    for row in reading.rows(of):
        parts.setdefault(row["number"], []).append(_part(row))
    return tuple(RoundRecord(parts=tuple(parts.get(row["number"], ())), **row) for row in rounds)


def _part_row(number: int, part: RoundPart) -> dict[str, object]:
    return {
        "number": number,
        "source_id": part.source_id,
        "tables": json.dumps(list(part.tables)),
        "taken": json.dumps(dict(part.taken)),
        "transactions": part.transactions,
        "rows": part.rows,
        "files": json.dumps(dict(part.files)),
        "acknowledged": part.acknowledged,
    }


def _part(row: RowMapping) -> RoundPart:
    files: Any = codec.mapping_from_text(row["files"])
    return RoundPart(
        source_id=row["source_id"],
        tables=tuple(codec.list_from_text(row["tables"])),
        taken=codec.mapping_from_text(row["taken"]),
        transactions=row["transactions"],
        rows=row["rows"],
        files=files,
        acknowledged=row["acknowledged"],
    )
