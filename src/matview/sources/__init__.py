"""Autonomous sources (paper M): capture, the first state, subqueries in state old; one engine, one package."""

from __future__ import annotations

from matview.errors import BadSourceUrl
from matview.sources.engine import Source
from matview.sources.urls import SourceUrl

DIALECTS = {"postgresql": "postgres", "sqlite": "sqlite", "mariadb": "mysql"}


def dialect_of(url: str) -> str:
    """The name of a source's SQL in sqlglot; nothing is connected to."""
    return DIALECTS[SourceUrl.parse(url).engine]


def connect(url: str) -> Source:
    """The source at that URL, which is asked whether it answers. A driver is imported when it is used."""
    address = SourceUrl.parse(url)
    match address.engine:
        case "postgresql":
            from matview.sources.postgres import PostgresSource

            return PostgresSource(address)
        case "sqlite":
            from matview.sources.sqlite import SqliteSource

            return SqliteSource(address)
        case "mariadb":
            from matview.sources.mariadb import MariadbSource

            return MariadbSource(address)
    raise BadSourceUrl(f"there is no engine for {address.stored!r}")
