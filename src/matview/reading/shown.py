"""What SHOW tells, as rows: the columns that Spark gives them, and the values."""

from __future__ import annotations

from datetime import UTC, datetime

from matview.catalog.records import RefreshRecord, SessionRecord

VIEW_COLUMNS = "view string, maintain string, viewgroup string, policy string, strategy string, reason string"
GROUP_COLUMNS = (
    "viewgroup string, refresh string, views array<string>, state bigint, state_of timestamp, behind_seconds double, "
    "next_refresh timestamp, comment string"
)
SESSION_COLUMNS = "session string, version bigint, grain string, opened timestamp, holder string"
REFRESH_COLUMNS = "view string, version bigint, strategy string, rows bigint, seconds double, at timestamp"


def moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def session_row(session: SessionRecord) -> tuple[object, ...]:
    return session.id, session.version, session.grain, moment(session.opened_at), session.holder


def refresh_row(record: RefreshRecord) -> tuple[object, ...]:
    return record.view, record.vn, record.strategy, record.rows, record.seconds, moment(record.refreshed_at)
