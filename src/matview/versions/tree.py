"""The smallest tree of yes/no tests that tells the outcomes of a decision table apart.

A case is a tuple of answers; a test asks whether the answer at one place is a given one. Cases left out are free: the
tree may send them anywhere. That is what keeps the SQL made from a decision table short.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)
Case = tuple[Hashable, ...]


@dataclass(frozen=True, slots=True)
class Leaf(Generic[T]):
    outcome: T
    size: int = 0


@dataclass(frozen=True, slots=True)
class Branch(Generic[T]):
    """Is the answer at `place` this `answer`?"""

    place: int
    answer: Hashable
    yes: Leaf[T] | Branch[T]
    no: Leaf[T] | Branch[T]

    @property
    def size(self) -> int:
        return 1 + self.yes.size + self.no.size


Tree = Leaf[T] | Branch[T]


def smallest(outcomes: Mapping[Case, T]) -> Tree[T]:
    """The tree with the fewest branches that gives every case its outcome; of equals, the first found."""
    return _smallest(outcomes, frozenset(outcomes), {})


def _smallest(outcomes: Mapping[Case, T], cases: frozenset[Case], known: dict[frozenset[Case], Tree[T]]) -> Tree[T]:
    if cases not in known:
        distinct = {outcomes[case] for case in cases}
        if len(distinct) == 1:
            known[cases] = Leaf(distinct.pop())
        else:
            known[cases] = min(
                (
                    Branch(place, answer, _smallest(outcomes, yes, known), _smallest(outcomes, cases - yes, known))
                    for place, answer, yes in _tests(cases)
                ),
                key=lambda branch: branch.size,
            )
    return known[cases]


def _tests(cases: frozenset[Case]) -> Iterator[tuple[int, Hashable, frozenset[Case]]]:
    """Every test that splits the cases in two, in an order that does not depend on hashing."""
    for place in range(len(next(iter(cases)))):
        for answer in sorted({case[place] for case in cases}, key=str):
            yes = frozenset(case for case in cases if case[place] == answer)
            if yes != cases:
                yield place, answer, yes
