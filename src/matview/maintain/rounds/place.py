"""What a round works with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from matview.maintain.commit import Step
from matview.maintain.remote.connections import Connections
from matview.maintain.transaction import MaintenanceTransaction
from matview.storage.runtime import Runtime

Begin = Callable[[Step | None], MaintenanceTransaction]
"""Opens a maintenance transaction; what is given is called at each of its steps."""


def _nothing(_: str) -> None:
    return None


@dataclass(frozen=True)
class Place:
    """The warehouse, its connections to sources, a way to begin maintenance transactions; `step` hears of each step."""

    runtime: Runtime
    connections: Connections
    begin: Begin
    step: Step = _nothing
