"""What work costs, in things that can be counted."""

from __future__ import annotations

from collections.abc import Callable

import matview


def jobs(warehouse: matview.Warehouse, work: Callable[[], object]) -> int:
    """How many Spark jobs it takes."""
    context = warehouse.spark.sparkContext
    context.setJobGroup("counted", "", False)
    before = len(context.statusTracker().getJobIdsForGroup("counted"))
    try:
        work()
    finally:
        after = len(context.statusTracker().getJobIdsForGroup("counted"))
        context.setJobGroup("", "", False)
    return after - before
