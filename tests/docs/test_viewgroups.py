"""The examples of viewgroups.md as graphs: each section's example is refused by its rule, the first one is legal."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from matview.errors import MatviewError
from matview.groups.check import ERRORS, checked
from matview.groups.edits import altered
from matview.groups.graph import BaseTable, Graph, Group, Maintain, View
from matview.sql import statements as st
from matview.sql.parse import parse
from matview.versions.references import table_references

PAGE = (Path(__file__).parents[2] / "docs/reference/viewgroups.md").read_text()
SECTIONS = {int(s[0]): s for s in re.split(r"^### Rule ", PAGE, flags=re.MULTILINE)[1:]}


def examples(text: str) -> str:
    return "\n".join(re.findall(r"^```(?:text|sql)\n(.*?)^```", text, re.DOTALL | re.MULTILINE))


def graph_of(text: str) -> Graph:
    graph = Graph(())
    for statement in parse(text):
        match statement:
            case st.CreateViewgroup(name, schedule):
                graph = replace(graph, groups=(*graph.groups, Group(name, schedule)))
            case st.CreateTable(name):
                graph = graph.with_node(BaseTable(name))
            case st.CreateView():
                graph = graph.with_node(view_of(statement))
            case st.SetView(name, maintain, group, schedule):
                view = graph[name]
                assert isinstance(view, View)
                graph = graph.with_node(altered(view, maintain, group, schedule))
            case _:
                raise AssertionError(statement)
    return graph


def view_of(statement: st.CreateView) -> View:
    reads = tuple(reference.name for reference in table_references(statement.query))
    declared = () if statement.group is None else (statement.group,)
    return View(statement.name, reads, statement.maintain or Maintain.SNAPSHOT, declared, statement.schedule)


def test_the_first_example_is_legal() -> None:
    made = checked(graph_of(examples(PAGE.split("## Refreshing")[0])))
    assert made.group_of == {"sales": "base", "by_city": "reports", "large": "nightly"}


def test_every_rule_has_a_section() -> None:
    assert {number: section.split(": ")[1].split("\n")[0] for number, section in SECTIONS.items()} == {
        number: f"{kind.code}, {kind.__name__}" for number, kind in ERRORS.items()
    }


@pytest.mark.parametrize("rule", ERRORS)
def test_each_example_is_refused_by_its_rule(rule: int) -> None:
    with pytest.raises(ERRORS[rule]) as refused:
        checked(graph_of(examples(SECTIONS[rule])))
    assert f"[{refused.value.code}]" in str(refused.value)


def test_the_error_shown_is_the_error() -> None:
    """The last view is refused; the others are there."""
    text = examples(SECTIONS[8])
    before, _, _ = text.rpartition("CREATE MATERIALIZED VIEW")
    with pytest.raises(MatviewError) as refused:
        checked(graph_of(text), graph_of(before))
    assert f"```\n{refused.value}\n```" in PAGE
