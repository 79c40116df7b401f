"""One maintenance transaction at a time: a lease that runs out, and a token that fences whoever overslept.

Tokens grow for ever. A write made under a lease looks at the token inside its own database transaction, behind the
latch that every acquisition takes too: so it happens wholly before a successor acquires, or not at all.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

from sqlalchemy import case, select, update

from matview.catalog import codec, schema
from matview.catalog.records import Lease
from matview.catalog.store import Reading, Store, Writing
from matview.errors import BadSetting, LeaseLost, MaintenanceBusy

T = TypeVar("T")

FIRST_PAUSE, LONGEST_PAUSE = 0.01, 0.2
STEPPED_BACK = 10.0
"""A lease from a future so many seconds away was written before the clock stepped back, and not renewed since: when it
runs out, nobody can tell. It is taken from its holder, who, if alive, would have renewed it soon, and is fenced."""


class Leases:
    """Acquire, renew, release."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def acquire(self, holder: str, ttl: float, wait: float = 0.0) -> Lease:
        """The lease, with a token never given before; MaintenanceBusy if another held it all through `wait` seconds.

        A lease that has expired is taken from its holder.
        """
        _check_ttl(ttl)
        deadline, pause, waits = time.monotonic() + wait, FIRST_PAUSE, False
        while True:
            try:
                if waits:
                    self._store.read(_refuse_if_held)  # whoever only waits keeps off the latch
                return self._store.exclusive(lambda writing: _take(writing, holder, ttl))
            except MaintenanceBusy:
                if time.monotonic() >= deadline:
                    raise
            waits = True
            time.sleep(min(pause * random.uniform(0.5, 1.0), max(0.0, deadline - time.monotonic())))
            pause = min(2 * pause, LONGEST_PAUSE)

    def renew(self, lease: Lease, ttl: float) -> Lease:
        """The same lease for `ttl` seconds from now, even if it had expired, as long as nobody has taken it."""
        _check_ttl(ttl)
        return fenced(self._store, lease, lambda writing: _renew(writing, ttl))

    def release(self, lease: Lease) -> None:
        """Let the next one in. Releasing a lease that is lost or released already does nothing.

        (It stands in `finally` clauses, where a second error would hide the first.)
        """
        mine = (schema.lease.c.token == lease.token, schema.lease.c.holder.is_not(None))
        self._store.exclusive(lambda writing: writing.change(update(schema.lease).where(*mine).values(holder=None)))

    def current(self) -> Lease | None:
        """The lease that somebody holds, expired or not; None if the last one was released."""
        return self._store.read(_current)


def fenced(store: Store, lease: Lease, work: Callable[[Writing], T]) -> T:
    """Run exclusive work under a lease: LeaseLost, and nothing done, unless its token is the current one."""

    def guarded(writing: Writing) -> T:
        _check_token(writing, lease)
        return work(writing)

    return store.exclusive(guarded)


def _check_token(reading: Reading, lease: Lease) -> None:
    row = reading.first(select(schema.lease))
    if row is not None and row["token"] == lease.token and row["holder"] is not None:
        return
    if row is not None and row["token"] == lease.token:
        raise LeaseLost(f"lease {lease.token} of {lease.holder} was released")
    successor = f"{row['token']} of {row['holder'] or 'a holder since gone'}" if row else "none"
    raise LeaseLost(f"lease {lease.token} of {lease.holder} ran out and was followed by lease {successor}")


def _take(writing: Writing, holder: str, ttl: float) -> Lease:
    _refuse_if_held(writing)
    now = writing.now()
    values = {"holder": holder, "acquired_at": now, "expires_at": now + ttl}
    writing.change(update(schema.lease).values(token=schema.lease.c.token + 1, **values))
    return codec.lease(writing.rows(select(schema.lease))[0])


def _renew(writing: Writing, ttl: float) -> Lease:
    now, since = writing.now(), schema.lease.c.acquired_at
    since_at_most = case((since > now, now), else_=since)
    writing.change(update(schema.lease).values(acquired_at=since_at_most, expires_at=now + ttl))
    return codec.lease(writing.rows(select(schema.lease))[0])


def _current(reading: Reading) -> Lease | None:
    row = reading.first(select(schema.lease).where(schema.lease.c.holder.is_not(None)))
    return None if row is None else codec.lease(row)


def _refuse_if_held(reading: Reading) -> None:
    lease, now = _current(reading), reading.now()
    if lease is not None and lease.expires_at > now > lease.acquired_at - STEPPED_BACK:
        since, till = _moment(lease.acquired_at), _moment(lease.expires_at)
        raise MaintenanceBusy(f"{lease.holder} holds the maintenance lease, since {since} and till {till}")


def _check_ttl(ttl: float) -> None:
    if not ttl > 0:
        raise BadSetting(f"a lease needs a time to live above zero, not {ttl:g}")


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(sep=" ", timespec="milliseconds")
