"""Small disks that can be full. Only root can mount one."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small file system")
MOUNTED = 'mount -t tmpfs -o size=12m tmpfs "$1" && echo mounted && cat; umount --lazy "$1"'


@contextlib.contextmanager
def mounted(place: Path) -> Iterator[Path]:
    """A file system of its own, 12 MiB large, mounted by a process that outlives this one, and unmounts it then."""
    command, pipe = ["sh", "-c", MOUNTED, "sh", str(place)], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, start_new_session=True) as keeper:
        assert keeper.stdout is not None
        assert keeper.stdout.readline() == b"mounted\n"
        yield place
        keeper.communicate()
    assert keeper.returncode == 0


def fill(ballast: Path) -> None:
    """A file that takes all the room."""
    with contextlib.suppress(OSError), ballast.open("ab") as file:
        while True:
            file.write(b"x" * 4096)
            file.flush()
