"""The retailer's demo, as short as it goes: the wish is refused, the legal assignment runs, views are audited."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from rich.console import Console
from tests.groups.retail import RETAILERS

import matview
from matview.demo.place import MARK
from matview.demo.retail.board import Board
from matview.demo.retail.main import Performance, audited, last_act, run
from matview.demo.retail.shop import Shop, definitions
from matview.errors import BadSetting
from matview.groups.graph import Graph, View
from matview.plan.propose.inventory import Inventory
from matview.plan.propose.propose import propose
from matview.sql.parse import parse


def shape(graph: Graph) -> dict[str, tuple[set[str], str]]:
    """What each view reads, and its policy; names without regard to how they are spelt."""
    plain = lambda name: name.replace("_", "").casefold()  # noqa: E731
    return {plain(view.name): ({plain(p) for p in view.parents}, view.maintain.value) for view in graph.views}


@pytest.mark.conforms("C18")
def test_it_is_example_1_1() -> None:
    wished = propose(Inventory(), parse(definitions("DEFERRED")))
    assert shape(wished.after.graph()) == shape(RETAILERS["two groups"])
    assert [problem.error.code for problem in wished.problems] == ["MV608"]
    assert wished.problems[0].error.help.count("\n") == 3, "the three remedies of Example 2.2"
    legal = propose(Inventory(), parse(definitions("IMMEDIATE")))
    assert legal.problems == ()
    assert len([node for node in legal.after.graph().nodes if isinstance(node, View)]) == 6


@pytest.mark.conforms("C18")
def test_from_the_wish_to_the_audit(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "wh"
    assert run(str(place), seconds=1.0) == 0
    said = capsys.readouterr().out
    assert "[MV608] snapshot view total_item_returns reads deferred view cust_returns (Rule 8)" in said
    assert "make cust_returns immediate: CREATE MATERIALIZED VIEW cust_returns MAINTAIN IMMEDIATE ..." in said
    assert "Nothing was made: there are 0 tables." in said
    assert "2 viewgroups, 6 views made" in said
    assert re.search(r"sale +\d+ sold or brought back", said)
    assert re.search(r"refresh +marketing in ", said) and re.search(r"refresh +daily in ", said)
    for view in ("cust_returns", "item_profits", "item_store_stock", "item_supp_sales", "large_sales"):
        assert re.search(rf"{view} .* 0 *$", said, re.MULTILINE), f"{view} does not differ"
    assert "Every view is what its query says" in said
    assert (place / MARK).exists()
    with matview.open(place, spark=spark) as warehouse:
        spoil(warehouse)
        console = Console(file=StringIO(), width=100, record=True)
        assert not last_act(console, warehouse, Performance(warehouse, Board(console, 1.0), Shop()))
        assert "DIFFERENT: large_sales" in console.export_text(), "the audit can fail"
        assert [one.view for one in audited(warehouse) if one.differing] == ["large_sales"]


def spoil(warehouse: matview.Warehouse) -> None:
    with warehouse.transaction() as tx:
        tx.tables["large_sales"].view = None  # so that it can be changed like a table
        tx.sql("UPDATE large_sales SET amount = amount + 1")


def test_it_needs_some_time() -> None:
    with pytest.raises(BadSetting):
        run("nowhere", seconds=0)
