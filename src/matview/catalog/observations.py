"""What happened, as the adviser of section 5 needs it: a session up to (n-1)(i+m)-m long never expires."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from sqlalchemy import select
from sqlalchemy.engine import RowMapping

from matview.catalog import schema
from matview.catalog.records import Observations
from matview.catalog.store import Reading


def observe(reading: Reading, limit: int) -> Observations:
    """The newest `limit` committed transactions and `limit` sessions, told oldest first."""
    runs, sessions, now = _committed(reading, limit), _sessions(reading, limit), reading.now()
    return Observations(
        durations=tuple(run["ended_at"] - run["began_at"] for run in runs),
        gaps=tuple(later["began_at"] - earlier["ended_at"] for earlier, later in pairwise(runs)),
        session_lengths=tuple(s["closed_at"] - s["opened_at"] for s in sessions if s["closed_at"] is not None),
        session_ages=tuple(now - s["opened_at"] for s in sessions if s["closed_at"] is None),
    )


def _committed(reading: Reading, limit: int) -> Sequence[RowMapping]:
    columns = schema.transaction.c
    query = select(columns.began_at, columns.ended_at).where(columns.state == "committed")
    return reading.rows(query.order_by(columns.vn.desc()).limit(limit))[::-1]


def _sessions(reading: Reading, limit: int) -> Sequence[RowMapping]:
    columns = schema.session.c
    query = select(columns.opened_at, columns.closed_at).order_by(columns.opened_at.desc(), columns.id).limit(limit)
    return reading.rows(query)[::-1]
