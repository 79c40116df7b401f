"""Files under one root, in a local directory or an object store, by paths relative to that root."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from matview.storage.faults import storage_failure

_GLOB = re.compile(r"([\\*?\[\]{}])")


class Files:
    """One root; `uri` is what Spark writes and deltalake opens, `spark_uri` what Spark reads."""

    def __init__(self, root: str) -> None:
        if "://" in root:
            self._fs, self._base = fs.FileSystem.from_uri(root)
            self._prefix = root.split("://", 1)[0] + "://"
        else:
            self._fs, self._base, self._prefix = fs.LocalFileSystem(), str(Path(root).absolute()), ""
        self.root = root

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
        with translated_storage(f"looking for {self.uri(path)}"):
            return bool(self._fs.get_file_info(self._full(path)).type != fs.FileType.NotFound)

    def names(self, path: str = "") -> list[str]:
        """What stands directly below `path`; nothing where there is no such directory."""
        return [found.rsplit("/", 1)[-1] for found, _, _ in self.list(path, recursive=False)]

    def make(self, path: str = "") -> None:
        with translated_storage(f"making {self.uri(path)}"):
            self._fs.create_dir(self._full(path), recursive=True)

    def read_text(self, path: str) -> str | None:
        """A small file; None where there is none, or nothing in it."""
        with translated_storage(f"reading {self.uri(path)}"):
            try:
                with self.input(path) as file:
                    return file.read().decode("utf-8") or None
            except FileNotFoundError:
                return None

    def write_text(self, path: str, text: str) -> None:
        """A small file, anew; OSError is for the caller to judge."""
        with self._output(path) as file:
            file.write(text.encode("utf-8"))

    def list(self, path: str, *, recursive: bool = True) -> list[tuple[str, int, float]]:
        """(path, size, modification time) of every file and, when not recursive, directory below `path`."""
        selector = fs.FileSelector(self._full(path), recursive=recursive, allow_not_found=True)
        with translated_storage(f"listing {self.uri(path)}"):
            found = self._fs.get_file_info(selector)
        skip = len(self._base) + 1
        return [
            (info.path[skip:], info.size or 0, info.mtime_ns / 1e9 if info.mtime_ns else 0.0)
            for info in found
            if not recursive or info.type == fs.FileType.File
        ]

    def delete(self, paths: Iterable[str]) -> int:
        """Removes files, and says how many were there; one that is gone already is no error."""
        return sum(self._deleted(path) for path in paths)

    def _deleted(self, path: str) -> bool:
        with translated_storage(f"removing {self.uri(path)}"):
            try:
                self._fs.delete_file(self._full(path))
            except FileNotFoundError:
                return False
            return True

    def move(self, path: str, other: Files, target: str) -> None:
        """A file to another root of the same storage."""
        other.make(target.rpartition("/")[0])
        with translated_storage(f"moving {self.uri(path)}"):
            self._fs.move(self._full(path), other._full(target))

    def delete_dir(self, path: str) -> None:
        with translated_storage(f"removing {self.uri(path)}"), suppress(FileNotFoundError):
            self._fs.delete_dir(self._full(path))

    def parquet(self, path: str) -> pq.FileMetaData:
        """The footer of a Parquet file."""
        with translated_storage(f"reading {self.uri(path)}"), self.input(path) as file:
            return pq.read_metadata(file)

    def read_columns(self, paths: Iterable[str], columns: Sequence[str]) -> Sequence[Any]:
        """The named columns of Parquet files, as one Arrow table per file."""
        with translated_storage(f"reading files of {self.uri()}"):
            return [pq.read_table(self._full(path), filesystem=self._fs, columns=[*columns]) for path in paths]

    def read(self, path: str, columns: Sequence[str]) -> pa.Table:
        """Those of the named columns that a Parquet file has."""
        with translated_storage(f"reading {self.uri(path)}"), self.input(path) as stream:
            file = pq.ParquetFile(stream)
            there = set(file.schema_arrow.names)
            return file.read([name for name in columns if name in there])

    @contextmanager
    def output(self, path: str) -> Iterator[IO[bytes]]:
        """A new file, in a directory that is made if need be."""
        self.make(path.rpartition("/")[0])
        with translated_storage(f"writing {self.uri(path)}"), self._output(path) as stream:
            yield stream

    def _output(self, path: str) -> IO[bytes]:
        return cast("IO[bytes]", self._fs.open_output_stream(self._full(path)))

    def input(self, path: str) -> IO[bytes]:
        """A file to read; OSError is for the caller to judge."""
        return cast("IO[bytes]", self._fs.open_input_file(self._full(path)))


@contextmanager
def translated_storage(doing: str) -> Iterator[None]:
    """Raises what the storage raises inside as an error of our own."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise storage_failure(error, doing) from error
