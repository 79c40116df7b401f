"""Who is sent subqueries while rounds and refreshes go on, and how many rows go along."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from matview.sources.engine import Source
from matview.sources.mariadb import MariadbSource
from matview.sources.postgres import PostgresSource
from matview.sources.sqlite import SqliteSource

ENGINES: dict[type[Source], str] = {PostgresSource: "postgres", SqliteSource: "sqlite", MariadbSource: "mysql"}


class Asked(list[str]):
    """The engines that were sent a subquery, in order; `sent` is how many rows went along with each."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[int] = []

    def forget(self) -> None:
        self.clear()
        self.sent.clear()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    heard = Asked()

    def spied(engine: type[Source], name: str) -> Callable[..., Iterator[Any]]:
        real = engine.evaluate

        def evaluate(self: Source, query: Any, tables: Any, taken: Any, shipped: Any, besides: Any = ()) -> Any:
            heard.append(name)
            heard.sent.append(sum(table.num_rows for table in shipped.values()))
            return real(self, query, tables, taken, shipped, besides)

        return evaluate

    for engine, name in ENGINES.items():
        monkeypatch.setattr(engine, "evaluate", spied(engine, name))
    return heard
