"""Files under one root, in a local directory or an object store, by paths relative to that root."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any, cast

import pyarrow.parquet as pq
from pyarrow import fs

from matview.errors import StorageFailure

_GLOB = re.compile(r"([\\*?\[\]{}])")


class Files:
    """One root; `uri` is what Spark reads and writes, `delta_uri` what deltalake opens."""

    def __init__(self, root: str) -> None:
        if "://" in root:
            self._fs, self._base = fs.FileSystem.from_uri(root)
            self._prefix = root.split("://", 1)[0] + "://"
        else:
            self._fs, self._base, self._prefix = fs.LocalFileSystem(), str(Path(root).absolute()), ""
        self.root = root

    @property
    def is_local(self) -> bool:
        return not self._prefix

    def _full(self, path: str) -> str:
        return f"{self._base}/{path}" if path else self._base

    def uri(self, path: str = "") -> str:
        return self._prefix + self._full(path)

    def spark_uri(self, path: str) -> str:
        """As `uri`, with the characters that Spark takes for wildcards escaped."""
        return _GLOB.sub(r"\\\1", self.uri(path))

    def under(self, path: str) -> Files:
        return Files(self.uri(path))

    def exists(self, path: str = "") -> bool:
        return bool(self._fs.get_file_info(self._full(path)).type != fs.FileType.NotFound)

    def is_empty(self) -> bool:
        return not self.exists() or not self.list("", recursive=False)

    def make(self, path: str = "") -> None:
        self._fs.create_dir(self._full(path), recursive=True)

    def list(self, path: str, *, recursive: bool = True) -> list[tuple[str, int, float]]:
        """(path, size, modification time) of every file and, when not recursive, directory below `path`."""
        selector = fs.FileSelector(self._full(path), recursive=recursive, allow_not_found=True)
        found = self._fs.get_file_info(selector)
        skip = len(self._base) + 1
        return [
            (info.path[skip:], info.size or 0, info.mtime_ns / 1e9 if info.mtime_ns else 0.0)
            for info in found
            if not recursive or info.type == fs.FileType.File
        ]

    def delete(self, paths: Iterable[str]) -> None:
        """Removes files; one that is gone already is no error."""
        for path in paths:
            try:
                self._fs.delete_file(self._full(path))
            except FileNotFoundError:
                continue

    def delete_dir(self, path: str) -> None:
        try:
            self._fs.delete_dir(self._full(path))
        except FileNotFoundError:
            return

    def parquet(self, path: str) -> pq.FileMetaData:
        with cast("IO[bytes]", self._fs.open_input_file(self._full(path))) as file:
            return pq.read_metadata(file)

    def read_columns(self, paths: Iterable[str], columns: Sequence[str]) -> Sequence[Any]:
        """The named columns of Parquet files, as one Arrow table per file."""
        return [pq.read_table(self._full(path), filesystem=self._fs, columns=[*columns]) for path in paths]


def storage_failure(error: BaseException, doing: str) -> StorageFailure:
    """What the storage said, as our own error."""
    text = str(error)
    full = (isinstance(error, OSError) and error.errno == errno.ENOSPC) or "No space left on device" in text
    if full:
        return StorageFailure(f"{doing}: no space left on the device")
    return StorageFailure(f"{doing}: {text.splitlines()[0] if text else type(error).__name__}")
