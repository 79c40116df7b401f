"""Values that can be sent along with a question."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def can_be_sent(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Which values Python has: days of the years 1 to 9999, texts in UTF-8, nulls. Sources have no others."""
    if pa.types.is_date(values.type) or pa.types.is_timestamp(values.type):
        number = values.cast(pa.int32() if pa.types.is_date(values.type) else pa.int64())
        first, last = DAYS if pa.types.is_date(values.type) else MICROSECONDS
        within = pc.and_(pc.greater_equal(number, first), pc.less_equal(number, last))
    elif pa.types.is_string(values.type):
        within = pa.chunked_array([[_is_text(one) for one in values.cast(pa.binary()).to_pylist()]], pa.bool_())
    else:
        return pa.chunked_array([pa.repeat(pa.scalar(True), len(values))])
    return pc.or_(pc.fill_null(within, False), pc.is_null(values))


DAYS = -719_162, 2_932_896
MICROSECONDS = DAYS[0] * 86_400_000_000, (DAYS[1] + 1) * 86_400_000_000 - 1
"""From the first day of the year 1 to the last of 9999, counted from 1970."""


def _is_text(value: bytes | None) -> bool:
    try:
        return value is None or value.decode() is not None
    except UnicodeDecodeError:
        return False
