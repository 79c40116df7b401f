"""What definitions would do to what is there: texts and the steps, or the problems, that come of them."""

from __future__ import annotations

import pytest
from tests.docs.test_viewgroups import SECTIONS, examples

from matview.errors import MatviewError
from matview.groups.check import ERRORS
from matview.plan.propose.inventory import Inventory, View
from matview.plan.propose.proposal import Proposal
from matview.plan.propose.propose import propose
from matview.sql import statements as st
from matview.sql.parse import parse

THERE = """
CREATE TABLE sales (id INT, city STRING, amount DECIMAL(12,2) NOT NULL, PRIMARY KEY (id)) CLUSTER BY (city);
CREATE TABLE visits (city STRING, n INTEGER);
CREATE VIEWGROUP reports REFRESH EVERY '5 minutes' COMMENT 'for the board';
CREATE MATERIALIZED VIEW by_city IN VIEWGROUP reports AS SELECT city, sum(amount) AS total FROM sales GROUP BY city;
CREATE MATERIALIZED VIEW large MAINTAIN DEFERRED AS SELECT id, city FROM sales WHERE amount > 1000;
CREATE MATERIALIZED VIEW top IN VIEWGROUP reports AS SELECT city FROM by_city WHERE total > 5
"""


def proposed(text: str, there: str = THERE) -> Proposal:
    before = propose(Inventory(), parse(there))
    assert before.is_legal, before.problems
    return propose(before.after, parse(text))


STEPS: dict[str, list[str]] = {
    "CREATE TABLE t (x INT)": ["create table t"],
    "CREATE VIEWGROUP g REFRESH ON DEMAND": ["create viewgroup g: ON DEMAND"],
    "create table SALES (ID integer, city string, Amount numeric(12, 2) not null, primary key (id)) "
    "cluster by (CITY)": ["unchanged table sales"],
    "CREATE TABLE IF NOT EXISTS visits (other INT)": ["unchanged table visits: kept as it is"],
    "CREATE VIEWGROUP reports REFRESH EVERY '300 seconds'": ["unchanged viewgroup reports"],
    "CREATE VIEWGROUP reports REFRESH ON DEMAND COMMENT 'for us'": [
        "change viewgroup reports: refresh EVERY '5 minutes', to be ON DEMAND; comment for the board, to be for us"
    ],
    "CREATE VIEWGROUP IF NOT EXISTS reports REFRESH ON DEMAND": ["unchanged viewgroup reports: kept as it is"],
    "CREATE MATERIALIZED VIEW large MAINTAIN DEFERRED AS "
    "select id , city -- as it was\n from sales where amount>1000": ["unchanged view large"],
    "CREATE MATERIALIZED VIEW large MAINTAIN IMMEDIATE REFRESH POLICY FULL AS "
    "SELECT id, city FROM sales WHERE amount > 1000": [
        "change view large: maintain deferred, to be immediate; refresh policy auto, to be full"
    ],
    "CREATE MATERIALIZED VIEW large MAINTAIN DEFERRED AS SELECT id FROM sales": [
        "change view large: another query; columns id, city, to be id"
    ],
    "CREATE MATERIALIZED VIEW large (id, town) MAINTAIN DEFERRED AS SELECT id, city FROM sales WHERE amount > 1000": [
        "change view large: columns id, city, to be id, town"
    ],
    "CREATE MATERIALIZED VIEW IF NOT EXISTS large AS SELECT 1 AS x": ["unchanged view large: kept as it is"],
    "CREATE MATERIALIZED VIEW by_city AS SELECT city, sum(amount) AS total FROM sales GROUP BY city;"
    "CREATE MATERIALIZED VIEW top IN VIEWGROUP by_city AS SELECT city FROM by_city WHERE total > 5": [
        "change view by_city: viewgroup reports, to be none",
        "change view top: viewgroup reports, to be by_city",
    ],
    "CREATE MATERIALIZED VIEW r AS SELECT id, rank() OVER (ORDER BY amount) AS place FROM sales": [
        "create view r: computed anew at each refresh, since `RANK()` over a window without PARTITION BY "
        "concerns every row at each change"
    ],
    "ALTER MATERIALIZED VIEW large SET MAINTAIN IMMEDIATE": ["change view large: maintain deferred, to be immediate"],
    "ALTER MATERIALIZED VIEW large SET MAINTAIN DEFERRED": ["unchanged view large"],
    "ALTER MATERIALIZED VIEW top AS SELECT total FROM by_city": [
        "change view top: another query; columns city, to be total"
    ],
    "ALTER MATERIALIZED VIEW top AS SELECT city FROM by_city WHERE total > 5": ["unchanged view top"],
    "ALTER VIEWGROUP reports REFRESH EVERY '5 minutes'": ["unchanged viewgroup reports"],
    "ALTER VIEWGROUP reports RENAME TO board": ["change viewgroup reports: to be called board"],
    "DROP MATERIALIZED VIEW top": ["drop view top"],
    "DROP MATERIALIZED VIEW IF EXISTS missing": ["unchanged view missing: it is not there"],
    "DROP TABLE IF EXISTS missing": ["unchanged table missing: it is not there"],
    "DROP VIEWGROUP IF EXISTS missing": ["unchanged viewgroup missing: it is not there"],
    "DROP TABLE sales CASCADE": [
        "drop view top: derived from sales",
        "drop view large: derived from sales",
        "drop view by_city: derived from sales",
        "drop table sales",
    ],
    "DROP VIEWGROUP reports CASCADE": [
        "drop view top: with viewgroup reports",
        "drop view by_city: with viewgroup reports",
        "drop viewgroup reports",
    ],
    "DROP MATERIALIZED VIEW large; CREATE MATERIALIZED VIEW large CLUSTER BY (id) AS SELECT id FROM sales": [
        "drop view large",
        "create view large",
    ],
    "CREATE MATERIALIZED VIEW b AS SELECT * FROM a; CREATE MATERIALIZED VIEW a AS SELECT * FROM t; "
    "CREATE TABLE t (x INT)": [
        "create table t",
        "create view a",
        "create view b",
    ],
    "": [],
}


