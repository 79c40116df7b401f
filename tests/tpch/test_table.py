"""The table of TPC-H views in the documents is what the code gives."""

from __future__ import annotations

from .table import DOCUMENT, queries, table, with_table


def test_every_query_is_a_view() -> None:
    assert len(queries()) == 22
    assert table().count("the view: ") == 22


def test_the_document_is_not_stale() -> None:
    """If it is: `python -m tests.tpch.table`."""
    text = DOCUMENT.read_text()
    assert with_table(text) == text
