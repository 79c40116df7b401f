"""`matview status`: the warehouse at one glance."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

from matview.catalog.records import Lease, SessionRecord
from matview.cli.durations import clock, moment, shown
from matview.cli.rows import write_table
from matview.cli.texts import say, shortened, write_json
from matview.cli.where import HERE, Where
from matview.groups.graph import BASE
from matview.reading.groups import GroupStatus
from matview.reading.sources import SourceStatus, asked_anew
from matview.reading.status import Outlook, Status, TableStatus, outlook, status_of
from matview.reading.views import ViewStatus

TABLES = ("table", "stored rows", "base files", "overlay files", "in overlay", "size", "versions add")
VIEWS = (
    "view",
    "maintain",
    "viewgroup",
    "policy",
    "last strategy",
    "took",
    "behind",
    "refreshed at",
    "computed anew because",
)
SOURCES = ("source", "tables", "rows captured", "rows waiting", "lag", "oldest open transaction", "error")
SESSIONS = ("session", "version", "behind", "age", "by", "outlook")
REASON = 60  # so many letters of it; JSON has the whole


def status(*, json: Annotated[bool, Parameter(negative="", help="For programs.")] = False, where: Where = HERE) -> None:
    root = where.root
    with where.open_catalog() as catalog:
        found = status_of(catalog, root, asked_anew)
    if json:
        write_json(as_json(found))
    else:
        _write(found)


def as_json(status: Status) -> dict[str, object]:
    """The status as it is, each session with its outlook."""
    sessions = [asdict(session) | asdict(outlook(session, status)) for session in status.sessions]
    return asdict(status) | {"sessions": sessions}


def _write(status: Status) -> None:
    state = status.version
    say(f"warehouse    {status.path}")
    say(f"versions     {state.versions}, the current one is {state.current_vn}")
    say(f"maintenance  {_maintenance(status.maintenance, state.maintenance_active, status.now)}")
    if status.tables:
        write_table(TABLES, [_table(table) for table in status.tables])
    else:
        say("tables       none")
    if status.views:
        write_table(VIEWS, [_view(view) for view in status.views])
    for group in status.groups:
        if group.name != BASE:
            say(group_sentence(group, status.now))
    if status.sources:
        write_table(SOURCES, [_source(source, status.now) for source in status.sources])
    if status.sessions:
        write_table(SESSIONS, [_session(session, status) for session in status.sessions])
    else:
        say("sessions     none open")
    say(f"advice       {status.advice.reason}")


def _maintenance(lease: Lease | None, active: bool, now: float) -> str:
    if lease is None:
        return "left unfinished by a process that is gone; the next transaction repairs it" if active else "idle"
    what = "active" if active else "lease held"
    since = f"by {lease.holder} since {moment(lease.acquired_at)} ({shown(max(0.0, now - lease.acquired_at))})"
    silent = "" if lease.expires_at > now else "; its lease has run out, the next transaction takes over"
    return f"{what}, {since}{silent}"


def _table(table: TableStatus) -> tuple[object, ...]:
    share = f"{table.overlay_share:.1%}"
    return (
        table.name,
        table.rows,
        table.base_files,
        table.overlay_files,
        share,
        size(table.bytes),
        f"+{table.overhead:.0%}",
    )


def _view(view: ViewStatus) -> tuple[object, ...]:
    took = shown(view.seconds) if view.strategy else ""
    last, reason = view.strategy or "none yet", shortened(view.reason or "", REASON)
    return (view.name, view.maintain, view.group, view.policy, last, took, view.behind, view.refreshed_vn, reason)


def _source(source: SourceStatus, now: float) -> tuple[object, ...]:
    stopped = [f"{table.table}: {shortened(table.error, REASON)}" for table in source.tables if table.error]
    errors = [*([shortened(source.error, REASON)] if source.error else []), *stopped]
    open_for = "" if source.oldest_open is None else shown(max(0.0, now - source.oldest_open))
    waits = "?" if source.waiting_rows is None else source.waiting_rows
    lag = "?" if source.lag is None else shown(source.lag)
    return (source.name, len(source.tables), source.rows, waits, lag, open_for, "; ".join(errors))


def group_sentence(group: GroupStatus, now: float) -> str:
    """`reports: state of 14:05:12, 3 min behind, next refresh in 2 min`."""
    if group.state_at is None:
        return f"{group.name}: no views"
    parts = [f"state of {clock(group.state_at, now)}"]
    parts.append(f"{shown(group.behind)} behind" if group.behind else "up to date")
    if group.held_back:
        parts[-1] += f" but for {', '.join(group.held_back)} (held back by a stopped table: `matview source list`)"
    if group.due_at is None:
        parts.append("refreshed on demand")
    else:
        left = group.due_at - now
        parts.append(f"next refresh in {shown(left)}" if left > 0 else "next refresh is due")
    return f"{group.name}: {', '.join(parts)}"


def _session(session: SessionRecord, status: Status) -> tuple[object, ...]:
    seen = outlook(session, status)
    age = shown(max(0.0, status.now - session.opened_at))
    return (session.id, session.version, seen.behind, age, session.holder, sentence(seen, status))


def sentence(seen: Outlook, status: Status) -> str:
    """Section 5 in words: sure while it overlaps at most n-1 maintenance transactions, then table by table."""
    if seen.over is not None:
        return f"expired: {seen.over}"
    if seen.lost:
        return f"expired for {', '.join(seen.lost)}"
    written = status.version.current_vn + status.version.maintenance_active
    if written >= seen.sure_until:
        return "may expire at any time"
    return f"sure until version {seen.sure_until} is being written"


def size(octets: int) -> str:
    value, units = float(octets), iter(("kB", "MB", "GB", "TB"))
    unit = "B"
    while value >= 1000 and unit != "TB":
        value, unit = value / 1000, next(units)
    return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
