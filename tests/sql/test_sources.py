"""The statements about sources."""

from __future__ import annotations

import pytest

from matview.errors import BadDefinition, SqlSyntaxError
from matview.sql import statements as st
from matview.sql.parse import parse_one

UNDERSTOOD = {
    "CREATE SOURCE shop FROM 'sqlite:///a.db' TABLES (orders)": st.CreateSource(
        "shop", "sqlite:///a.db", {"orders": "orders"}
    ),
    "create source if not exists `my shop` from 'u' tables (sales.orders, Visits as seen, `a b`.`c``d`) prefix 'p_'": (
        st.CreateSource(
            "my shop",
            "u",
            {"sales.orders": "p_orders", "Visits": "seen", '"a b"."c`d"': "p_c`d"},
            if_not_exists=True,
        )
    ),
    "CREATE SOURCE s FROM 'u' TABLES (t) WITHOUT REPLICAS CONSISTENCY COMPLETE": st.CreateSource(
        "s", "u", {"t": "t"}, remote=frozenset({"t"}), mode="complete"
    ),
    "CREATE SOURCE s FROM 'u' TABLES (a, b REMOTE, x.c AS d REMOTE)": st.CreateSource(
        "s", "u", {"a": "a", "b": "b", "x.c": "d"}, remote=frozenset({"b", "x.c"})
    ),
    "CREATE SOURCE s FROM 'u' TABLES (t) CONSISTENCY STRONG": st.CreateSource("s", "u", {"t": "t"}),
    "DROP SOURCE shop": st.DropSource("shop"),
    "DROP SOURCE IF EXISTS shop CASCADE": st.DropSource("shop", if_exists=True, cascade=True),
    "REFRESH SOURCE shop": st.RefreshSource("shop"),
    "SHOW SOURCES": st.ShowSources(),
}
REFUSED = {
    "CREATE SOURCE shop TABLES (a)": "expected FROM",
    "CREATE SOURCE shop FROM 'u'": "expected TABLES",
    "CREATE SOURCE shop FROM 'u' TABLES ()": "expected a name",
    "CREATE SOURCE shop FROM 'u' TABLES (a) CONSISTENCY WEAK": "expected STRONG or COMPLETE",
    "CREATE SOURCE shop FROM 'u' TABLES (a) AND MORE": "expected the end",
    "DROP SOURCE": "expected a name",
    "SHOW SOURCES LIKE 'x'": "expected the end",
}


@pytest.mark.parametrize("text", UNDERSTOOD)
def test_understood(text: str) -> None:
    assert parse_one(text) == UNDERSTOOD[text]


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text: str) -> None:
    with pytest.raises(SqlSyntaxError, match=REFUSED[text]):
        parse_one(text)


def test_a_table_is_named_once() -> None:
    with pytest.raises(BadDefinition, match="orders is named twice"):
        parse_one("CREATE SOURCE s FROM 'u' TABLES (orders, orders AS again)")


def test_the_url_is_not_shown() -> None:
    assert "secret" not in repr(parse_one("CREATE SOURCE s FROM 'postgresql://me:secret@db/x' TABLES (t)"))
