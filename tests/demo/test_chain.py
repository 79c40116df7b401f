"""The chain's data depends on the seed alone."""

from __future__ import annotations

import datetime as dt
from itertools import islice

from matview.demo.chain import CITIES, DAYS, FIRST_DAY, LINES, Insert, Statement, maintenance, sales
from matview.sql.parse import parse_one


def test_every_city_sells_every_line_every_day_once() -> None:
    table = sales(FIRST_DAY, DAYS, 1)
    keys = {tuple(row[name] for name in ("city", "state", "product_line", "date")) for row in table.to_pylist()}
    assert len(keys) == table.num_rows == len(CITIES) * len(LINES) * DAYS
    assert 20_000 <= table.num_rows <= 50_000


def test_the_same_seed_gives_the_same_evening() -> None:
    assert list(islice(maintenance(7), 5)) == list(islice(maintenance(7), 5))
    assert list(islice(maintenance(7), 5)) != list(islice(maintenance(8), 5))


def test_a_transaction_inserts_corrects_deletes_and_brings_the_totals_along() -> None:
    for day, changes in enumerate(islice(maintenance(1), 20)):
        new, *rest = changes
        assert isinstance(new, Insert)
        assert set(new.rows["date"].to_pylist()) == {FIRST_DAY + dt.timedelta(DAYS + day)}
        kinds = [type(parse_one(change.sql)).__name__ for change in rest if isinstance(change, Statement)]
        assert kinds == ["Update", "Delete", "Update"]


def test_names_need_no_escaping_in_sql() -> None:
    assert not any("'" in name or "{" in name for name in (*LINES, *(word for city in CITIES for word in city)))
