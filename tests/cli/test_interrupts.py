"""Ctrl-C ends what is under way, in good order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from matview.cli import interrupts
from matview.cli.interrupts import Worker

HOURS = "aggregate(sequence(1, 4000000), 0L, (a, v) -> a + aggregate(sequence(1, 4000000), 0L, (b, w) -> b + w % 7))"
INTERRUPTIBLE = (  # whoever is started in the background is deaf to Ctrl-C, and so are those whom it starts
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from matview.cli import main; sys.exit(main())"
)


@pytest.fixture(autouse=True)
def not_deaf() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


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
    """And what was to follow it is not begun, unless it is asked for later."""
    cancelled, worker = threading.Event(), Worker()
    monkeypatch.setattr(interrupts, "_cancel_jobs", cancelled.set)
    interrupt_after(0.2)
    assert worker.run(lambda: cancelled.wait(20) and "committed") == "committed"
    with pytest.raises(KeyboardInterrupt):
        worker.run(lambda: pytest.fail("it was begun"))
    worker.begin_anew()
    assert worker.run(lambda: "begun") == "begun"


@pytest.mark.spark
@pytest.mark.parametrize(
    "statements",
    [
        pytest.param(f"SELECT 7 AS begun; SELECT {HOURS}", id="between two statements"),
        pytest.param(f"SELECT IF(id = 0, 7, {HOURS}) AS begun FROM range(0, 2, 1, 2)", id="within one"),
    ],
)
def test_a_query_is_broken_off(statements: str, tmp_path: Path) -> None:
    """As soon as its first row has been read; the second would take hours."""
    matview = [sys.executable, "-uc", INTERRUPTIBLE]
    subprocess.run([*matview, "init", str(tmp_path / "wh")], check=True, capture_output=True)
    command = [*matview, "sql", "-w", str(tmp_path / "wh"), "--format", "csv", statements]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0)
    try:
        assert running.stdout is not None
        assert [running.stdout.readline() for _ in range(2)] == ["begun\n", "7\n"]
        os.killpg(running.pid, signal.SIGINT)
        _, errors = running.communicate(timeout=60)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
    assert (running.returncode, "Traceback" in errors) == (130, False)
    assert "interrupted" in errors
