"""A few things that take long to make and are asked for again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

__all__ = ["Remembered", "cached_property"]

if TYPE_CHECKING:
    from functools import cached_property  # noqa: TID251  to a type checker it is the same
else:

    class cached_property:  # noqa: N801  it stands in for that of functools
        """Made when it is first asked for, without a lock; of two who ask at once, both get what the first one kept.

        That of Python 3.11 has one lock for an attribute of *all* instances: two threads, each at work on a tree of its
        own, wait for each other for ever if one asks Join.fields for Project.fields while the other asks the reverse.
        """

        def __init__(self, make: Callable[[Any], Any]) -> None:
            self._make = make
            self.__doc__ = make.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            return instance.__dict__.setdefault(self._name, self._make(instance))


T = TypeVar("T")


class Remembered(Generic[T]):
    """The things asked for last, by key, for any number of threads; two who ask at once may both make one.

    What is not worth it, if somebody says so, is not kept.
    """

    def __init__(self, most: int, is_worth_it: Callable[[T], bool] = lambda _: True) -> None:
        self._most = most
        self._is_worth_it = is_worth_it
        self._lock = threading.Lock()
        self._things: OrderedDict[Hashable, T] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        with self._lock:
            if key in self._things:
                self._things.move_to_end(key)
                return self._things[key]
        made = make()
        if not self._is_worth_it(made):
            return made
        with self._lock:
            self._things[key] = made
            while len(self._things) > self._most:
                self._things.popitem(last=False)
        return made
