"""Command lines, run in this process: what they print, and their exit code.

Those that need Spark use the one that this process has: that of the fixture `spark`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import matview
from matview.cli import main
from matview.opening import open_catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCES = str(Path(matview.__file__).parents[1])

LOAD = """\
CREATE TABLE sales (id BIGINT, city STRING, amount DECIMAL(12,2), PRIMARY KEY (id));
INSERT INTO sales VALUES (1, 'Oslo', 12.50), (2, 'Bergen; Bryggen', 7), (3, NULL, 0.10), (4, 'Oslo', 3);
CREATE TABLE visits (city STRING, day DATE);
INSERT INTO visits VALUES ('Oslo', DATE'2026-01-01'), ('Oslo', DATE'2026-01-01'), ('Bergen', DATE'2026-01-02');
"""
CHANGE = """\
UPDATE sales SET amount = amount + 1 WHERE city = 'Oslo';
DELETE FROM sales WHERE id = 3;
DELETE FROM visits WHERE city = 'Bergen'
"""


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


Run = Callable[..., Ran]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """`run("status", "-w", "x")` is `matview status -w x`."""

    def go(*tokens: object) -> Ran:
        capsys.readouterr()
        code = main([str(token) for token in tokens])
        return Ran(code, *capsys.readouterr())

    return go


def python(script: str) -> list[str]:
    return [
        sys.executable,
        "-c",
        f"import sys; sys.path.insert(0, {SOURCES!r}); from matview.cli import main; {script}",
    ]


def in_child(script: str) -> str:
    """Runs a line of Python that has `main`, in a process of its own; what it prints."""
    return subprocess.run(python(script), check=True, stdout=subprocess.PIPE, text=True, env=os.environ).stdout


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current directory, and no settings in the environment."""
    for name in ("MATVIEW_WAREHOUSE", "MATVIEW_CATALOG", "MATVIEW_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def empty(elsewhere: Path, run: Run) -> str:
    """A warehouse without tables."""
    assert run("init", "shop.wh").code == 0
    return "shop.wh"


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark must not be started."""

    def refuse(_: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("matview.cli.opened.spark_session", refuse)


@dataclass(frozen=True)
class Shop:
    """A loaded warehouse, changed since; `before` is a session that reads the state before the changes."""

    path: str
    before: str


@pytest.fixture(scope="session")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """Made by command lines, once; tests only read it."""
    home = tmp_path_factory.mktemp("cli")
    path, load, change = str(home / "shop.wh"), home / "load.sql", home / "change.sql"
    load.write_text(LOAD)
    change.write_text(CHANGE)
    assert main(["init", path, "--versions", "4"]) == 0
    assert main(["sql", "-w", path, "--file", str(load)]) == 0
    with open_catalog(path) as catalog:
        before = catalog.sessions.open("test", "table", 3600).id
    assert main(["sql", "-w", path, "--file", str(change), "--atomic"]) == 0
    return Shop(path, before)
