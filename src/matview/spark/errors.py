"""Spark's errors as Matview's: the same cause, a code, a place and a help line."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError, Py4JNetworkError
from pyspark.errors import AnalysisException, ParseException, PySparkException

from matview.errors import (
    BadValue,
    MatviewError,
    QueryRejected,
    SparkFailure,
    SqlSyntaxError,
    StorageFailure,
    TypeMismatch,
    UnknownColumn,
    UnknownTable,
)
from matview.spelling import meant

logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)  # what it prints is in the error raised

_VALUE_CONDITIONS = (
    "CAST_",
    "ARITHMETIC_OVERFLOW",
    "NUMERIC_VALUE_OUT_OF_RANGE",
    "DIVIDE_BY_ZERO",
    "INVALID_",
    "CANNOT_PARSE",
)

_SEVERAL_ROWS = "SCALAR_SUBQUERY_TOO_MANY_ROWS"
_ONE_ROW = "nothing was changed; aggregate the subquery or add LIMIT 1, or correct the rows that it finds"


@contextmanager
def translated(doing: str = "running a query", help: str | None = None) -> Iterator[None]:
    """Raises what Spark raises inside as an error of our own; `help` is for failures of Spark or of the storage."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        raise translate(error, doing, help) from error
    except (Py4JNetworkError, ConnectionError) as error:
        raise SparkFailure(f"{doing}: Spark has gone", help=help) from error


def translate(error: PySparkException | Py4JJavaError, doing: str, help: str | None = None) -> MatviewError:
    """The error of ours that says the same. What PySpark has no class for comes as Py4J's."""
    condition = (error.getCondition() or "") if isinstance(error, PySparkException) else ""
    text = _first_line(error)
    if isinstance(error, ParseException):
        return SqlSyntaxError(text)
    if isinstance(error, AnalysisException):
        return _analysis(condition, text, error.getMessageParameters() or {})
    full = str(error)
    if "No space left on device" in full:
        return StorageFailure(f"{doing}: no space left on the device", help=help)
    if "[MV" in full:
        return _own(full)
    if _SEVERAL_ROWS in full:
        return BadValue(f"{doing}: a scalar subquery gives more than one row", help=_ONE_ROW)
    if condition.startswith(_VALUE_CONDITIONS):
        return BadValue(text)
    for known in _VALUE_CONDITIONS:
        if f"[{known}" in full:
            return BadValue(_line_with(full, f"[{known}"))
    return SparkFailure(f"{doing}: {text}", help=help)


def _analysis(condition: str, text: str, said: Mapping[str, str]) -> MatviewError:
    if condition.startswith("UNRESOLVED_COLUMN"):
        return _unknown_column(text, said)
    if condition.startswith("TABLE_OR_VIEW_NOT_FOUND"):
        return UnknownTable(text)
    if condition.endswith("FAILED_SQL_EXPRESSION_EVALUATION"):
        return BadValue(text)
    if condition.startswith(("DATATYPE_MISMATCH", "INCOMPATIBLE_DATA_FOR_TABLE", "CAST_")):
        return TypeMismatch(text)
    return QueryRejected(text)


def _unknown_column(text: str, said: Mapping[str, str]) -> UnknownColumn:
    """Of what Spark proposes, names that are the user's, and close."""
    if "objectName" not in said:
        return UnknownColumn(text)
    proposed = [_last_part(name) for name in said.get("proposal", "").split(", ") if name]
    asked = meant(_last_part(said["objectName"]), [name for name in proposed if not name.startswith("__")])
    return UnknownColumn(f"there is no column {said['objectName']}", help=asked)


def _last_part(name: str) -> str:
    return name.split("`.`")[-1].strip("`")


def _own(full: str) -> MatviewError:
    line = _line_with(full, "[MV")
    code, _, what = line.partition("] ")
    for kind in MatviewError.__subclasses__():
        if kind.code == code.strip("["):
            return kind(what)
    return SparkFailure(line)


def _line_with(full: str, mark: str) -> str:
    found = next(line for line in full.splitlines() if mark in line)
    return found[found.index(mark) :].strip()


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].split(" SQLSTATE:")[0] if lines else type(error).__name__
