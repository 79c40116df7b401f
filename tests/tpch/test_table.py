"""The table of TPC-H views in the documents is what the code gives."""

from __future__ import annotations

from .table import DOCUMENT, queries, with_table


def test_the_document_has_every_query_and_is_not_stale() -> None:
    """If it is stale: `python -m tests.tpch.table`."""
    assert len(queries()) == 22
    text = DOCUMENT.read_text()
    assert with_table(text) == text
    assert text.count("the view: ") == 22
