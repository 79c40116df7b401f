"""A round from its first step to its last, and before it what others have left undone.

    strong     (the default) one round takes all that has committed at its sources: one version
    complete   one round, one transaction of one source: every state that the source had is a version

A round that cannot be installed is thrown away, since nothing was deleted at the sources, and each of its sources gets
a round of its own: the one that stands in the way keeps no other back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from matview.catalog.described import all_described
from matview.catalog.source_records import SourceRecord
from matview.errors import MatviewError, SourceExists, TransactionOver
from matview.maintain.rounds.place import Place
from matview.maintain.rounds.steps import (
    Changes,
    Installed,
    delete_consumed,
    evaluate,
    give_up,
    install,
    names_table,
    note_failure,
    query_transactions,
)


@dataclass(frozen=True, slots=True)
class Ingested:
    """What was taken over: rounds, transactions and changed rows, and the last version that shows them.

    `failed`: the sources from which nothing could be taken, or to which nothing could be said, and why.
    """

    rounds: int = 0
    transactions: int = 0
    rows: int = 0
    version: int | None = None
    failed: Mapping[str, MatviewError] = field(default_factory=dict)

    def __str__(self) -> str:
        if not self.rounds:
            return "nothing new"
        shown = f"{self.rows} changed rows of {self.transactions} transactions"
        return shown if self.version is None else f"{shown} (version {self.version})"


@dataclass
class Tally:
    """What several rounds come to."""

    rounds: int = 0
    transactions: int = 0
    rows: int = 0
    version: int | None = None
    failed: dict[str, MatviewError] = field(default_factory=dict)

    def add(self, done: Installed) -> None:
        assert done.outcome is not None
        self.rounds += 1
        self.transactions += sum(part.transactions for part in done.round.parts)
        self.rows += sum(part.rows for part in done.round.parts)
        self.version = done.outcome.version or self.version

    @property
    def told(self) -> Ingested:
        return Ingested(self.rounds, self.transactions, self.rows, self.version, dict(self.failed))


def ingest(place: Place, *names: str) -> Ingested:
    """One round over the sources named, or over all; raises if nothing was taken over, and all of them failed."""
    sources, tally = chosen(place, names), Tally()
    finish(place, tally)
    strong = [source.name for source in sources if source.mode == "strong"]
    if strong:
        _round(place, strong, tally)
    for source in sources:
        if source.mode == "complete":
            _one_by_one(place, source, tally)
    if sources and not tally.rounds and all(source.name in tally.failed for source in sources):
        raise next(iter(tally.failed.values()))
    return tally.told


def chosen(place: Place, names: Sequence[str]) -> list[SourceRecord]:
    """The sources that take part: those named, each of which must be there, or all."""
    if not names:
        return [source for source in place.runtime.catalog.sources.list() if source.state == "active"]
    found = [place.runtime.catalog.sources.find(name) for name in names]
    for source in found:
        if source.state != "active":
            raise SourceExists(
                f"source {source.name} is half {'added' if source.state == 'adding' else 'removed'}",
                help="add it again, or remove it",
            )
    return list({source.id: source for source in found}.values())


def finish(place: Place, tally: Tally) -> None:
    """Whatever a predecessor left: rounds that wait are installed, those installed are acknowledged."""
    _install_all(place, {}, tally)
    tally.failed |= delete_consumed(place)


def _round(place: Place, names: Sequence[str], tally: Tally, most: int | None = None) -> bool:
    """The four steps; whether there was anything to take."""
    fixed = query_transactions(place, names, most)
    tally.failed |= fixed.failed
    if fixed.round is None:
        return False
    evaluate(place, fixed)
    failures = _install_all(place, {fixed.round.number: fixed.changes}, tally)
    tally.failed |= delete_consumed(place)
    for failure in failures:
        _alone(place, failure, names, tally, most)
    if _went_with_another(place, fixed.round.number, failures):
        _round(place, [name for name in names if name not in tally.failed], tally, most)
    return True


def _went_with_another(place: Place, number: int, failures: Sequence[Installed]) -> bool:
    """The round was thrown away because of one before it, here or by another process."""
    now = place.runtime.catalog.rounds.get(number)
    return now is not None and now.state == "discarded" and all(one.round.number != number for one in failures)


def _install_all(place: Place, in_hand: Mapping[int, Changes], tally: Tally) -> list[Installed]:
    """Every round that waits, oldest first; those that cannot be installed are given up."""
    failures = []
    while (done := install(place, in_hand)) is not None:
        if done.error is None:
            tally.add(done)
        elif not isinstance(done.error, TransactionOver):  # another has seen to it
            give_up(place, done.round.number, done.error)
            failures.append(done)
    return failures


def _alone(place: Place, failure: Installed, names: Sequence[str], tally: Tally, most: int | None) -> None:
    """After a round was given up: the same without the table that is stopped now, or each of its sources by itself."""
    assert failure.error is not None
    known = {source.id: source for source in place.runtime.catalog.sources.list()}
    inside = [known[part.source_id] for part in failure.round.parts if part.source_id in known]
    taking_part = [source for source in inside if source.name in names]
    if names_table(failure.error):
        _round(place, [source.name for source in taking_part], tally, most)
    elif len(inside) > 1:
        for source in taking_part:
            _round(place, [source.name], tally, most)
    else:
        for source in inside:
            note_failure(place, source, failure.error)
            tally.failed[source.name] = failure.error


def _one_by_one(place: Place, source: SourceRecord, tally: Tally) -> None:
    """As many transactions as waited when this began, each a version: whoever writes on cannot keep us here."""
    try:
        left = place.connections.of(source).waiting(all_described(source.going)).transactions
    except MatviewError as error:
        note_failure(place, source, error)
        tally.failed[source.name] = error
        return
    while left > 0 and source.name not in tally.failed and _round(place, [source.name], tally, most=1):
        left -= 1