@pytest.mark.parametrize("text", STEPS)
def test_what_would_be_done(text: str) -> None:
    found = proposed(text)
    assert [str(step) for step in found.steps] == STEPS[text]
    assert found.problems == ()
    idle = all(step.startswith("unchanged") for step in STEPS[text])
    assert found.is_idle == idle
    again = propose(found.after, parse(text)) if "DROP" not in text and "RENAME" not in text else None
    assert again is None or again.is_idle, "what is so already needs nothing done"


def test_nothing_is_forgotten_and_nothing_kept() -> None:
    """A CREATE says all of it: what it leaves out is no longer so."""
    found = proposed("CREATE MATERIALIZED VIEW by_city AS SELECT city, sum(amount) AS total FROM sales GROUP BY city")
    view = found.after.relation("by_city")
    assert isinstance(view, View) and view.group is None
    (statement,) = found.statements
    assert isinstance(statement, st.RestateView) and statement.group is None


def test_a_policy_that_asks_more_of_the_query_comes_after_it() -> None:
    text = "CREATE MATERIALIZED VIEW large MAINTAIN DEFERRED REFRESH POLICY {} AS SELECT id FROM sales"
    kinds = {
        policy: [type(s) for s in proposed(text.format(policy)).statements] for policy in ("FULL", "INCREMENTAL STRICT")
    }
    assert kinds == {"FULL": [st.RestateView, st.AlterView], "INCREMENTAL STRICT": [st.AlterView, st.RestateView]}


