"""Separate executor processes: closures, paths and file listing have to be right, and a killed one does no harm."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .on_cluster import ROWS

SCRIPT = Path(__file__).with_name("on_cluster.py")


@pytest.mark.spark
def test_on_a_cluster_with_a_killed_executor(tmp_path: Path) -> None:
    environment = os.environ | {"MATVIEW_SPARK_MASTER": "local-cluster[2,1,1024]"}
    command = [sys.executable, str(SCRIPT), str(tmp_path / "wh")]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr[-2000:]
    said = json.loads(run.stdout.splitlines()[-1])
    assert said["master"] == "local-cluster[2,1,1024]"
    assert said["killed"] == 1
    assert said["now"] == [ROWS, ROWS // 2 * 16_000, ROWS]
    assert said["before"] == [ROWS, 0, ROWS]
    assert said["bag"] == [6, 9]
