"""A Java that starts fast and keeps what it has to say to itself."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from matview.demo.colleague import JAVA_OPTIONS, QUICK_JAVA


def log_file() -> Path:
    """Where Spark's own messages go; it is left behind if something goes wrong."""
    handle, name = tempfile.mkstemp(prefix="matview-demo-", suffix=".log")
    os.close(handle)
    return Path(name)


@contextmanager
def quiet_java(log: Path) -> Iterator[None]:
    """A Java process started meanwhile is quick to start, and writes to the log what it has to say of errors."""
    saved, said = os.dup(2), os.environ.get(JAVA_OPTIONS)
    os.environ.setdefault(JAVA_OPTIONS, QUICK_JAVA)
    with log.open("ab") as target:
        os.dup2(target.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        if said is None:
            del os.environ[JAVA_OPTIONS]
