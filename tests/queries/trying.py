"""Cases one after the other: which hold, which are refused, which fail; and failures as files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import duckdb

from matview.algebra.nodes import tables
from matview.errors import NotIncremental

from .cases import Broken, Loaded, Prepared, check_at_hand, check_change, check_narrowed, check_sites, check_text
from .generator import query
from .tables import TABLES, World, world

SEEDS = Path(__file__).parent / "seeds"
WORLDS = 8
"""In how many worlds each query is tried: to make its text into a change costs more than to run that."""


@dataclass(frozen=True)
class Failure:
    """A case in which a law is broken, or something goes wrong that should not."""

    seed: str
    law: str
    what: str
    sql: str
    world: World


@dataclass
class Tally:
    """What became of some cases."""

    queries: int = 0
    cases: int = 0
    moved: int = 0
    """Cases in which the result changed at all."""
    narrowed: int = 0
    """Queries whose change could be narrowed to what the changed rows meet."""
    at_hand: int = 0
    """Cases whose change could be computed on the driver."""
    asked: int = 0
    """Queries that sites got."""
    refused: Counter[str] = field(default_factory=Counter)
    """How many queries were refused, and why."""
    incomparable: int = 0
    """Queries whose own text DuckDB does not run."""
    crashed: int = 0
    """Queries over which DuckDB itself breaks down: there is nothing to compare with."""
    operators: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.queries += other.queries
        self.cases += other.cases
        self.moved += other.moved
        self.narrowed += other.narrowed
        self.at_hand += other.at_hand
        self.asked += other.asked
        self.refused.update(other.refused)
        self.incomparable += other.incomparable
        self.crashed += other.crashed
        self.operators.update(other.operators)
        self.failures.extend(other.failures)


class Trial:
    """Tries queries by their seeds, each in worlds of its own."""

    def __init__(self) -> None:
        self._loaded = Loaded()

    def run(self, seeds: Iterable[int]) -> Tally:
        tally = Tally()
        for seed in seeds:
            self._try(seed, tally)
        return tally

    def _try(self, seed: int, tally: Tally) -> None:
        prepared, tried = Prepared(query(seed)), 0
        tally.queries += 1
        try:
            tally.operators.update(prepared.operators())
            for tried in range(WORLDS):
                self._loaded.load(world(seed, tried), tables(prepared.lowered))
                if tried == 0:
                    tally.incomparable += not check_text(prepared, self._loaded)
                tally.moved += bool(check_change(prepared, self._loaded))
                tally.narrowed += tried == 0 and check_narrowed(prepared, self._loaded)
                tally.at_hand += check_at_hand(prepared, self._loaded)
                tally.asked += check_sites(prepared, self._loaded) if tried == 0 else 0
                tally.cases += 1
        except NotIncremental as refusal:
            tally.refused[refusal.what] += 1
        except duckdb.InternalException:
            tally.crashed += 1
            self._loaded = Loaded()
        except Exception as error:
            tally.failures.append(_failure(seed, prepared, tried, error))


def _failure(seed: int, prepared: Prepared, tried: int, error: Exception) -> Failure:
    law, what = told(error)
    given = world(seed, tried)
    if "lowered" in vars(prepared):
        given = given.only(prepared.changed)
    return Failure(str(seed), law, what, prepared.text, given)


def told(error: Exception) -> tuple[str, str]:
    """The law that is broken, or the kind of error; and what it says."""
    return (error.law if isinstance(error, Broken) else type(error).__name__), str(error)[:2000]


@lru_cache(8)
def _prepared(sql: str, changed: frozenset[str]) -> Prepared:
    return Prepared(sql, changed)


def failing(loaded: Loaded, sql: str, given: World) -> tuple[str, str] | None:
    """What is wrong with a case; None if nothing is."""
    try:
        prepared = _prepared(sql, frozenset(given.change))
        loaded.load(given)
        check_text(prepared, loaded)
        check_change(prepared, loaded)
        check_narrowed(prepared, loaded)
        check_at_hand(prepared, loaded)
        check_sites(prepared, loaded)
    except NotIncremental:
        return None
    except Exception as error:
        return told(error)
    return None


# files ----------------------------------------------------------------------------------------------------------------


def kept(failure: Failure) -> Path:
    """Stores a failure as a fixture that is tried ever after."""
    path = SEEDS / f"{failure.law.lower()}-{failure.seed}.json"
    made = {
        "seed": failure.seed,
        "law": failure.law,
        "what": failure.what,
        "sql": failure.sql,
        "before": {table: list(rows) for table, rows in failure.world.before.items() if rows},
        "change": dict(failure.world.change),
    }
    SEEDS.mkdir(exist_ok=True)
    path.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def read(path: Path) -> tuple[str, World]:
    """The query and the world of a fixture."""
    made: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    before = {table: [tuple(row) for row in made["before"].get(table, [])] for table in TABLES}
    change = {table: [(weight, tuple(row)) for weight, row in rows] for table, rows in made["change"].items()}
    return made["sql"], World(before, change)
