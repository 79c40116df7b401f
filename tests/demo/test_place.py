"""The demo replaces what a demo has made, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from matview.demo.place import DEFAULT, MARK, cleared, marked, shown
from matview.errors import BadSetting


def test_a_new_or_empty_directory_is_taken(tmp_path: Path) -> None:
    assert cleared(str(tmp_path / "new")) == tmp_path / "new"
    assert cleared(str(tmp_path)) == tmp_path


def test_without_a_path_it_goes_beside_you(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert cleared(None) == tmp_path / DEFAULT
    assert shown(tmp_path / DEFAULT) == DEFAULT
    assert shown(tmp_path.parent) == str(tmp_path.parent)


def test_an_earlier_demo_is_replaced(tmp_path: Path) -> None:
    with marked(tmp_path):
        (tmp_path / "tables").mkdir()
    cleared(str(tmp_path))
    assert not tmp_path.exists()


@pytest.mark.parametrize("names", [["thesis.txt"], ["catalog.sqlite", "tables"], [MARK, "tables", "thesis.txt"]])
def test_what_the_demo_has_not_made_is_left_alone(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(BadSetting, match="left alone"):
        cleared(str(tmp_path))
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(names)


def test_a_demo_that_is_running_is_left_alone(tmp_path: Path) -> None:
    with marked(tmp_path), pytest.raises(BadSetting, match="another demo is running"):
        cleared(str(tmp_path))
    assert (tmp_path / MARK).exists()


def test_a_file_is_no_place(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadSetting, match="no directory"):
        cleared(str(tmp_path / "file"))
