"""When a session's version can no longer be told: three grains, each more cautious than the one before.

tuple   section 3.2, case 3: some tuple that the query reads has changed too often. Exact; checked inside the query
table   some tuple of some table read has; told from file statistics before the query runs
global  section 4.1: the session has overlapped more than n-1 maintenance transactions. Told from two numbers

expired(tuple) implies expired(table) implies expired(global); a session that overlaps at most n-1 maintenance
transactions expires at none of them.
"""

from __future__ import annotations

from typing import Literal

from matview.errors import SessionExpired
from matview.versions.facts import Facts
from matview.versions.layout import FEWEST_VERSIONS, Layout

Grain = Literal["tuple", "table", "global"]


def table_expired(session_vn: int, facts: Facts, layout: Layout) -> bool:
    """Some tuple of the snapshot has n-1 changes, and the oldest is later than sessionVN + 1: case 3 of section 5."""
    facts.check(layout)
    return session_vn < facts.newest[-1] - 1


def global_expired(session_vn: int, current_vn: int, maintenance_active: bool, versions: int) -> bool:
    """The session overlaps more than n-1 maintenance transactions: those committed since it began, and the active one.

    For n = 2 this is the paper's condition, negated: (sessionVN = currentVN) or ((sessionVN = currentVN - 1) and not
    maintenanceActive).
    """
    if versions < FEWEST_VERSIONS:
        raise ValueError(f"at least {FEWEST_VERSIONS} versions, not {versions}")
    if session_vn > current_vn:
        raise ValueError(f"session version {session_vn} is yet to come; the current one is {current_vn}")
    return current_vn - session_vn + maintenance_active > versions - 1


def expired_message(session_vn: int) -> str:
    """What a query says that meets an expired tuple; begins with the code of `SessionExpired`."""
    return f"[{SessionExpired.code}] version {session_vn} can no longer be told: a row has changed too often since"
