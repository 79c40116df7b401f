"""The demo itself, played as short as it goes: it shows what it claims, and its check can fail."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from matview.catalog.catalog import Catalog
from matview.demo.analyst import Habit
from matview.demo.main import WITHOUT_REWRITE, Mode, Played, Script, curtain, play, run
from matview.demo.maintainer import Pace
from matview.demo.place import MARK
from matview.errors import BadSetting

QUICK = Pace(gap=0.2, statement=0.0, half=0.3)
ANA, BEN = Habit("Ana", drills=2, think=0.1, seed=1), Habit("Ben", drills=3, think=0.3, long_every=2, seed=2)


def short(path: Path, mode: Mode) -> Script:
    return Script(str(path), 1.0, mode, 2, 1997, QUICK, (ANA, BEN), ())


def played(script: Script) -> tuple[Played, int, str]:
    console = Console(file=StringIO(), width=100, record=True)
    done = play(script, console)
    return done, curtain(script, done, console), console.export_text()


def test_with_the_rewrite_nothing_contradicts(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "wh"
    assert run(str(place), seconds=1.0) == 0
    said = capsys.readouterr().out
    assert "Cleo         opens a session at version" in said
    assert "commits version 4" in said
    assert re.search(r"waits +│ +0 ", said)
    assert re.search(r"inconsistencies +│ +0 ", said)
    assert re.search(r"storage overhead +│ +\d+\.\d% │ of DailySales", said)
    assert "CONTRADICTION" not in said
    assert f"matview status -w {place}" in said
    assert (place / MARK).exists()
    with Catalog.open(f"sqlite:///{place}/catalog.sqlite") as catalog:
        assert catalog.version().current_vn >= 4
        assert not catalog.version().maintenance_active
        assert catalog.sessions.count_live() == 0


def test_without_the_rewrite_the_check_fails(spark: SparkSession, tmp_path: Path) -> None:
    done, code, said = played(short(tmp_path / "wh", WITHOUT_REWRITE))
    figures = done.story.figures
    assert figures.transactions >= 2
    assert figures.inconsistencies > 0
    assert figures.failures == ()
    assert "CONTRADICTION" in said
    assert "WITHOUT THE REWRITE" in said
    assert code == 0


def test_what_is_there_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(BadSetting, match="left alone"):
        run(str(tmp_path), seconds=1.0)
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.txt"]
