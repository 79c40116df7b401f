"""The statements about viewgroups.

CREATE VIEWGROUP [IF NOT EXISTS] name REFRESH schedule [COMMENT 'text']
ALTER VIEWGROUP name REFRESH schedule [COMMENT 'text']      ALTER VIEWGROUP name RENAME TO name
DROP VIEWGROUP [IF EXISTS] name [CASCADE]      REFRESH VIEWGROUP name [FULL]
SHOW VIEWGROUPS                                SHOW SESSIONS                      SHOW REFRESHES

schedule: EVERY '5 minutes' | CRON '0 6 * * *' [AT TIME ZONE 'Europe/Oslo'] | ON DEMAND
"""

from __future__ import annotations

from matview.errors import BadSchedule, ViewgroupExists
from matview.groups.graph import BASE
from matview.groups.schedule import Cron, OnDemand, Schedule, every
from matview.sql import statements as st
from matview.sql.settings import located
from matview.sql.tokens import TokenReader

GROUP_STATEMENTS = (
    ("CREATE", "VIEWGROUP"),
    ("ALTER", "VIEWGROUP"),
    ("DROP", "VIEWGROUP"),
    ("REFRESH", "VIEWGROUP"),
    ("SHOW", "VIEWGROUPS"),
    ("SHOW", "SESSIONS"),
    ("SHOW", "REFRESHES"),
)


class GroupParser(TokenReader):
    """Reads one statement about viewgroups."""

    def statement(self) -> st.Statement:
        if self.took("CREATE", "VIEWGROUP"):
            return self._create()
        if self.took("ALTER", "VIEWGROUP"):
            return self._alter()
        if self.took("DROP", "VIEWGROUP"):
            if_exists = self.took("IF", "EXISTS")
            return self.ended(st.DropViewgroup(self.name(), if_exists, self.took("CASCADE")))
        if self.took("REFRESH", "VIEWGROUP"):
            return self.ended(st.RefreshViewgroup(self.name(), self.took("FULL")))
        self.expect("SHOW")
        return self._show()

    def _create(self) -> st.CreateViewgroup:
        if_not_exists = self.took("IF", "NOT", "EXISTS")
        name = self._new_name()
        self.expect("REFRESH")
        schedule = read_schedule(self)
        return self.ended(st.CreateViewgroup(name, schedule, if_not_exists, self._comment()))

    def _comment(self) -> str | None:
        return self.string() if self.took("COMMENT") else None

    def _alter(self) -> st.AlterViewgroup | st.RenameViewgroup:
        name = self.name()
        if self.took("RENAME", "TO"):
            return self.ended(st.RenameViewgroup(name, self._new_name()))
        if not self.took("REFRESH"):
            raise self.wrong("REFRESH or RENAME TO")
        return self.ended(st.AlterViewgroup(name, read_schedule(self), self._comment()))

    def _show(self) -> st.Statement:
        if self.took("VIEWGROUPS"):
            return self.ended(st.ShowViewgroups())
        if self.took("SESSIONS"):
            return self.ended(st.ShowSessions())
        self.expect("REFRESHES")
        return self.ended(st.ShowRefreshes())

    def _new_name(self) -> str:
        where = self.here()
        name = self.name()
        if name.casefold() == BASE:
            raise ViewgroupExists(f"viewgroup {name} is built in: it is that of the base tables", where=where)
        return name


def read_schedule(reader: TokenReader) -> Schedule:
    """The schedule that stands behind REFRESH."""
    where = reader.here()
    try:
        if reader.took("EVERY"):
            where = reader.here()
            return every(reader.string())
        if reader.took("CRON"):
            where = reader.here()
            return Cron(reader.string(), reader.string() if reader.took("AT", "TIME", "ZONE") else "UTC")
        if reader.took("ON", "DEMAND"):
            return OnDemand()
    except BadSchedule as error:
        raise located(error, where) from None
    raise reader.wrong("POLICY, EVERY, CRON or ON DEMAND")
