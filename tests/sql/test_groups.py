"""The SQL of viewgroups and policies: texts and what they ask for, and texts that ask for nothing that can be."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.groups.illegal import ILLEGAL
from tests.groups.retail import RETAILERS

from matview.errors import MatviewError
from matview.groups.assign import assigned
from matview.groups.graph import Maintain
from matview.groups.remedies import remedies
from matview.groups.rules import violations
from matview.groups.schedule import Cron, Every, OnDemand
from matview.sql import statements as st
from matview.sql.parse import parse_one

FIVE = Every(timedelta(minutes=5))
STATEMENTS: dict[str, st.Statement] = {
    "CREATE VIEWGROUP g REFRESH EVERY '5 minutes'": st.CreateViewgroup("g", FIVE),
    "create viewgroup if not exists `my group` refresh on demand": st.CreateViewgroup("my group", OnDemand(), True),
    "CREATE VIEWGROUP g REFRESH CRON '0 6 * * *'": st.CreateViewgroup("g", Cron("0 6 * * *", "UTC")),
    "CREATE VIEWGROUP g REFRESH CRON '0 6 * * MON-FRI' AT TIME ZONE 'Europe/Oslo' COMMENT 'at six'": (
        st.CreateViewgroup("g", Cron("0 6 * * MON-FRI", "Europe/Oslo"), comment="at six")
    ),
    "ALTER VIEWGROUP g REFRESH EVERY '1 hour 30 minutes'": st.AlterViewgroup("g", Every(timedelta(minutes=90))),
    "ALTER VIEWGROUP g RENAME TO h": st.RenameViewgroup("g", "h"),
    "DROP VIEWGROUP g": st.DropViewgroup("g"),
    "DROP VIEWGROUP IF EXISTS g CASCADE": st.DropViewgroup("g", True, True),
    "REFRESH VIEWGROUP g": st.RefreshViewgroup("g"),
    "REFRESH VIEWGROUP g FULL": st.RefreshViewgroup("g", True),
    "SHOW VIEWGROUPS": st.ShowViewgroups(),
    "SHOW SESSIONS": st.ShowSessions(),
    "SHOW REFRESHES;": st.ShowRefreshes(),
    "ALTER MATERIALIZED VIEW v SET MAINTAIN SNAPSHOT": st.SetView("v", Maintain.SNAPSHOT),
    "ALTER MATERIALIZED VIEW v SET VIEWGROUP g": st.SetView("v", group="g"),
    "ALTER MATERIALIZED VIEW v SET REFRESH POLICY INCREMENTAL STRICT": st.SetView("v", policy="strict"),
    "ALTER MATERIALIZED VIEW v SET REFRESH EVERY '5 minutes'": st.SetView("v", schedule=FIVE),
    "ALTER MATERIALIZED VIEW v SET MAINTAIN SNAPSHOT, SET VIEWGROUP g, SET REFRESH POLICY FULL": (
        st.SetView("v", Maintain.SNAPSHOT, "g", policy="full")
    ),
    "ALTER MATERIALIZED VIEW v SET VIEWGROUP g, MAINTAIN SNAPSHOT": st.SetView("v", Maintain.SNAPSHOT, "g"),
    "DROP TABLE t CASCADE": st.DropTable("t", False, True),
    "DROP TABLE IF EXISTS t": st.DropTable("t", True, False),
    "DROP MATERIALIZED VIEW v": st.DropView("v"),
    "DROP MATERIALIZED VIEW IF EXISTS v CASCADE": st.DropView("v", True, True),
}


@pytest.mark.parametrize("text", STATEMENTS)
def test_what_a_text_asks_for(text: str) -> None:
    assert parse_one(text) == STATEMENTS[text]


CLAUSES: dict[str, tuple[Maintain | None, str | None, object]] = {
    "": (None, None, None),
    "IN VIEWGROUP reports MAINTAIN SNAPSHOT": (Maintain.SNAPSHOT, "reports", None),
    "MAINTAIN SNAPSHOT IN VIEWGROUP reports": (Maintain.SNAPSHOT, "reports", None),
    "MAINTAIN IMMEDIATE": (Maintain.IMMEDIATE, None, None),
    "COMMENT 'x' MAINTAIN DEFERRED REFRESH POLICY FULL": (Maintain.DEFERRED, None, None),
    "REFRESH EVERY '5 minutes'": (None, None, FIVE),
    "TBLPROPERTIES ('matview.viewgroup' = 'reports', 'matview.maintain' = 'snapshot')": (
        Maintain.SNAPSHOT,
        "reports",
        None,
    ),
    "TBLPROPERTIES ('matview.maintain' = 'Immediate', 'owner' = 'us')": (Maintain.IMMEDIATE, None, None),
    "TBLPROPERTIES ('matview.refresh.schedule' = 'EVERY 5 minutes')": (None, None, FIVE),
    "TBLPROPERTIES ('matview.refresh.schedule' = 'CRON 0 6 * * * AT TIME ZONE Europe/Oslo') IN VIEWGROUP g": (
        None,
        "g",
        Cron("0 6 * * *", "Europe/Oslo"),
    ),
}


@pytest.mark.parametrize("clauses", CLAUSES)
def test_clauses_and_properties_of_a_view(clauses: str) -> None:
    made = parse_one(f"CREATE MATERIALIZED VIEW v {clauses} AS SELECT 1 AS x")
    assert isinstance(made, st.CreateView)
    assert (made.maintain, made.group, made.schedule) == CLAUSES[clauses]
    assert not any(name.startswith("matview.") for name in made.properties)
    explained = parse_one(f"EXPLAIN CREATE MATERIALIZED VIEW v {clauses} AS SELECT 1 AS x")
    assert isinstance(explained, st.ExplainView) and isinstance(explained.view, st.CreateView)
    assert (explained.view.maintain, explained.view.group, explained.view.schedule) == CLAUSES[clauses]


def test_what_was_heard_before_is_heard_still() -> None:
    made = parse_one(
        "CREATE MATERIALIZED VIEW IF NOT EXISTS v (a, b) REFRESH POLICY AUTO CLUSTER BY (a) COMMENT 'all'"
        " TBLPROPERTIES ('owner' = 'us') AS SELECT 1, 2"
    )
    assert isinstance(made, st.CreateView)
    assert (made.columns, made.policy, made.if_not_exists, made.cluster_by) == (("a", "b"), "auto", True, ("a",))
    assert made.properties == {"owner": "us", "comment": "all"}


VIEW = "CREATE MATERIALIZED VIEW v {} AS SELECT 1 AS x"
WRONG: dict[str, tuple[str, int]] = {
    "CREATE VIEWGROUP g": ("MV101", 18),
    "CREATE VIEWGROUP g REFRESH": ("MV101", 20),
    "CREATE VIEWGROUP g REFRESH SOMETIMES": ("MV101", 28),
    "CREATE VIEWGROUP g REFRESH EVERY 5 minutes": ("MV101", 34),
    "CREATE VIEWGROUP g REFRESH EVERY '0 minutes'": ("MV613", 34),
    "CREATE VIEWGROUP g REFRESH EVERY 'a while'": ("MV613", 34),
    "CREATE VIEWGROUP g REFRESH CRON '61 * * * *'": ("MV613", 33),
    "CREATE VIEWGROUP g REFRESH CRON '0 6 * * *' AT TIME ZONE 'Oslo'": ("MV613", 33),
    "CREATE VIEWGROUP g REFRESH ON DEMAND ON DEMAND": ("MV101", 38),
    "CREATE VIEWGROUP base REFRESH ON DEMAND": ("MV612", 18),
    "CREATE VIEWGROUP a.b REFRESH ON DEMAND": ("MV102", 19),
    "ALTER VIEWGROUP g": ("MV101", 17),
    "ALTER VIEWGROUP g RENAME TO Base": ("MV612", 29),
    "ALTER VIEWGROUP g SET REFRESH ON DEMAND": ("MV101", 19),
    "DROP VIEWGROUP g RESTRICT": ("MV101", 18),
    "REFRESH VIEWGROUP g FULLY": ("MV101", 21),
    "REFRESH TABLE t": ("MV102", 9),
    "SHOW VIEWGROUPS LIKE 'a'": ("MV101", 17),
    "DROP MATERIALIZED VIEW v RESTRICT": ("MV101", 26),
    "ALTER MATERIALIZED VIEW v SET": ("MV101", 27),
    "ALTER MATERIALIZED VIEW v SET COMMENT 'x'": ("MV101", 31),
    "ALTER MATERIALIZED VIEW v SET MAINTAIN ALWAYS": ("MV101", 40),
    "ALTER MATERIALIZED VIEW v SET VIEWGROUP g,": ("MV101", 42),
    "ALTER MATERIALIZED VIEW v SET VIEWGROUP g, SET VIEWGROUP g": ("MV101", 48),
    "ALTER MATERIALIZED VIEW v SET VIEWGROUP g, SET VIEWGROUP h": ("MV601", 48),
    "ALTER MATERIALIZED VIEW v SET VIEWGROUP g AS SELECT 1": ("MV101", 43),
    "ALTER MATERIALIZED VIEW v SET MAINTAIN DEFERRED, SET REFRESH ON DEMAND": ("MV107", 54),
    VIEW.format("IN VIEWGROUP a IN VIEWGROUP b"): ("MV601", 43),
    VIEW.format("IN VIEWGROUP a TBLPROPERTIES ('matview.viewgroup' = 'b')"): ("MV601", 58),
    VIEW.format("IN VIEWGROUP a TBLPROPERTIES ('matview.viewgroup' = 'A')"): ("MV101", 58),
    VIEW.format("MAINTAIN DEFERRED MAINTAIN DEFERRED"): ("MV101", 46),
    VIEW.format("REFRESH POLICY AUTO REFRESH POLICY FULL"): ("MV101", 48),
    VIEW.format("REFRESH POLICY AUTO TBLPROPERTIES ('matview.refresh.policy' = 'full')"): ("MV101", 63),
    VIEW.format("COMMENT 'a' COMMENT 'b'"): ("MV101", 40),
    VIEW.format("CLUSTER BY (x) CLUSTER BY (x)"): ("MV101", 43),
    VIEW.format("REFRESH EVERY '5 minutes' MAINTAIN IMMEDIATE"): ("MV107", 28),
    VIEW.format("TBLPROPERTIES ('matview.maintain' = 'often')"): ("MV101", 43),
    VIEW.format("TBLPROPERTIES ('matview.refresh.schedule' = 'often')"): ("MV613", 43),
    VIEW.format("TBLPROPERTIES ('matview.veiwgroup' = 'g')"): ("MV107", 43),
    VIEW.format("VIEWGROUP g"): ("MV101", 28),
    VIEW.format("IN VIEWGROUP 'g'"): ("MV101", 41),
    VIEW.format("IN reports"): ("MV101", 28),
    "ALTER MATERIALIZED VIEW v SET IN VIEWGROUP g": ("MV101", 31),
    "CREATE TABLE t (a INT) TBLPROPERTIES ('matview.viewgroup' = 'g')": ("MV609", 14),
    "CREATE TABLE t (a INT) TBLPROPERTIES ('matview.maintain' = 'immediate')": ("MV107", 14),
}


@pytest.mark.parametrize("text", WRONG)
def test_what_cannot_be_asked_for(text: str) -> None:
    with pytest.raises(MatviewError) as refused:
        parse_one(text)
    assert refused.value.where is not None
    assert (refused.value.code, refused.value.where.column) == WRONG[text]
    assert refused.value.help


@pytest.mark.conforms("C3")
@pytest.mark.parametrize("name", [*RETAILERS, *(name for name in ILLEGAL if name != "tables apart")])
def test_the_statements_of_remedies_are_statements(name: str) -> None:
    """But for the query of a view that is to be redefined, which only its owner can write."""
    graph = RETAILERS[name] if name in RETAILERS else ILLEGAL[name].graph
    made = assigned(graph)
    for remedy in remedies(made, violations(made)[0]):
        for text in remedy.sql:
            asked = parse_one(text.replace("SELECT ... FROM", "SELECT * FROM"))
            assert isinstance(asked, st.SetView | st.AlterView)
            assert asked.name in {edit.view for edit in remedy.edits}
