"""Ctrl-C ends what is under way, in good order."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from matview.cli import interrupts
from matview.cli.interrupts import Worker


def interrupt_after(seconds: float) -> None:
    threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGINT)).start()


def test_work_gives_what_it_gives() -> None:
    worker = Worker()
    assert [worker.run(lambda n=n: n + 1) for n in (1, 2)] == [2, 3]
    with pytest.raises(ValueError, match="wrong"):
        worker.run(lambda: (_ for _ in ()).throw(ValueError("wrong")))
    assert worker.run(lambda: threading.current_thread().name) == "matview-command"


def test_what_is_cancelled_has_been_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    cancelled = threading.Event()
    monkeypatch.setattr(interrupts, "_cancel_jobs", cancelled.set)

    def work() -> None:
        assert cancelled.wait(20)
        raise OSError("a job was cancelled")

    interrupt_after(0.2)
    with pytest.raises(KeyboardInterrupt):
        Worker().run(work)


def test_what_ends_all_the_same_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    cancelled = threading.Event()
    monkeypatch.setattr(interrupts, "_cancel_jobs", cancelled.set)
    interrupt_after(0.2)
    assert Worker().run(lambda: cancelled.wait(20) and "committed") == "committed"
