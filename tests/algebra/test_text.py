"""The printed form is stable, and says enough to read the expression from it again."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from sqlglot import exp

from matview.algebra.nodes import Node, Project, Scan, Stored, Values
from matview.algebra.scalars import column, number
from matview.algebra.schema import Field
from matview.algebra.text import text

from .fuzzing import EXAMPLES
from .reading import read, read_pairs
from .strategies import nodes

TEXTS = read_pairs("texts.txt")


@pytest.mark.parametrize("printed", [case[1] for case in TEXTS], ids=[case[0] for case in TEXTS])
def test_printed_as_read(printed: str) -> None:
    assert text(read(printed)) == printed


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(nodes())
def test_any_tree_can_be_read_again(node: Node) -> None:
    assert text(read(text(node))) == text(node)


def test_odd_names_stand_in_backquotes() -> None:
    scan = Scan("my table", ("a b", "c"), (Field("my table.a b"), Field("my table.c")))
    made = Project(scan, (("total (€)", exp.Sum(this=column("my table.a b"))), ("c", column("my table.c"))))
    assert text(made).splitlines() == [
        "Project [`total (€)` = SUM(`my table.a b`), c = `my table.c`]",
        "  Scan `my table` [`a b`, c]",
    ]


def test_columns_under_other_names_are_told_one_by_one() -> None:
    assert text(Scan("t", ("id", "a"), (Field("k"), Field("t.a")))) == "Scan t [id as k, a as t.a]"


def test_leaves() -> None:
    assert text(Stored("v", (Field("a"), Field("__count")))) == "Stored v [a, __count]"
    assert text(Values((Field("a"),), tuple((number(i),) for i in range(9)))) == "Values [a] of 9 rows"
