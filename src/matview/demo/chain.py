"""The chain of sporting-goods stores of Example 2.1: its cities, its product lines, and what changes every day."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa

CITIES: tuple[tuple[str, str], ...] = (
    ("San Jose", "CA"), ("Berkeley", "CA"), ("Novato", "CA"), ("Fresno", "CA"), ("San Diego", "CA"),
    ("Sacramento", "CA"), ("Portland", "OR"), ("Eugene", "OR"), ("Salem", "OR"), ("Seattle", "WA"),
    ("Spokane", "WA"), ("Tacoma", "WA"), ("Reno", "NV"), ("Las Vegas", "NV"), ("Phoenix", "AZ"),
    ("Tucson", "AZ"), ("Denver", "CO"), ("Boulder", "CO"), ("Austin", "TX"), ("Houston", "TX"),
    ("El Paso", "TX"), ("Chicago", "IL"), ("Peoria", "IL"), ("Boston", "MA"), ("Worcester", "MA"),
    ("Albany", "NY"), ("Buffalo", "NY"), ("Rochester", "NY"), ("Miami", "FL"), ("Tampa", "FL"),
    ("Atlanta", "GA"), ("Savannah", "GA"), ("Portland", "ME"), ("Bangor", "ME"), ("Omaha", "NE"), ("Lincoln", "NE"),
)  # fmt: skip
LINES: tuple[str, ...] = (
    "golf equip", "racquetball", "rollerblades", "tennis", "skiing", "camping",
    "cycling", "running", "swimming", "fishing", "climbing", "soccer",
)  # fmt: skip
FIRST_DAY = dt.date(1996, 8, 16)
DAYS = 60

DAILY_SALES = """CREATE TABLE DailySales (
    city STRING, state STRING, product_line STRING, date DATE, total_sales DECIMAL(14,2),
    PRIMARY KEY (city, state, product_line, date))"""
CITY_TOTALS = """CREATE TABLE CityTotals (
    city STRING, state STRING, total_sales DECIMAL(24,2), PRIMARY KEY (city, state))"""
SUM_BY_CITY = "SELECT city, state, sum(total_sales) AS total_sales FROM {DailySales} GROUP BY city, state"


@dataclass(frozen=True, slots=True)
class Insert:
    """New rows, and what they mean to the chain."""

    meaning: str
    table: str
    rows: pa.Table


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of SQL, and what it means to the chain."""

    meaning: str
    sql: str


Change = Insert | Statement


def sales(first: dt.date, days: int, seed: int) -> pa.Table:
    """What every city sells of every line on each of some days; it depends on the day and the seed alone."""
    rows = [(*where, line, first + dt.timedelta(day)) for day in range(days) for where in CITIES for line in LINES]
    city, state, line, date = zip(*rows, strict=True)
    chance = random.Random(f"{seed} {first}")
    amounts = [Decimal(chance.randint(5_000, 1_500_000)).scaleb(-2) for _ in rows]
    columns = {"city": city, "state": state, "product_line": line, "date": date}
    return pa.table(columns).append_column("total_sales", pa.array(amounts, pa.decimal128(14, 2)))


def first_totals() -> str:
    return f"INSERT INTO CityTotals {SUM_BY_CITY.format(DailySales='DailySales')}"


def maintenance(seed: int) -> Iterator[tuple[Change, ...]]:
    """The statements of one maintenance transaction after the other, without end."""
    chance = random.Random(seed)
    today = FIRST_DAY + dt.timedelta(DAYS)
    while True:
        yield (_sales_of(today, seed), _correction(today, chance), _withdrawal(today, chance), _totals())
        today += dt.timedelta(1)


def _sales_of(today: dt.date, seed: int) -> Insert:
    return Insert(f"sales of {today:%b} {today.day}", "DailySales", sales(today, 1, seed))


def _correction(today: dt.date, chance: random.Random) -> Statement:
    """Late receipts: three quarters of one day's sales are corrected."""
    day = today - dt.timedelta(chance.randint(1, 20))
    amount, part = f"{chance.randint(100, 99999) / 100:.2f}", chance.randint(0, 3)
    where = f"date = {_date(day)} AND pmod(hash(city, product_line), 4) <> {part}"
    update = f"UPDATE DailySales SET total_sales = total_sales + {amount} WHERE {where}"
    return Statement(f"late receipts of {day:%b} {day.day}", update)


def _withdrawal(today: dt.date, chance: random.Random) -> Statement:
    """A recall: what one state has sold of one line in the last weeks is taken back."""
    line, state = chance.choice(LINES), chance.choice(sorted({state for _, state in CITIES}))
    since = today - dt.timedelta(chance.randint(7, 28))
    where = f"product_line = '{line}' AND state = '{state}' AND date >= {_date(since)}"
    return Statement(f"{line} recalled in {state}", f"DELETE FROM DailySales WHERE {where}")


def _totals() -> Statement:
    """CityTotals follows, in the same transaction."""
    total = "SELECT sum(d.total_sales) FROM DailySales AS d WHERE d.city = t.city AND d.state = t.state"
    return Statement("the totals by city", f"UPDATE CityTotals AS t SET total_sales = ({total})")


def _date(day: dt.date) -> str:
    return f"DATE '{day.isoformat()}'"
