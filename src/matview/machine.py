"""What the machine has, as far as this process may use it."""

from __future__ import annotations

import os
from pathlib import Path

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
USUAL = 8 * GIB
"""What is supposed where a machine does not say how much memory it has."""


def cores() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory() -> int:
    """Bytes of memory; those of the container, if it has fewer."""
    if not hasattr(os, "sysconf"):
        return USUAL
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        return total
    return min(total, int(limit)) if limit.isdigit() else total
