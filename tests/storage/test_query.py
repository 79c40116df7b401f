"""What a table reference says besides its name: heard or refused, never dropped."""

from __future__ import annotations

import pytest
from sqlglot import exp, parse_one

from matview.errors import UnsupportedStatement
from matview.storage.query import Found
from matview.storage.text import query_text

EARLIER = [
    "SELECT * FROM t VERSION AS OF 1",
    "SELECT * FROM t FOR VERSION AS OF 1",
    "SELECT * FROM t TIMESTAMP AS OF '2026-01-01'",
    "SELECT * FROM t@v1",
    "SELECT * FROM t@20260101000000000",
    "SELECT 1 WHERE EXISTS (SELECT 1 FROM t VERSION AS OF 1 AS u)",
    "WITH c AS (SELECT * FROM t VERSION AS OF 1) SELECT * FROM c",
]
OTHERS = ["SELECT * FROM t WITH (NOLOCK)", "SELECT * FROM t WITH ORDINALITY"]


def not_asked(_: exp.Table) -> Found:
    raise AssertionError("the table was looked up")


@pytest.mark.parametrize("text", EARLIER + OTHERS)
def test_refused(text: str) -> None:
    with pytest.raises(UnsupportedStatement) as refused:
        query_text(parse_one(text, dialect="spark"), not_asked, 1, "spark")
    assert refused.value.where is not None
    assert ("open a session" in refused.value.help) == (text in EARLIER)
