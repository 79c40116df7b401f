"""What is said of a table that is not there."""

from __future__ import annotations

import pytest

from matview.maintain.rounds.named import suggestion

MANY = [f"table_{number:02d}" for number in range(20)]
CASES = {
    "no tables": (["orders"], [], "there are no tables"),
    "a close name comes first": (["ordres"], ["items", "orders"], "there are orders, items;"),
    "in whatever case": (["ORDERS"], ["items", "Orders"], "there are Orders, items;"),
    "of many some": (["table_17x"], MANY, "there are table_17, "),
    "how many more": (["nothing"], MANY, "and 10 more;"),
}


@pytest.mark.parametrize("name", CASES)
def test_names_are_suggested(name: str) -> None:
    asked, there, said = CASES[name]
    assert said in suggestion(asked, there)
