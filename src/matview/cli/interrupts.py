"""Ctrl-C: Spark's jobs are cancelled, and what was under way ends in good order.

An interrupt must not meet the main thread while it talks to Java: the answer would stay unread, and the next question
would get it. So work is done in another thread, and Ctrl-C finds the main one waiting. There, too, Spark is started:
in the main thread PySpark would put in an answer to Ctrl-C of its own, which talks to Java at once.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

from matview.cli.texts import announce

T = TypeVar("T")
PAUSE = 0.3


class Worker:
    """A thread that does one thing after another; at its end, the process does not wait for it."""

    def __init__(self) -> None:
        self._wanted: SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._is_interrupted = False

    def run(self, work: Callable[[], T]) -> T:
        """What it gives. After Ctrl-C: KeyboardInterrupt as soon as it has broken off; if it ends all the same, that.

        Then what was to follow it is not begun. A second Ctrl-C does not wait.
        """
        if self._is_interrupted:
            raise KeyboardInterrupt
        if self._thread is None:
            self._thread = threading.Thread(target=self._go_on, name="matview-command", daemon=True)
            self._thread.start()
        answer: Future[T] = Future()
        try:
            self._wanted.put((work, answer))
            return answer.result()
        except KeyboardInterrupt:
            self._is_interrupted = True
            announce("breaking off …")
            return _broken_off(answer)

    def begin_anew(self) -> None:
        """What follows was asked for after the last Ctrl-C."""
        self._is_interrupted = False

    def _go_on(self) -> None:
        while True:
            work, answer = self._wanted.get()
            try:
                answer.set_result(work())
            except BaseException as error:  # whoever wants the answer raises it
                answer.set_exception(error)
            del work, answer  # and nobody else keeps it


def _broken_off(answer: Future[T]) -> T:
    """Jobs are cancelled again and again: work that has lost one may begin another before it gives up."""
    ended = threading.Event()
    answer.add_done_callback(lambda _: ended.set())
    while not ended.wait(PAUSE):
        threading.Thread(target=_cancel_jobs, daemon=True).start()  # another Ctrl-C may come
    if answer.exception() is None:
        return answer.result()
    raise KeyboardInterrupt


def _cancel_jobs() -> None:
    session = sys.modules.get("matview.spark.session")  # where it is not imported, no Spark runs
    with suppress(Exception):  # it is only on its way, or gone already
        if session is not None and (running := session.running()) is not None:
            running.sparkContext.cancelAllJobs()
