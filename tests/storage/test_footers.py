"""The bytes of each column, as Arrow tells them; what is no Parquet file is said to be none."""

from __future__ import annotations

import io
from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from matview.storage.footers import BadFooter, column_sizes

MANY = 400
TABLES: dict[str, Any] = {
    "plain": {"id": [1, 2, 3], "city": ["Oslo", None, "Bergen"], "ok": [True, False, None]},
    "nested": {
        "list": [[1, 2], []],
        "struct": [{"a": 1, "b": "x"}, None],
        "map": pa.array([[("k", 1.5)], []], pa.map_(pa.string(), pa.float64())),
    },
    "empty": {"id": pa.array([], pa.int64())},
    "wide": {f"column {number}": [str(number) * 50] for number in range(MANY)},
    "names": {"ünïcode": [1], "a.b": [2]},
}


def written(name: str, **options: Any) -> io.BytesIO:
    file = io.BytesIO()
    table = pa.table(TABLES[name])
    pq.write_table(table.replace_schema_metadata({"some": "text" * 100}), file, **options)
    return file


def as_arrow_tells(file: io.BytesIO, columns: list[str]) -> Counter[str]:
    footer, sizes = pq.read_metadata(file), Counter[str]()
    for group in range(footer.num_row_groups):
        for index in range(footer.num_columns):
            chunk = footer.row_group(group).column(index)
            path = chunk.path_in_schema
            sizes[max((c for c in columns if f"{path}.".startswith(f"{c}.")), key=len)] += chunk.total_compressed_size
    return sizes


@pytest.mark.parametrize("options", [{}, {"row_group_size": 1, "compression": "zstd", "version": "2.6"}], ids=str)
@pytest.mark.parametrize("name", TABLES)
def test_as_arrow_tells(name: str, options: dict[str, Any]) -> None:
    file = written(name, **options)
    assert column_sizes(file) == as_arrow_tells(file, list(TABLES[name]))


def test_a_footer_longer_than_the_first_look() -> None:
    assert len(written("wide").getvalue()) > 65_536
    assert len(column_sizes(written("wide"))) == MANY


@pytest.mark.parametrize("cut", [b"", b"PAR1", b"no Parquet file at all", written("plain").getvalue()[:-4]], ids=len)
def test_what_is_no_parquet_file(cut: bytes) -> None:
    with pytest.raises(BadFooter):
        column_sizes(io.BytesIO(cut))
