"""A table in slices: equal ranges of the numbers that its rows are known by, which need not have equally many rows."""

from __future__ import annotations

MOST_SLICES = 64


def bounds(least: int, greatest: int, rows: int) -> list[int]:
    """Where slices of about so many rows begin, and where the last one ends."""
    span = greatest - least + 1
    number = max(1, min(MOST_SLICES, -(-span // max(rows, 1))))
    return [least + span * n // number for n in range(number + 1)]


def share(count: int, slices: int) -> int:
    """How many of so many rows one slice has."""
    return -(-count // slices)
