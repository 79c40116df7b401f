"""A table as seen by who only looks: its newest snapshot, and the bytes of its columns. Without Arrow, as `footers`."""

from __future__ import annotations

from collections import Counter
from typing import IO

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from matview.storage.faults import storage_failure
from matview.storage.footers import BadFooter, column_sizes
from matview.storage.snapshot import APPLICATION, DataFile, Snapshot, data_file_of


class Glance:
    """The directory of one table, of this machine or in an object store."""

    def __init__(self, uri: str) -> None:
        self._uri = uri

    def snapshot(self) -> Snapshot:
        """The newest one; of the statistics only the greatest values of our own columns."""
        try:
            table = DeltaTable(self._uri)
            actions = table.get_add_actions(flatten=True)
        except (DeltaError, TableNotFoundError, OSError) as error:
            raise storage_failure(error, f"reading the Delta log of {self._uri}") from error
        names = [name for name in actions.column_names if _is_wanted(name)]
        columns = [actions.column(name).to_pylist() for name in names]
        files = tuple(data_file_of(dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True))
        return Snapshot(table.version(), table.transaction_version(APPLICATION) or 0, files)

    def column_sizes(self, file: DataFile) -> Counter[str]:
        """Compressed bytes by column."""
        try:
            with self._open(file.path) as stream:
                return column_sizes(stream)
        except (BadFooter, OSError) as error:
            raise storage_failure(error, f"reading {self._uri}/{file.path}") from error

    def _open(self, path: str) -> IO[bytes]:
        if "://" not in self._uri:
            return open(f"{self._uri}/{path}", "rb")
        # Imported here for the sake of start-up time: only object stores need Arrow to be looked at.
        from matview.storage.files import Files

        return Files(self._uri).input(path)


def _is_wanted(name: str) -> bool:
    return not name.startswith(("min.", "max.", "null_count.")) or name.startswith(
        ("max.__vn", "max.__op", "max.__count")
    )
