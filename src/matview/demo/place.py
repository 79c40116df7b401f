"""Where the demo's warehouse goes: a new directory, or one that an earlier demo has made and that is not in use."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from matview.errors import BadSetting
from matview.opening import MARKER

DEFAULT = "demo-warehouse"
ELSEWHERE = "name another place: `matview demo DIR`"
MARK = "MADE-BY-MATVIEW-DEMO"
OURS = (MARK, MARKER, "catalog.sqlite", "catalog.sqlite-wal", "catalog.sqlite-shm", "tables")
TEXT = "`matview demo` made this warehouse, and will replace it when it is run here again.\n"


def cleared(path: str | None) -> Path:
    """The directory, empty or not yet there; BadSetting, and nothing is touched, if it holds somebody else's things."""
    place = Path(path or DEFAULT).resolve()
    if place.is_dir() and any(place.iterdir()):
        _refuse_if_not_ours(place)
        shutil.rmtree(place)
    elif place.exists() and not place.is_dir():
        raise BadSetting(f"{place} is no directory", help=ELSEWHERE)
    return place


def _refuse_if_not_ours(place: Path) -> None:
    names = {entry.name for entry in place.iterdir()}
    if MARK not in names or not names <= set(OURS):
        raise BadSetting(f"{place} holds something that the demo has not made, and is left alone", help=ELSEWHERE)
    with (place / MARK).open(encoding="utf-8") as mark:
        try:
            fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BadSetting(f"another demo is running in {place}", help=ELSEWHERE) from None


@contextmanager
def marked(place: Path) -> Iterator[None]:
    """Signs the warehouse as the demo's own; while this lasts, no other demo takes the place."""
    with (place / MARK).open("w", encoding="utf-8") as mark:
        fcntl.flock(mark, fcntl.LOCK_EX)
        mark.write(TEXT)
        mark.flush()
        yield


def shown(place: Path) -> str:
    """As short as it can be said from here."""
    relative = os.path.relpath(place)
    return str(place) if relative.startswith("..") else relative
