"""Where Matview keeps what it can make again: nothing here is ever needed for a right answer."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path


def cache_dir() -> Path:
    """A directory that we can write: MATVIEW_CACHE, the virtual environment's, the user's, else a temporary one."""
    for place in _places():
        try:
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(place, os.W_OK | os.X_OK):
            return place
    return Path(tempfile.mkdtemp(prefix="matview-"))


def _places() -> Iterator[Path]:
    if named := os.environ.get("MATVIEW_CACHE"):
        yield Path(named).absolute()
    if sys.prefix != sys.base_prefix:  # goes when the environment goes, as it should: it holds paths into it
        yield Path(sys.prefix) / ".cache" / "matview"
    try:
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "matview"
    except RuntimeError:  # a user without a home
        return
