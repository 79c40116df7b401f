"""Which files can hold the rows that a statement brings, by their statistics alone."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from matview.algebra.schema import Column, Schema
from matview.maintain.change.given import Extent
from matview.storage.snapshot import DataFile, Level
from matview.versions.layout import Layout


def file(least: object, greatest: object) -> DataFile:
    known = {name: {"x": value} if value is not None else {} for name, value in (("lo", least), ("hi", greatest))}
    return DataFile("f", Level.BASE, 1, 1, known["lo"], known["hi"])


CASES = [
    ("int", (3, 5), (5, 9), True),
    ("int", (3, 5), (6, 9), False),
    ("int", (3, 5), (None, None), True),  # nothing known
    ("int", None, (6, 9), True),  # some value is null
    ("string", ("b", "c"), ("a", "b"), True),
    ("string", ("bb", "c"), ("a", "b"), True),  # a statistic may be cut short
    ("string", ("c", "d"), ("a", "b"), False),
    ("date", (dt.date(2024, 1, 2),) * 2, (dt.date(2024, 1, 1),) * 2, False),
    ("decimal(9,2)", (Decimal("1.50"),) * 2, (1.5, 1.5), True),
    ("double", (3.0, 5.0), (6.0, 9.0), True),  # NaN is in no range
    ("char(3)", ("c", "d"), ("a", "b"), True),  # padded when it is compared
    ("string collate UTF8_LCASE", ("C", "D"), ("a", "z"), True),
]


@pytest.mark.parametrize(("kind", "bounds", "stored", "may_meet"), CASES)
def test_a_file_is_left_out_only_if_it_cannot_matter(
    kind: str, bounds: tuple[object, object] | None, stored: tuple[object, object], may_meet: bool
) -> None:
    layout = Layout(Schema((Column("x", kind),)), 2)
    assert bool(Extent("x", 2, bounds).files(layout, [file(*stored)])) is may_meet
    assert not Extent("x", 0, None).files(layout, [file(*stored)])


def test_arrow_orders_as_python_does() -> None:
    """Bounds found by Arrow are compared in Python: both go by code points."""
    texts = ["a", "Z", "\u00e9", "\U0001f600", "\uffff", ""]
    found = pa.compute.min_max(pa.array(texts)).as_py()
    assert (found["min"], found["max"]) == (min(texts), max(texts))
