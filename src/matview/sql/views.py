"""The statements about materialized views, which sqlglot does not know: a parser over its tokens.

CREATE MATERIALIZED VIEW [IF NOT EXISTS] name [(column, ...)] clause ... AS query
ALTER MATERIALIZED VIEW name AS query          DROP MATERIALIZED VIEW [IF EXISTS] name [CASCADE]
ALTER MATERIALIZED VIEW name SET setting [, SET setting ...]
REFRESH MATERIALIZED VIEW name [FULL]          SHOW MATERIALIZED VIEWS
EXPLAIN CREATE MATERIALIZED VIEW ...           EXPLAIN MATERIALIZED VIEW name

clause:  IN VIEWGROUP name | MAINTAIN ... | REFRESH ...
         CLUSTER BY (column, ...) | COMMENT 'text' | TBLPROPERTIES ('name' = 'value', ...)
setting: VIEWGROUP name | MAINTAIN IMMEDIATE | DEFERRED | SNAPSHOT
         REFRESH POLICY AUTO | INCREMENTAL [STRICT] | FULL       REFRESH schedule (see groups.py)
"""

from __future__ import annotations

import re

import sqlglot
from sqlglot import exp

from matview.errors import BadDefinition, SqlSyntaxError, UnsupportedStatement
from matview.sql import statements as st
from matview.sql.clauses import check_clauses
from matview.sql.groups import read_schedule
from matview.sql.pieces import DIALECT
from matview.sql.settings import MAINTAIN, POLICIES, ViewSettings
from matview.sql.tokens import TokenReader

_TABLE = re.compile(r"\A\s*TABLE\s+(?=[\w`])", re.IGNORECASE)
"""`TABLE t` is short for `SELECT * FROM t`, which is how it is kept."""

VIEW_STATEMENTS = (
    ("CREATE", "MATERIALIZED"),
    ("ALTER", "MATERIALIZED"),
    ("DROP", "MATERIALIZED"),
    ("REFRESH",),
    ("SHOW", "MATERIALIZED"),
    ("EXPLAIN", "CREATE", "MATERIALIZED"),
    ("EXPLAIN", "MATERIALIZED"),
)


class ViewParser(TokenReader):
    """Reads one statement about views."""

    def statement(self) -> st.Statement:
        if self.took("EXPLAIN"):
            return self._explain()
        if self.took("CREATE"):
            return self._create()
        if self.took("ALTER"):
            return self._alter()
        if self.took("DROP"):
            return self._drop()
        if self.took("REFRESH"):
            return self._refresh()
        self.expect("SHOW", "MATERIALIZED", "VIEWS")
        return self.ended(st.ShowViews())

    def _explain(self) -> st.ExplainView:
        if self.took("CREATE"):
            return st.ExplainView(self._create())
        self.expect("MATERIALIZED", "VIEW")
        return self.ended(st.ExplainView(self.name()))

    def _create(self) -> st.CreateView:
        self.expect("MATERIALIZED", "VIEW")
        if_not_exists = self.took("IF", "NOT", "EXISTS")
        name = self.name()
        columns = self.names() if self.stands("(") else ()
        said = ViewSettings()
        while not self.stands("AS"):
            self._clause(said)
        query, text = self._query()
        return said.view(name, query, text, columns, if_not_exists)

    def _alter(self) -> st.AlterView | st.SetView:
        self.expect("MATERIALIZED", "VIEW")
        name = self.name()
        if not self.stands("SET"):
            return st.AlterView(name, *self._query())
        said = ViewSettings()
        self.expect("SET")
        self._wanted_setting(said)
        while self.took(","):
            self.took("SET")
            self._wanted_setting(said)
        return self.ended(said.changes(name))

    def _drop(self) -> st.DropView:
        self.expect("MATERIALIZED", "VIEW")
        if_exists = self.took("IF", "EXISTS")
        return self.ended(st.DropView(self.name(), if_exists, self.took("CASCADE")))

    def _refresh(self) -> st.RefreshView:
        if not self.took("MATERIALIZED", "VIEW"):
            raise UnsupportedStatement(
                "Matview refreshes materialized views and viewgroups",
                where=self.here(),
                help="REFRESH MATERIALIZED VIEW name [FULL], or REFRESH VIEWGROUP name [FULL]",
            )
        return self.ended(st.RefreshView(self.name(), self.took("FULL")))

    def _clause(self, said: ViewSettings) -> None:
        where = self.here()
        if self.took("CLUSTER", "BY"):
            said.say("CLUSTER BY", self.names(), where)
        elif self.took("COMMENT"):
            said.say("COMMENT", self.string(), where)
        elif self.took("TBLPROPERTIES"):
            self._properties(said)
        elif self.took("IN", "VIEWGROUP"):
            said.say("VIEWGROUP", self.name(), where)
        elif not self._setting(said):
            raise self.wrong("REFRESH, IN VIEWGROUP, MAINTAIN, CLUSTER BY, COMMENT, TBLPROPERTIES or AS")

    def _setting(self, said: ViewSettings) -> bool:
        """A setting that stands here, if one does."""
        where = self.here()
        if self.took("REFRESH", "POLICY"):
            said.say("REFRESH POLICY", self.choice(POLICIES, "AUTO, INCREMENTAL, INCREMENTAL STRICT or FULL"), where)
        elif self.took("REFRESH"):
            said.say("REFRESH", read_schedule(self), where)
        elif self.took("MAINTAIN"):
            said.say("MAINTAIN", self.choice(MAINTAIN, "IMMEDIATE, DEFERRED or SNAPSHOT"), where)
        else:
            return False
        return True

    def _wanted_setting(self, said: ViewSettings) -> None:
        where = self.here()
        if self.took("VIEWGROUP"):
            said.say("VIEWGROUP", self.name(), where)
        elif not self._setting(said):
            raise self.wrong("MAINTAIN, VIEWGROUP or REFRESH")

    def _properties(self, said: ViewSettings) -> None:
        self.expect("(")
        while True:
            where = self.here()
            name = self.string()
            self.took("=")
            said.say_property(name, self.string(), where)
            if not self.took(","):
                break
        self.expect(")")

    def _query(self) -> tuple[exp.Expr, str]:
        """What stands behind AS, as a tree and as it was written."""
        if not self.stands("AS"):
            raise self.wrong("AS and a query")
        text = self._piece.after(self._piece.tokens[self._at])
        if not text.strip():
            raise SqlSyntaxError("a view needs a query after AS", where=self.here())
        text = _TABLE.sub("SELECT * FROM ", text, count=1)
        tree = sqlglot.parse_one(text, dialect=DIALECT)
        check_clauses(tree, self._source)
        if not isinstance(tree, exp.Query | exp.Values):
            raise BadDefinition("a view is made of a query", where=self.here(), help="write SELECT ... after AS")
        return tree, text
