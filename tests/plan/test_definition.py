"""What a view is stored as, and what is refused."""

import pytest
from tests.queries.tables import TABLES

from matview.errors import NotIncremental
from matview.plan.definition import refuse_if_whole
from matview.sql.lower import lower
from matview.sql.parse import parse_one
from matview.sql.statements import Query

TEXT = """SELECT city,
  sum(n) OVER (ORDER BY day) AS running
FROM visits"""


def test_a_window_over_everything_is_refused_where_it_begins() -> None:
    statement = parse_one(TEXT)
    assert isinstance(statement, Query)
    with pytest.raises(NotIncremental, match="PARTITION BY") as refused:
        refuse_if_whole(lower(statement.query, lambda table: TABLES[table.name]))
    assert refused.value.where is not None
    assert (refused.value.where.line, refused.value.where.column) == (2, 3)