WRONG: dict[str, list[tuple[str, str]]] = {
    "SELECT 1": [("MV102", "only definitions can be planned")],
    "INSERT INTO visits VALUES ('Oslo', 1)": [("MV102", "only definitions can be planned")],
    "REFRESH VIEWGROUP reports": [("MV102", "only definitions can be planned")],
    "CREATE TABLE __t (x INT)": [("MV107", "reserved")],
    "CREATE TABLE visits (city STRING, n BIGINT, m INT, PRIMARY KEY (m))": [
        (
            "MV106",
            "there is a table 'visits' already, and it is another: column n is int, not bigint; no column m is there; "
            "the key is (), not (m)",
        )
    ],
    "CREATE TABLE visits (city STRING)": [("MV106", "a column n is there")],
    "CREATE TABLE visits (city STRING, n INT) CLUSTER BY (n)": [("MV106", "it is clustered by (), not by (n)")],
    "CREATE TABLE visits (city STRING, n INT) COMMENT 'x'": [("MV106", "its property 'comment' is none, not x")],
    "CREATE TABLE large (id INT)": [("MV106", "there is a view 'large' already")],
    "CREATE TABLE t (x INT); CREATE TABLE T (x INT)": [("MV106", "there is a table 't' already")],
    "CREATE VIEWGROUP g REFRESH ON DEMAND; CREATE VIEWGROUP g REFRESH ON DEMAND": [("MV612", "viewgroup g already")],
    "CREATE MATERIALIZED VIEW sales AS SELECT 1 AS x": [("MV106", "there is a table 'sales' already")],
    "CREATE MATERIALIZED VIEW v AS SELECT 1 AS x; CREATE MATERIALIZED VIEW v AS SELECT 2 AS x": [
        ("MV106", "there is a view 'v' already")
    ],
    "CREATE MATERIALIZED VIEW large CLUSTER BY (id) MAINTAIN DEFERRED AS "
    "SELECT id, city FROM sales WHERE amount > 1000": [("MV106", "it is clustered by (), not by (id)")],
    "CREATE MATERIALIZED VIEW v AS SELECT * FROM missing": [("MV103", "there is no table 'missing'")],
    "CREATE MATERIALIZED VIEW v AS SELECT * FROM other.sales": [("MV103", "there is no table 'other.sales'")],
    "CREATE MATERIALIZED VIEW v AS SELECT town FROM sales": [("MV104", "town")],
    "CREATE MATERIALIZED VIEW v AS SELECT city FROM w; CREATE MATERIALIZED VIEW w AS SELECT city AS town FROM sales": [
        ("MV104", "city")
    ],
    "CREATE MATERIALIZED VIEW v (a, b) AS SELECT city FROM sales": [
        ("MV107", "the view names 2 columns, its query gives 1")
    ],
    "CREATE MATERIALIZED VIEW v REFRESH POLICY INCREMENTAL STRICT AS SELECT id, rand() AS r FROM sales": [
        ("MV501", "not determined")
    ],
    "CREATE MATERIALIZED VIEW v AS SELECT * FROM v": [("MV610", "v reads v")],
    "CREATE MATERIALIZED VIEW v AS SELECT * FROM w; CREATE MATERIALIZED VIEW w AS SELECT * FROM v": [
        ("MV610", "views cannot read themselves")
    ],
    "ALTER MATERIALIZED VIEW top AS SELECT * FROM top": [("MV610", "top reads top")],
    "ALTER MATERIALIZED VIEW by_city AS SELECT city FROM top": [("MV102", "by_city is read by top")],
    "CREATE MATERIALIZED VIEW by_city IN VIEWGROUP reports AS SELECT city, 1 AS total FROM sales": [
        ("MV102", "by_city is read by top")
    ],
    "ALTER MATERIALIZED VIEW sales SET MAINTAIN DEFERRED": [("MV103", "sales is a table")],
    "ALTER MATERIALIZED VIEW missing SET MAINTAIN DEFERRED": [("MV103", "there is no materialized view 'missing'")],
    "ALTER MATERIALIZED VIEW large SET VIEWGROUP missing": [("MV611", "missing")],
    "ALTER VIEWGROUP missing REFRESH ON DEMAND": [("MV611", "there is no viewgroup missing")],
    "ALTER VIEWGROUP large REFRESH ON DEMAND": [("MV611", "it belongs to view large")],
    "CREATE VIEWGROUP g REFRESH ON DEMAND; ALTER VIEWGROUP g RENAME TO Reports": [
        ("MV612", "viewgroup Reports already")
    ],
    "DROP TABLE sales": [("MV102", "sales is read by")],
    "DROP TABLE large": [("MV102", "large is a materialized view")],
    "DROP TABLE missing": [("MV103", "there is no table 'missing'")],
    "DROP MATERIALIZED VIEW by_city": [("MV102", "by_city is read by top")],
    "DROP VIEWGROUP reports": [("MV614", "viewgroup reports has views: by_city, top")],
    "ALTER MATERIALIZED VIEW by_city SET MAINTAIN DEFERRED": [
        ("MV608", "snapshot view top reads deferred view by_city")
    ],
    "CREATE MATERIALIZED VIEW v AS SELECT * FROM large; "
    "CREATE MATERIALIZED VIEW w MAINTAIN IMMEDIATE AS SELECT * FROM top": [
        ("MV607", "immediate view w reads snapshot view top"),
        ("MV608", "snapshot view v reads deferred view large"),
    ],
    "CREATE TABLE t (x INT); CREATE MATERIALIZED VIEW v AS SELECT * FROM missing; DROP TABLE nothing": [
        ("MV103", "there is no table 'missing'"),
        ("MV103", "there is no table 'nothing'"),
    ],
}


@pytest.mark.parametrize("text", WRONG)
def test_all_that_is_wrong_is_told(text: str) -> None:
    found = proposed(text)
    errors = [problem.error for problem in found.problems]
    for code, what in WRONG[text]:
        assert any(error.code == code and what in error.what for error in errors), errors
    assert not found.is_legal
    with pytest.raises(MatviewError) as refused:
        found.require_legal()
    assert refused.value is errors[0]


@pytest.mark.conforms("C3")
@pytest.mark.parametrize("rule", [rule for rule in ERRORS if rule not in (1, 9)])
def test_the_rules_are_held_against_all_of_it(rule: int) -> None:
    """Rules 1 and 9 are refused when the text is read."""
    found = propose(Inventory(), parse(examples(SECTIONS[rule])))
    assert ERRORS[rule].code in {problem.error.code for problem in found.problems}
    assert found.assignment is not None, "where everything would be is told all the same"


def test_each_violation_has_its_remedies() -> None:
    found = propose(Inventory(), parse(examples(SECTIONS[8])))
    (problem,) = (problem for problem in found.problems if problem.error.code == "MV608")
    assert problem.error.help.count("\n") == 3, "Example 2.2 has three"


def test_a_problem_says_which_statement() -> None:
    found = proposed("CREATE TABLE t (x INT); DROP TABLE missing; DROP TABLE missing_too")
    assert [problem.statement for problem in found.problems] == [1, 2]
