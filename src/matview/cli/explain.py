"""`matview explain`: how a view is maintained, or would be."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from matview.cli.opened import open_here
from matview.cli.pieces import Piece
from matview.cli.report import UsageError, report_error
from matview.cli.texts import say
from matview.cli.where import HERE, Where
from matview.errors import MatviewError
from matview.sql import statements as st
from matview.sql.parse import parse_one


def explain(
    view: Annotated[str | None, Parameter(name="VIEW", help="A view that is there.")] = None,
    /,
    *,
    sql: Annotated[
        str | None, Parameter(help="A CREATE MATERIALIZED VIEW statement, which is explained and not run.")
    ] = None,
    where: Where = HERE,
) -> int:
    if (view is None) == (sql is None):
        raise UsageError("which view?", help='name one, or give --sql "CREATE MATERIALIZED VIEW ..."')
    text = sql or ""
    try:
        asked = _to_be(text) if view is None else view
        with open_here(where) as warehouse:
            say(warehouse.explain(asked))
    except MatviewError as error:
        report_error(error, None if sql is None else Piece(text, 1, 1, text, "<sql>", is_one_of_several=False))
        return 1
    return 0


def _to_be(text: str) -> st.CreateView:
    match parse_one(text):
        case st.CreateView() as view:
            return view
        case st.ExplainView(st.CreateView() as view):
            return view
    raise UsageError("--sql makes no materialized view", help="write CREATE MATERIALIZED VIEW name AS SELECT ...")
