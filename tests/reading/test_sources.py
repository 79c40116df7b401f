"""What waits at sources: asked of all at once, with what this process knows, and not for long."""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from matview.catalog import Catalog, url_of_file
from matview.catalog.source_records import SourceRecord
from matview.reading import sources
from matview.reading.sources import asked_anew, sources_of


def test_those_who_do_not_answer_are_waited_for_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "PATIENCE", 0.5)
    with ExitStack() as stack:
        catalog = stack.enter_context(Catalog.create(url_of_file(tmp_path / "catalog.db"), versions=2))
        for number in range(8):
            silent = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            url = f"postgresql://user@127.0.0.1:{silent.getsockname()[1]}/shop"
            catalog.sources.add(SourceRecord(str(number), f"deaf {number}", url))
        began = time.monotonic()
        found = sources_of(catalog, asked_anew)
        assert time.monotonic() - began < 3.0
    assert [status.error for status in found] == ["no answer within 0.5 s"] * 8
