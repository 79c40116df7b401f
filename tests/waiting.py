"""Waiting for what another thread or process does, without guessing how long that takes."""

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    """Returns as soon as the condition holds; fails if it does not within the time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:g} s"
        time.sleep(0.002)
