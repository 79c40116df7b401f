"""Work in the background steps back behind the readers of the same machine: Spark inherits its priority."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

NICE = 15
"""A thirtieth of the processors while readers want them all; all of them when they do not."""
AUTOGROUP = Path("/proc/self/autogroup")


def step_back(nice: int = NICE) -> None:
    """This process and those that it starts have at most that priority, 19 being the lowest.

    Linux weighs whole login sessions against one another first (autogroup): the niceness of a service, which has a
    session of its own, counts only if it is the session's as well.
    """
    if not hasattr(os, "nice"):
        return
    os.nice(max(0, nice - os.nice(0)))
    if os.getsid(0) == os.getpid():
        with suppress(OSError):
            AUTOGROUP.write_text(str(nice))
