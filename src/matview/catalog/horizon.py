"""How far garbage collection may go, without a lock between it and sessions that are just opening.

    garbage collection                      a session
    1  claim := least version needed        a  insert, with currentVN
       --- commit ---                          --- commit ---
    2  look at the sessions again           b  look at the claim: above my version? then anew
       horizon := min(claim, least needed)

Whichever of 1 and a is committed first, the other side looks after it: either 2 sees the session, and the horizon stays
at or below its version, or b sees the claim, and the session moves to a version at or above it. So no session that
opened has a version below the horizon. One transaction for 1 and 2 would not do: its claim becomes visible only after
it has looked. If a crash falls between 1 and 2, a claim is left that costs a session at most one repetition.
"""

from __future__ import annotations

from sqlalchemy import and_, func, select, update

from matview.catalog import schema
from matview.catalog.store import Reading, Writing
from matview.catalog.version import set_version, version_row

_columns = schema.session.c


def claim_horizon(writing: Writing) -> int:
    """Step 1: mark the dead; claim = max(claim, least version needed, or currentVN if no session is open)."""
    _mark_dead(writing)
    bounds = version_row(writing)
    oldest = _oldest_pinned(writing)
    claim = max(bounds["gc_claim"], bounds["current_vn"] if oldest is None else oldest)
    set_version(writing, gc_claim=claim)
    return int(claim)


def settle_horizon(writing: Writing) -> int:
    """Step 2: horizon = max(horizon, min(claim, least version needed))."""
    bounds = version_row(writing)
    oldest = _oldest_pinned(writing)
    reach = bounds["gc_claim"] if oldest is None else min(bounds["gc_claim"], oldest)
    horizon = max(bounds["gc_horizon"], reach)
    set_version(writing, gc_horizon=horizon)
    return int(horizon)


def _mark_dead(writing: Writing) -> None:
    now = writing.now()
    silent = and_(_columns.closed_at.is_(None), _columns.heartbeat_at + _columns.ttl <= now)
    writing.change(update(schema.session).where(silent).values(closed_at=now, reason="dead"))


def _oldest_pinned(reading: Reading) -> int | None:
    version: int | None = reading.value(select(func.min(_columns.version)).where(_columns.closed_at.is_(None)))
    return version
