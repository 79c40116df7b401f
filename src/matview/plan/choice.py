"""Which strategy: the cheapest of those that apply, by estimates that earlier refreshes have corrected."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from matview.local.reach import MOST_CHANGED, is_led, may_be_computed
from matview.plan import strategies
from matview.plan.cost import ON_SPARK, ON_THE_DRIVER, REBUILD, REWRITE, Estimates, TableFacts
from matview.plan.definition import Part
from matview.plan.steps import Action, Rebuild, Step
from matview.remembered import Remembered

Policy = Literal["auto", "incremental", "strict", "full"]
LEAST_CORRECTION, GREATEST_CORRECTION = 0.2, 5.0
REMEMBERED = 5


class Past(Protocol):
    """An earlier refresh."""

    @property
    def strategy(self) -> str: ...
    @property
    def at_hand(self) -> bool: ...
    @property
    def estimated(self) -> float: ...
    @property
    def seconds(self) -> float: ...


@dataclass(frozen=True)
class Situation:
    """All that a choice depends on: the tables read, what the view holds, its policy, and earlier refreshes."""

    tables: Mapping[str, TableFacts]
    stored: TableFacts
    policy: Policy = "auto"
    past: Sequence[Past] = ()

    @property
    def changed(self) -> frozenset[str]:
        return frozenset(name for name, facts in self.tables.items() if facts.changed)

    @property
    def only_inserts(self) -> bool:
        return all(facts.only_inserts for facts in self.tables.values())


def with_remote(policy: Policy, *, remote: bool) -> Policy:
    """A view of tables that stay at their sources follows their changes where it can: anew, they are fetched whole."""
    return "incremental" if remote and policy == "auto" else policy


def choose(part: Part, situation: Situation, mode: str = "auto") -> Step:
    """The step to take: by the strategy that `mode` names, if that one applies, or else by the cheapest."""
    actions = _applicable(part, situation)
    if mode in actions:
        return _priced(part, mode, actions[mode], situation)
    options = candidates(part, situation)
    if situation.policy == "full":
        return options[-1]
    incremental = [step for step in options if step.strategy != "full"]
    if situation.policy in ("incremental", "strict") and incremental:
        options = incremental
    return min(options, key=lambda step: step.cost)


def candidates(part: Part, situation: Situation) -> list[Step]:
    """Every strategy that applies, with its cost; full is always there, and last."""
    return [_priced(part, name, action, situation) for name, action in _applicable(part, situation).items()]


def _applicable(part: Part, situation: Situation) -> dict[str, Action]:
    changed, only_inserts = situation.changed, situation.only_inserts
    updated = frozenset[str]().union(*(situation.tables[name].updated for name in changed))
    key = (id(part), changed, only_inserts, updated)
    return _KNOWN.get(key, lambda: (part, _actions(part, changed, only_inserts, updated)))[1]


_KNOWN: Remembered[tuple[Part, dict[str, Action]]] = Remembered(500)
"""Small transactions ask for the same again and again, of the same parts; one that is kept here stays the one it is."""


def _actions(part: Part, changed: frozenset[str], only_inserts: bool, updated: frozenset[str]) -> dict[str, Action]:
    found: dict[str, Action | None] = {}
    if changed and not part.is_opaque and part.has_net_changes:
        found["delta"] = strategies.delta(part, changed, only_inserts=only_inserts, updated=updated)
        found["affected"] = strategies.affected(part, changed)
    found["full"] = strategies.full(part)
    return {name: action for name, action in found.items() if action is not None}


def _priced(part: Part, strategy: str, action: Action, situation: Situation) -> Step:
    facts, stored = {**situation.tables, part.name: situation.stored}, situation.stored.rows
    step = Step(part, strategy, action)
    at_hand = _is_at_hand(step, situation)
    rates = ON_THE_DRIVER if at_hand else ON_SPARK
    estimates = Estimates(facts, rates)
    made = estimates.of(step.node)
    rows = made.rows
    if isinstance(action, Rebuild):
        rows = float(stored) if stored else rows
        written = REBUILD + rows * REWRITE
    else:
        written = rates.look_up + stored * rates.scan + rows * rates.write
    estimated = made.seconds + written
    priced = replace(step.over(estimates.arranged(step.node)), rows=rows, estimated=estimated, at_hand=at_hand)
    return replace(priced, cost=estimated * _correction(priced, situation.past))


def _is_at_hand(step: Step, situation: Situation) -> bool:
    """Few rows changed, which lead to all that is read, by operators that the driver computes."""
    facts = {**situation.tables, step.part.name: situation.stored}
    changed = sum(one.changed for one in situation.tables.values())
    few = not isinstance(step.action, Rebuild) and changed <= MOST_CHANGED
    return few and may_be_computed(step.node) and is_led(step.node, lambda name: facts[name].rows)


def _correction(step: Step, past: Sequence[Past]) -> float:
    """How far estimates were off, lately, where the step is to run: on the driver, or on Spark.

    What was not tried there is taken to be off as what was if that took longer, as all does on a slow machine; that it
    took less time says nothing of it.
    """
    known = [(p, p.seconds / p.estimated) for p in past if p.estimated > 0]
    there = [(p.strategy, ratio) for p, ratio in known if p.at_hand == step.at_hand][:REMEMBERED]
    own = [ratio for strategy, ratio in there if strategy == step.strategy]
    if own:
        found = statistics.geometric_mean([statistics.median(ratio for _, ratio in there), *own])
    else:
        found = max(1.0, statistics.median([ratio for _, ratio in known[:REMEMBERED]] or [1.0]))
    return min(GREATEST_CORRECTION, max(LEAST_CORRECTION, found))
