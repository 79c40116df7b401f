"""The extended schema: sections 3.1 and 5, Figures 3 and 7."""

import pytest

from matview.algebra.schema import Column, Schema
from matview.errors import BadSetting
from matview.versions.layout import Layout

DAILY_SALES = Schema(
    (
        Column("city", "string"),
        Column("state", "string"),
        Column("product_line", "string"),
        Column("date", "date"),
        Column("total_sales", "int"),
    ),
    key=("city", "state", "product_line", "date"),
)


@pytest.mark.conforms("Q2")
def test_a_summary_tables_group_by_columns_have_no_pre_update_copies() -> None:
    assert [name for name, _ in Layout(DAILY_SALES, 2).columns] == [
        "__rid",
        *("city", "state", "product_line", "date", "total_sales"),
        *("__vn1", "__op1", "__pre1_total_sales"),
    ]


@pytest.mark.conforms("Q2")
def test_figure_3_from_42_to_51_bytes() -> None:
    width = {"city": 20, "state": 2, "product_line": 12, "date": 4, "total_sales": 4}
    extended = width | {"__vn1": 4, "__op1": 1, "__pre1_total_sales": 4, "__rid": 0}  # the paper has no row identity
    assert sum(width[name] for name in DAILY_SALES.names) == 42
    assert sum(extended[name] for name, _ in Layout(DAILY_SALES, 2).columns) == 51


@pytest.mark.conforms("Q2")
@pytest.mark.conforms("Q12")
def test_n_versions_are_n_minus_1_slots() -> None:
    layout = Layout(DAILY_SALES, 4)
    assert [name for name, _ in layout.columns][6:] == [
        *("__vn1", "__op1", "__pre1_total_sales"),
        *("__vn2", "__op2", "__pre2_total_sales"),
        *("__vn3", "__op3", "__pre3_total_sales"),
    ]
    assert [kind for _, kind in layout.columns][6:] == ["bigint", "tinyint", "int"] * 3


@pytest.mark.conforms("Q2")
def test_in_a_bag_only_the_hidden_count_is_updatable() -> None:
    layout = Layout(Schema((Column("count", "string"), Column("a b", "int"))), 2)
    assert layout.columns == (
        ("__rid", "bigint"),
        ("__count", "bigint"),
        ("count", "string"),
        ("a b", "int"),
        ("__vn1", "bigint"),
        ("__op1", "tinyint"),
        ("__pre1_count", "bigint"),
    )
    assert layout.fixed == ("count", "a b")


def test_a_table_of_keys_alone_has_nothing_to_update() -> None:
    layout = Layout(Schema((Column("k", "int"),), key=("k",)), 3)
    assert layout.updatable == ()
    assert [name for name, _ in layout.columns] == ["__rid", "k", "__vn1", "__op1", "__vn2", "__op2"]


@pytest.mark.parametrize("versions", [1, 0, -3])
def test_fewer_than_two_versions_are_refused(versions: int) -> None:
    with pytest.raises(BadSetting):
        Layout(DAILY_SALES, versions)


def test_names_outside_the_layout_are_refused() -> None:
    layout = Layout(DAILY_SALES, 2)
    with pytest.raises(IndexError):
        layout.vn(2)
    with pytest.raises(IndexError):
        layout.op(0)
    with pytest.raises(KeyError):
        layout.pre(1, "city")
    with pytest.raises(KeyError):
        layout.type_of("__count")
