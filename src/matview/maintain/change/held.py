"""Rows that Spark keeps because they are computed once and used several times."""

from __future__ import annotations

from pyspark.sql import DataFrame


class Held:
    """Kept until they are let go, all together."""

    def __init__(self) -> None:
        self._rows: list[DataFrame] = []

    def hold(self, rows: DataFrame) -> DataFrame:
        self._rows.append(rows.persist())
        return self._rows[-1]

    def let_go(self) -> None:
        while self._rows:
            self._rows.pop().unpersist()
