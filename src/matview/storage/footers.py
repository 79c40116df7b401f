"""How many bytes each column of a Parquet file takes: read from its footer, in Thrift's compact protocol.

FileMetaData(4: row groups) -> RowGroup(1: columns) -> ColumnChunk(3: metadata) -> (3: path, 7: compressed bytes)

For who only looks: Arrow, which reads footers too, takes 0.2 s to import.
"""

from __future__ import annotations

import os
import struct
from collections import Counter
from typing import IO, Any

MAGIC = b"PAR1"
TAIL = 8
GUESS = 65_536
"""So much of a file's end is read first; most footers are shorter."""

_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12


class BadFooter(ValueError):
    """No Parquet file, or one cut off."""


def column_sizes(file: IO[bytes]) -> Counter[str]:
    """Compressed bytes by top-level column."""
    try:
        metadata = _Compact(_footer(file)).record()
        chunks = [chunk[3] for group in metadata[4] for chunk in group[1]]
        sizes: Counter[str] = Counter()
        for chunk in chunks:
            sizes[chunk[3][0].decode("utf-8")] += chunk[7]
    except (IndexError, KeyError, TypeError, struct.error) as error:
        raise BadFooter("the footer of the Parquet file cannot be read") from error
    return sizes


def _footer(file: IO[bytes]) -> bytes:
    size = file.seek(0, os.SEEK_END)
    end = _end(file, size, GUESS)
    if end[-4:] != MAGIC:
        raise BadFooter("this is no Parquet file")
    wanted = int.from_bytes(end[-TAIL:-4], "little") + TAIL
    return (end if wanted <= len(end) else _end(file, size, wanted))[-wanted:-TAIL]


def _end(file: IO[bytes], size: int, length: int) -> bytes:
    file.seek(max(0, size - length))
    return file.read()


class _Compact:
    """Reads values one after the other; a record is a dictionary by field number."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def record(self) -> dict[int, Any]:
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._signed()
            kind = head & 15
            fields[number] = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind)
        return fields

    def _value(self, kind: int) -> Any:
        if kind == _STRUCT:
            return self.record()
        if kind == _BINARY:
            return self._bytes(self._number())
        if kind in (_LIST, _SET):
            return self._list()
        if kind == _MAP:
            return self._map()
        if kind == _DOUBLE:
            return struct.unpack("<d", self._bytes(8))[0]
        return self._byte() if kind in (_TRUE, _FALSE, _BYTE) else self._signed()

    def _list(self) -> list[Any]:
        head = self._byte()
        length = head >> 4 if head >> 4 < 15 else self._number()
        return [self._value(head & 15) for _ in range(length)]

    def _map(self) -> dict[Any, Any]:
        length = self._number()
        kinds = self._byte() if length else 0
        return {self._value(kinds >> 4): self._value(kinds & 15) for _ in range(length)}

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _bytes(self, length: int) -> bytes:
        self._at += length
        return self._data[self._at - length : self._at]

    def _number(self) -> int:
        found = shift = 0
        while True:
            byte = self._byte()
            found |= (byte & 127) << shift
            if byte < 128:
                return found
            shift += 7

    def _signed(self) -> int:
        number = self._number()
        return (number >> 1) ^ -(number & 1)
