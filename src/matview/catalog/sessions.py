"""Reader sessions: each pins the version that was current when it opened, and nothing more.

A session never waits for maintenance. It is *open* until it is closed, and *live* while it is open and its heart beats.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from sqlalchemy import and_, delete, func, insert, select, update

from matview.catalog import codec, schema
from matview.catalog.horizon import claim_horizon, settle_horizon
from matview.catalog.lease import fenced
from matview.catalog.records import EndReason, Grain, Lease, SessionRecord
from matview.catalog.store import Reading, Store, Writing
from matview.catalog.version import version_row
from matview.errors import BadSetting

_columns = schema.session.c


class Sessions:
    """Open, keep alive, close; and say how far garbage collection may go."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def open(self, holder: str, grain: Grain, ttl: float) -> SessionRecord:
        """Pin currentVN. Insert, then look whether garbage collection may have passed by; if so, pin a newer one."""
        if not ttl > 0:
            raise BadSetting(f"a session needs a time to live above zero, not {ttl:g}")
        while True:
            if (pinned := self._pin(secrets.token_hex(6), holder, grain, ttl)) is not None:
                return pinned

    def _pin(self, session_id: str, holder: str, grain: Grain, ttl: float) -> SessionRecord | None:
        self._store.write(lambda writing: insert_session(writing, session_id, holder, grain, ttl))
        pinned = self._store.read(lambda reading: confirm_session(reading, session_id))
        if pinned is None:
            self._store.write(lambda writing: writing.change(delete(schema.session).where(_columns.id == session_id)))
        return pinned

    def heartbeat(self, session_id: str) -> bool:
        """The session is alive; False when it is no longer open."""
        return self._store.write(lambda writing: _heartbeat(writing, session_id))

    def close(self, session_id: str) -> None:
        """The reader is done; closing twice does nothing."""
        self._store.write(lambda writing: _end(writing, session_id, "closed"))

    def mark_expired(self, session_id: str) -> None:
        """The reader found that its version can no longer be told; it pins nothing any more."""
        self._store.write(lambda writing: _end(writing, session_id, "expired"))

    def get(self, session_id: str) -> SessionRecord | None:
        return self._store.read(lambda reading: _get(reading, session_id))

    def count_live(self) -> int:
        """Sessions that are open and heard of within their time to live."""
        return self._store.read(_count_live)

    def raise_gc_horizon(self, lease: Lease) -> int:
        """Mark the dead, then: the least version that any open session needs, or currentVN; it never goes down.

        Whatever only versions below it need may be removed.
        """
        fenced(self._store, lease, claim_horizon)
        return fenced(self._store, lease, settle_horizon)

    def prune(self, lease: Lease, keep: int) -> int:
        """Forget the sessions that have ended, but for those among the newest `keep`; how many."""
        return fenced(self._store, lease, lambda writing: _prune(writing, keep))

    def list(self, open_only: bool = True, limit: int = 1000) -> Sequence[SessionRecord]:
        """The newest `limit` sessions, newest first; those that have ended too if asked for."""
        query = select(schema.session).order_by(_columns.opened_at.desc(), _columns.id).limit(limit)
        chosen = query.where(_columns.closed_at.is_(None)) if open_only else query
        return self._store.read(lambda reading: [codec.session_record(row) for row in reading.rows(chosen)])


def insert_session(writing: Writing, session_id: str, holder: str, grain: Grain, ttl: float) -> None:
    """First half of opening: be seen, with the version that is current now."""
    version, now = version_row(writing)["current_vn"], writing.now()
    row = {"id": session_id, "version": version, "holder": holder, "grain": grain, "ttl": ttl}
    writing.change(insert(schema.session).values(**row, opened_at=now, heartbeat_at=now))


def confirm_session(reading: Reading, session_id: str) -> SessionRecord | None:
    """Second half, in a later snapshot: the session, if no claim of garbage collection lies above its version."""
    pinned, bounds = _get(reading, session_id), version_row(reading)
    if pinned is None or pinned.closed_at is not None:
        return None
    return pinned if pinned.version >= max(bounds["gc_claim"], bounds["floor"]) else None


def _heartbeat(writing: Writing, session_id: str) -> bool:
    mine = and_(_columns.id == session_id, _columns.closed_at.is_(None))
    return bool(writing.change(update(schema.session).where(mine).values(heartbeat_at=writing.now())))


def _end(writing: Writing, session_id: str, reason: EndReason) -> None:
    mine = and_(_columns.id == session_id, _columns.closed_at.is_(None))
    writing.change(update(schema.session).where(mine).values(closed_at=writing.now(), reason=reason))


def _get(reading: Reading, session_id: str) -> SessionRecord | None:
    row = reading.first(select(schema.session).where(_columns.id == session_id))
    return None if row is None else codec.session_record(row)


def _prune(writing: Writing, keep: int) -> int:
    kept = select(_columns.id).order_by(_columns.opened_at.desc(), _columns.id).limit(keep)
    ended = and_(_columns.closed_at.is_not(None), _columns.id.not_in(kept))
    return writing.change(delete(schema.session).where(ended))


def _count_live(reading: Reading) -> int:
    live = and_(_columns.closed_at.is_(None), _columns.heartbeat_at + _columns.ttl > reading.now())
    return int(reading.value(select(func.count()).select_from(schema.session).where(live)))
