"""Connections to sources: one that does not answer keeps nobody from the others."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

from tests.sources.sqlite.lab import SqliteLab
from tests.waiting import wait_until

from matview.catalog.source_records import SourceRecord
from matview.errors import MatviewError
from matview.maintain.remote.connections import Connections


def test_who_waits_for_a_connection_waits_alone(tmp_path: Path) -> None:
    lab, connections = SqliteLab(tmp_path / "till.db"), Connections()
    failed: list[MatviewError] = []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        deaf = SourceRecord(
            "1", "deaf", f"postgresql://user@127.0.0.1:{silent.getsockname()[1]}/shop?connect_timeout=20"
        )

        def ask() -> None:
            try:
                connections.of(deaf)
            except MatviewError as error:
                failed.append(error)

        asking = threading.Thread(target=ask)
        asking.start()
        caller, _ = silent.accept()
        quick = threading.Thread(target=lambda: connections.of(SourceRecord("2", "till", lab.url)), daemon=True)
        quick.start()
        wait_until(lambda: not quick.is_alive(), 5.0)
        caller.close()
    asking.join()
    assert len(failed) == 1
    connections.close()
