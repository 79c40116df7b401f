"""The chain of sporting-goods stores of Example 2.1: its cities, its product lines, and what changes from day to day."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator
from dataclasses import dataclass

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

DAILY_SALES = (
    "CREATE TABLE DailySales (city STRING, state STRING, product_line STRING, date DATE, total_sales DECIMAL(14,2),"
    " PRIMARY KEY (city, state, product_line, date))"
)
CITY_TOTALS = "CREATE TABLE CityTotals (city STRING, state STRING, total_sales DECIMAL(18,2), PRIMARY KEY (city, state))"
SUM_BY_CITY = "SELECT city, state, CAST(sum(total_sales) AS DECIMAL(18,2)) AS total_sales FROM {DailySales} GROUP BY city, state"


@dataclass(frozen=True, slots=True)
class Change:
    """One statement of a maintenance transaction, and what it means to the chain."""

    meaning: str
    sql: str


def first_sales(seed: int) -> str:
    """Spark SQL: what every city has sold of every line on each of the first days."""
    days = f"SELECT explode(sequence({_date(FIRST_DAY)}, {_date(FIRST_DAY + dt.timedelta(DAYS - 1))})) AS date"
    return f"WITH s AS ({_city_lines()}), d AS ({days}) SELECT s.*, d.date, {_amount(seed)} AS total_sales FROM s CROSS JOIN d"


def first_totals() -> str:
    return f"INSERT INTO CityTotals {SUM_BY_CITY.format(DailySales='DailySales')}"


def maintenance(seed: int) -> Iterator[tuple[Change, ...]]:
    """The statements of one maintenance transaction after the other, without end."""
    chance = random.Random(seed)
    today = FIRST_DAY + dt.timedelta(DAYS)
    while True:
        yield (_sales_of(today, seed), _correction(today, chance), _withdrawal(today, chance), _totals())
        today += dt.timedelta(1)


def _sales_of(today: dt.date, seed: int) -> Change:
    sales = f"SELECT *, {_date(today)} AS date FROM ({_city_lines()})"
    rows = f"SELECT city, state, product_line, date, {_amount(seed)} AS total_sales FROM ({sales})"
    return Change(f"sales of {today:%b} {today.day}", f"INSERT INTO DailySales {rows}")


def _correction(today: dt.date, chance: random.Random) -> Change:
    """Late receipts: one day in three cities out of four gets its sales corrected."""
    day = today - dt.timedelta(chance.randint(1, 20))
    amount, part = f"{chance.randint(100, 99999) / 100:.2f}", chance.randint(0, 3)
    where = f"date = {_date(day)} AND pmod(hash(city, product_line), 4) <> {part}"
    return Change(
        f"late receipts of {day:%b} {day.day}", f"UPDATE DailySales SET total_sales = total_sales + {amount} WHERE {where}"
    )


def _withdrawal(today: dt.date, chance: random.Random) -> Change:
    """A recall: what one state has sold of one line in the last weeks is taken back."""
    line, state = chance.choice(LINES), chance.choice(sorted({state for _, state in CITIES}))
    since = today - dt.timedelta(chance.randint(7, 28))
    where = f"product_line = '{line}' AND state = '{state}' AND date >= {_date(since)}"
    return Change(f"{line} recalled in {state}", f"DELETE FROM DailySales WHERE {where}")


def _totals() -> Change:
    """CityTotals follows, in the same transaction."""
    sums = SUM_BY_CITY.format(DailySales="DailySales")
    matched = "WHEN MATCHED THEN UPDATE SET total_sales = n.total_sales"
    on = "t.city = n.city AND t.state = n.state"
    return Change("the totals by city", f"MERGE INTO CityTotals AS t USING ({sums}) AS n ON {on} {matched}")


def _city_lines() -> str:
    """Every city with every product line."""
    cities = ", ".join(f"('{city}', '{state}')" for city, state in CITIES)
    lines = ", ".join(f"('{line}')" for line in LINES)
    return f"SELECT * FROM (VALUES {cities}) AS c(city, state) CROSS JOIN (VALUES {lines}) AS l(product_line)"


def _amount(seed: int) -> str:
    """An amount that depends on the row and the seed alone."""
    cents = f"pmod(hash(city, state, product_line, date, {seed}), 1500000) + 5000"
    return f"CAST(({cents}) / 100 AS DECIMAL(14,2))"


def _date(day: dt.date) -> str:
    return f"DATE '{day.isoformat()}'"
