"""Tests that run in several processes share one Spark: all that need it go to the same process, the rest by file.

What starts a Spark of its own is of the rest.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

NAMED = "matview/spark"
"""Where the processes that have collected the tests leave the names of those that need Spark."""


class OneSpark(LoadScopeScheduling):
    """The tests of a file go to the next process that is free, the largest first; those that need Spark go together."""

    @cached_property
    def _with_spark(self) -> frozenset[str]:
        assert self.config.cache is not None
        return frozenset(self.config.cache.get(NAMED, ()))

    def _split_scope(self, nodeid: str) -> str:
        return NAMED if nodeid in self._with_spark else nodeid.split("::")[0]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    if hasattr(session.config, "workerinput"):
        assert session.config.cache is not None
        session.config.cache.set(
            NAMED, [item.nodeid for item in session.items if "spark" in getattr(item, "fixturenames", ())]
        )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> OneSpark:
    return OneSpark(config, log)
