"""The retailer: its tables, its six views with the policies that are wished for, and what happens in its stores."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

TABLES = """
CREATE TABLE customer (id INT, name STRING, city STRING, PRIMARY KEY (id));
CREATE TABLE supplier (id INT, name STRING, PRIMARY KEY (id));
CREATE TABLE supplies (supplier INT, store INT, item INT, category STRING, quantity INT, cost DECIMAL(12,2),
  PRIMARY KEY (supplier, store, item));
CREATE TABLE sales (id BIGINT, customer INT, item INT, store INT, kind STRING, quantity INT, amount DECIMAL(12,2),
  PRIMARY KEY (id));
"""
VIEWS = """
CREATE VIEWGROUP marketing REFRESH EVERY '{often}' COMMENT 'decision support, marketing and promotions';
CREATE VIEWGROUP daily REFRESH EVERY '{seldom}' COMMENT 'decision support, once a day';

CREATE MATERIALIZED VIEW cust_returns MAINTAIN {returns} AS
  SELECT s.id, s.item, s.store, s.amount, c.name FROM customer c JOIN sales s ON s.customer = c.id
  WHERE s.kind = 'return';
CREATE MATERIALIZED VIEW total_item_returns IN VIEWGROUP marketing MAINTAIN SNAPSHOT AS
  SELECT item, sum(amount) AS amount, count(*) AS n FROM cust_returns GROUP BY item;
CREATE MATERIALIZED VIEW large_sales IN VIEWGROUP marketing MAINTAIN SNAPSHOT AS
  SELECT s.id, c.name, s.amount FROM customer c JOIN sales s ON s.customer = c.id
  WHERE s.kind = 'sale' AND s.amount > 1000;
CREATE MATERIALIZED VIEW item_store_stock MAINTAIN IMMEDIATE AS
  SELECT p.item, p.store, p.supplied - s.sold AS stock
  FROM (SELECT item, store, sum(quantity) AS supplied FROM supplies GROUP BY item, store) p
  JOIN (SELECT item, store, sum(CASE WHEN kind = 'sale' THEN quantity ELSE -quantity END) AS sold
        FROM sales GROUP BY item, store) s ON s.item = p.item AND s.store = p.store;
CREATE MATERIALIZED VIEW item_supp_sales IN VIEWGROUP daily MAINTAIN SNAPSHOT AS
  SELECT s.item, u.id AS supplier, u.name, sum(s.amount) AS total, sum(s.quantity) AS n
  FROM sales s JOIN supplies p ON p.item = s.item AND p.store = s.store JOIN supplier u ON u.id = p.supplier
  WHERE s.kind = 'sale' GROUP BY s.item, u.id, u.name;
CREATE MATERIALIZED VIEW item_profits IN VIEWGROUP daily MAINTAIN SNAPSHOT AS
  SELECT p.category, sum(v.total - v.n * p.cost) AS profit
  FROM item_supp_sales v JOIN supplies p ON p.item = v.item AND p.supplier = v.supplier GROUP BY p.category;
"""
ITEMS, STORES, SUPPLIERS, CUSTOMERS, FIRST_SALES = 20, 3, 5, 200, 600


def definitions(returns: str, often: str = "8 seconds", seldom: str = "16 seconds") -> str:
    """Tables, viewgroups and views; `returns` is the policy of cust_returns."""
    return TABLES + VIEWS.format(returns=returns, often=often, seldom=seldom)


@dataclass
class Shop:
    """Makes up what is sold, brought back and supplied; the same at each run."""

    seed: int = 1997
    chance: random.Random = field(init=False)
    sold: int = 0

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)

    def first(self) -> tuple[str, ...]:
        """An INSERT for each table."""
        cities = ("Oslo", "Bergen", "Voss", "Molde")
        customers = ", ".join(f"({n}, 'Member {n}', '{self.chance.choice(cities)}')" for n in range(CUSTOMERS))
        suppliers = ", ".join(f"({n}, 'Supplier {n}')" for n in range(SUPPLIERS))
        supplies = ", ".join(
            f"({item % SUPPLIERS}, {store}, {item}, 'category {item % 5}', 100, {5 + item}.50)"
            for item in range(ITEMS)
            for store in range(STORES)
        )
        return (
            f"INSERT INTO customer VALUES {customers}",
            f"INSERT INTO supplier VALUES {suppliers}",
            f"INSERT INTO supplies VALUES {supplies}",
            self.sales(FIRST_SALES),
        )

    def sales(self, count: int) -> str:
        """So many sales and returns; one in eight is a return, one in thirty is above 1,000."""
        return "INSERT INTO sales VALUES " + ", ".join(self._any_sale() for _ in range(count))

    def of_each_kind(self) -> str:
        """A return and a large sale: something new for every view."""
        return f"INSERT INTO sales VALUES {self._sale('return', 1)}, {self._sale('sale', 60)}"

    def _any_sale(self) -> str:
        kind = "return" if self.chance.random() < 1 / 8 else "sale"
        quantity = 40 if self.chance.random() < 1 / 30 else self.chance.randint(1, 4)
        return self._sale(kind, quantity)

    def _sale(self, kind: str, quantity: int) -> str:
        self.sold += 1
        chance = self.chance
        item = chance.randrange(ITEMS)
        amount = quantity * (20 + item)
        customer, store = chance.randrange(CUSTOMERS), chance.randrange(STORES)
        return f"({self.sold}, {customer}, {item}, {store}, '{kind}', {quantity}, {amount})"

    def restocking(self, item: str, store: str) -> str:
        """A supplier brings more of an item."""
        return f"UPDATE supplies SET quantity = quantity + 100 WHERE item = {item} AND store = {store}"
