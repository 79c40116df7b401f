"""A source whose methods are its engine's functions, each over the one database."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from matview.sources.engine import Source

D = TypeVar("D")
P = ParamSpec("P")
T = TypeVar("T")


class DatabaseSource(Source, Generic[D]):
    """Connections are made where they are needed, and closed there."""

    database: D

    @abstractmethod
    def __repr__(self) -> str: ...

    def close(self) -> None:
        """Every task has closed its own connection."""


def of_database(function: Callable[Concatenate[D, P], T]) -> Callable[Concatenate[Any, P], T]:
    """The method that calls the function with the source's database."""

    def method(self: DatabaseSource[D], /, *args: P.args, **options: P.kwargs) -> T:
        return function(self.database, *args, **options)

    return method
