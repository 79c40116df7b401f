"""Names that are unique in a whole query, whatever their case."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, count


class Names:
    """The names that a lowering has given so far."""

    def __init__(self) -> None:
        self._taken: frozenset[str] = frozenset()
        self._prefixes: frozenset[str] = frozenset()

    def fresh(self, base: str) -> str:
        """`base`, or `base_2`, `base_3` ... where that is taken."""
        name = next(n for n in _candidates(base) if n.casefold() not in self._taken)
        self._taken |= {name.casefold()}
        return name

    def prefixed(self, base: str, columns: Iterable[str]) -> tuple[str, ...]:
        """`base.column` for each column, under a prefix that no other relation has."""
        columns = tuple(columns)
        prefix = next(p for p in _candidates(base) if self._is_free(p, columns))
        self._prefixes |= {prefix.casefold()}
        return tuple(self.fresh(f"{prefix}.{column}") for column in columns)

    def _is_free(self, prefix: str, columns: tuple[str, ...]) -> bool:
        folded = prefix.casefold()
        return folded not in self._prefixes and not any(f"{folded}.{c.casefold()}" in self._taken for c in columns)

    def saved(self) -> tuple[frozenset[str], frozenset[str]]:
        """What has been given until now, to come back to with `restore`."""
        return self._taken, self._prefixes

    def restore(self, saved: tuple[frozenset[str], frozenset[str]]) -> None:
        self._taken, self._prefixes = saved


def _candidates(base: str) -> Iterable[str]:
    return chain([base], (f"{base}_{n}" for n in count(2)))
