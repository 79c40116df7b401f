"""A name that is no materialized view: what it is, and what was meant."""

import pytest

from matview.maintain.named import unknown_view

VIEWS = ("by_city", "By_Day", "top")


@pytest.mark.parametrize(
    ("name", "views", "is_table", "what", "help"),
    [
        ("by_citi", VIEWS, False, "there is no materialized view 'by_citi'", "did you mean by_city?"),
        ("BY_DAYS", VIEWS, False, "there is no materialized view 'BY_DAYS'", "did you mean By_Day?"),
        ("by_cay", VIEWS, False, "there is no materialized view 'by_cay'", "did you mean By_Day or by_city?"),
        ("nothing", VIEWS, False, "there is no materialized view 'nothing'", "there are: By_Day, by_city, top"),
        ("x", (), False, "there is no materialized view 'x'", "there are no views; CREATE MATERIALIZED VIEW makes one"),
        ("sales", VIEWS, True, "sales is a table, not a materialized view", "there are: By_Day, by_city, top"),
    ],
)
def test_what_is_said(name: str, views: tuple[str, ...], is_table: bool, what: str, help: str) -> None:
    error = unknown_view(name, views, is_table=is_table)
    assert (error.what, error.help) == (what, help)


def test_a_viewgroup_would_have_done() -> None:
    error = unknown_view("reporst", VIEWS, is_table=False, groups=["reports"])
    assert error.what == "there is no materialized view or viewgroup 'reporst'"
    assert error.help == "did you mean reports?"
