"""Statements that are understood and not yet run: refused, never passed over."""

from __future__ import annotations

from matview.errors import UnsupportedStatement
from matview.sql import statements as st

Unwired = st.GroupDefinition | st.RefreshViewgroup | st.ShowViewgroups | st.ShowSessions | st.ShowRefreshes
HELP = "views are refreshed on demand, with REFRESH MATERIALIZED VIEW"


def unwired(what: str) -> UnsupportedStatement:
    return UnsupportedStatement(f"{what}: not run yet", help=HELP)


def refuse_unwired(statement: st.Statement) -> None:
    """UnsupportedStatement for what nothing runs yet."""
    match statement:
        case st.ExplainView(st.CreateView() as view):
            refuse_unwired(view)
        case st.CreateView() if (statement.maintain, statement.group, statement.schedule) != (None, None, None):
            raise unwired(f"the viewgroup and the policy of {statement.name}")
        case st.DropTable(cascade=True) | st.DropView(cascade=True):
            raise unwired(f"DROP {statement.name} CASCADE")
        case _ if isinstance(statement, Unwired):
            raise unwired(type(statement).__name__)
