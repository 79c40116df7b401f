"""`matview session`: sessions that live in the catalog and in no process; queries attach to them by their id."""

from __future__ import annotations

import getpass
import shlex
import socket
from typing import Annotated

from cyclopts import App, Parameter

from matview.catalog.catalog import Catalog
from matview.catalog.records import Grain, SessionRecord
from matview.cli.durations import moment, seconds, shown
from matview.cli.rows import write_table
from matview.cli.texts import note, say, write_json
from matview.cli.where import HERE, Where
from matview.errors import SessionClosed

COLUMNS = ("id", "version", "grain", "opened", "by", "state")

app = App(name="session")


@app.command(name="open")
def open_session(
    *,
    grain: Annotated[
        Grain, Parameter(help="How exactly expiry is told: per tuple, per table, or by counting.")
    ] = "table",
    ttl: Annotated[str, Parameter(help="How long it lives after it was last used.")] = "1 hour",
    where: Where = HERE,
) -> None:
    """Pin the current version; prints the session's id.

    No process keeps such a session alive: it lives for its `--ttl`, anew with each `matview sql --session ID`.

    Example: `matview session open -w shop.wh --ttl '2 hours'`
    """
    life = seconds(ttl)
    with where.open_catalog() as catalog:
        made = _opened(catalog, grain, life) or _opened_after_refresh(where, grain, life)
    say(made.id)
    used = f"matview sql -w {shlex.quote(where.root)} --session {made.id}"
    note(f"it reads version {made.version} and lives for {shown(made.ttl)}: {used}")


def _opened(catalog: Catalog, grain: Grain, life: float) -> SessionRecord | None:
    """None if deferred views wait for a refresh, which takes Spark."""
    made = catalog.sessions.open(_holder(), grain, life)
    fresh = catalog.views.freshness()
    if not fresh.stale() and (fresh.current_vn == made.version or not any(map(fresh.is_deferred, fresh.views))):
        return made
    catalog.sessions.close(made.id)
    return None


def _opened_after_refresh(where: Where, grain: Grain, life: float) -> SessionRecord:
    from matview.cli.opened import open_here  # PySpark takes its time to import, and is seldom needed here

    with open_here(where) as warehouse:
        opened = warehouse.session(grain=grain, ttl=life)
        opened.detach()
        return opened.record


@app.command(name="list")
def list_sessions(
    *,
    all: Annotated[bool, Parameter(negative="", help="Those that have ended, too.")] = False,
    json: Annotated[bool, Parameter(negative="", help="For programs.")] = False,
    where: Where = HERE,
) -> None:
    """List the open sessions.

    Example: `matview session list -w shop.wh --all`
    """
    with where.open_catalog() as catalog:
        found, now = catalog.sessions.list(open_only=not all), catalog.now()
    if json:
        write_json(list(found))
    else:
        write_table(COLUMNS, [_row(record, now) for record in found])


@app.command(name="close")
def close_session(session_id: Annotated[str, Parameter(name="ID")], /, *, where: Where = HERE) -> None:
    """Close a session: what only it needs may be collected from then on.

    Example: `matview session close -w shop.wh 3f9c02ab71de`
    """
    with where.open_catalog() as catalog:
        record = catalog.sessions.get(session_id)
        if record is None:
            raise SessionClosed(
                f"there is no session {session_id!r}", help="`matview session list` shows those there are"
            )
        catalog.sessions.close(session_id)
    say(f"session {session_id} " + ("is closed" if record.closed_at is None else f"had ended before: {record.reason}"))


def _row(record: SessionRecord, now: float) -> tuple[object, ...]:
    return (record.id, record.version, record.grain, moment(record.opened_at), record.holder, state_of(record, now))


def state_of(record: SessionRecord, now: float) -> str:
    if record.reason is not None:
        return record.reason
    left = record.heartbeat_at + record.ttl - now
    return f"open, {shown(left)} left" if left > 0 else f"silent for {shown(now - record.heartbeat_at)}"


def _holder() -> str:
    """Whoever sits at the command line; the process is gone in a moment."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container may run under a number that has no name
        user = "somebody"
    return f"{user}@{socket.gethostname()}"
