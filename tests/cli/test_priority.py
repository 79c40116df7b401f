"""`matview run` steps back behind readers."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from matview.cli.priority import AUTOGROUP

SHOW = "import os; from matview.cli.priority import step_back; {} print(os.nice(0))"


def niceness(code: str, *, own_session: bool = False) -> list[str]:
    command = [sys.executable, "-c", SHOW.format(code)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, start_new_session=own_session)
    return done.stdout.split()


def test_a_process_steps_back_and_never_forward() -> None:
    assert niceness("step_back(7);") == [str(max(7, os.nice(0)))]
    assert niceness("step_back(7); step_back(3);") == [str(max(7, os.nice(0)))]


@pytest.mark.skipif(not AUTOGROUP.exists(), reason="the kernel does not weigh sessions")
def test_a_service_steps_back_with_its_session() -> None:
    show = f"step_back(7); print(open({str(AUTOGROUP)!r}).read());"
    assert niceness(show, own_session=True)[-2] == "7"
    assert niceness(show)[:-1] == AUTOGROUP.read_text().split(), "nothing at all for a process outside of any session"
