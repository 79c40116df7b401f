"""Why a row of a statement cannot be: decided in SQL beside the row, told as an error after the write."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum

from matview.errors import AmbiguousMerge, BadValue, DuplicateKey, ImpossibleOperation, MatviewError, NullKey
from matview.versions.layout import Layout
from matview.versions.text import quoted

NO_FAULT = "CAST(NULL AS string)"


class Fault(StrEnum):
    DUPLICATE = "duplicate"
    IMPOSSIBLE = "impossible"
    AMBIGUOUS = "ambiguous"
    NULL_KEY = "null key"
    NULL_VALUE = "null value"


Faults = Mapping[str, tuple[Fault, str]]
"""Conditions, as SQL, each with what it means and the column that is to blame, if it is one."""


def null_faults(layout: Layout, values: Mapping[str, str]) -> dict[str, tuple[Fault, str]]:
    """Nulls in columns that take none; a view's key may take them: its group-by columns are compared null-safely."""
    keys = {f"{values[c]} IS NULL": (Fault.NULL_KEY, c) for c in layout.schema.key if not _nullable(layout, c)}
    return keys | {f"{values[c]} IS NULL": (Fault.NULL_VALUE, c) for c in required(layout)}


def required(layout: Layout) -> tuple[str, ...]:
    """The columns outside the key that take no nulls."""
    return tuple(c.name for c in layout.schema.columns if not c.nullable and c.name not in layout.schema.key)


def _nullable(layout: Layout, name: str) -> bool:
    return next(c.nullable for c in layout.schema.columns if c.name == name)


def first_fault(faults: Faults, layout: Layout, row: str) -> str:
    """The first condition that holds, as JSON: the fault, the column, the row's key; null where none does."""
    if not faults:
        return NO_FAULT
    names = layout.schema.key or layout.schema.names
    shown = f"to_json(struct({', '.join(f'{quoted(row)}.{quoted(c)}' for c in names)}))"
    whens = " ".join(f"WHEN {sql} THEN {_told(fault, column, shown)}" for sql, (fault, column) in faults.items())
    return f"CASE {whens} END"


def _told(fault: Fault, column: str, shown: str) -> str:
    return f"to_json(struct({_literal(fault)} AS fault, {_literal(column)} AS column, {shown} AS row))"


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def error(table: str, told: str) -> MatviewError:
    """What `first_fault` told, as the error of a statement on that table."""
    found = json.loads(told)
    column, shown = found["column"], found["row"]
    match Fault(found["fault"]):
        case Fault.DUPLICATE:
            return DuplicateKey(f"{table} has a row with the key {shown} already")
        case Fault.IMPOSSIBLE:
            return ImpossibleOperation(f"{table} has no such row to change: {shown}")
        case Fault.AMBIGUOUS:
            return AmbiguousMerge(f"{table}: several rows of the source meet the row {shown}")
        case Fault.NULL_KEY:
            return NullKey(f"{table}: key column {column!r} is null" + (f" in {shown}" if shown != "{}" else ""))
        case Fault.NULL_VALUE:
            return BadValue(f"{table}: column {column!r} takes no nulls; a row {shown} has one")
