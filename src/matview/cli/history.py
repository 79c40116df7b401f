"""`matview history`: maintenance transactions, the newest first."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter
from cyclopts.types import NonNegativeInt

from matview.algebra.schema import RESERVED_PREFIX
from matview.catalog.records import TransactionRecord
from matview.cli.durations import moment, shown
from matview.cli.rows import write_table
from matview.cli.texts import shortened, write_json
from matview.cli.where import HERE, Where

ERROR = 80
COLUMNS = ("version", "state", "began", "took", "rows", "tables", "by", "error")


def history(
    *,
    limit: Annotated[NonNegativeInt, Parameter(help="How many; 0: all.")] = 20,
    json: Annotated[bool, Parameter(negative="", help="For programs.")] = False,
    where: Where = HERE,
) -> None:
    with where.open_catalog() as catalog:
        found = catalog.transactions.history(limit or None)
    if json:
        write_json(found)
    else:
        write_table(COLUMNS, [_row(record) for record in found])


def _row(record: TransactionRecord) -> tuple[object, ...]:
    took = "" if record.ended_at is None else shown(record.ended_at - record.began_at)
    vn = record.vn if record.state == "committed" else f"({record.vn})"
    rows, tables = record.summary.get("rows", ""), _tables(record.summary.get("tables"))
    error = shortened(record.error or "", ERROR)
    return (vn, record.state, moment(record.began_at), took, rows, tables, record.holder, error)


def _tables(summary: object) -> str:
    """`sales +3 ~1 -2`: rows inserted, updated and deleted; hidden parts of views are left out."""
    if not isinstance(summary, dict):
        return ""
    return ", ".join(
        " ".join([str(name), *_counts(counts)])
        for name, counts in summary.items()
        if not str(name).startswith(RESERVED_PREFIX)
    )


def _counts(counts: object) -> list[str]:
    if not isinstance(counts, list):
        return []
    return [f"{sign}{n}" for sign, n in zip("+~-", counts, strict=False) if n]
