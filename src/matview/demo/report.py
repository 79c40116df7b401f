"""The closing table, and how to look into what the demo leaves."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from matview.demo.story import Figures
from matview.reading.status import TableStatus


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the run has shown, in words, and whether it went as it should."""

    text: str
    good: bool


def verdict_with_rewrite(figures: Figures) -> Verdict:
    """Every check must have held. Waits are measured and told."""
    if trouble := _trouble(figures):
        return Verdict(trouble, False)
    if figures.inconsistencies:
        return Verdict(f"{figures.inconsistencies} INCONSISTENCIES: this must not be. Please report it.", False)
    waited = f"{figures.waits:,} queries met a lock" if figures.waits else "No query waited for anybody"
    return Verdict(f"{waited}, and {figures.checks:,} checks out of {figures.checks:,} held.", True)


def verdict_without_rewrite(figures: Figures) -> Verdict:
    """Contradictions are what this run is for; without any it has shown nothing."""
    if trouble := _trouble(figures):
        return Verdict(trouble, False)
    if figures.inconsistencies:
        failed = f"{figures.inconsistencies:,} checks out of {figures.checks:,} FAILED"
        return Verdict(f"WITHOUT THE REWRITE {failed}, as they were bound to.", True)
    return Verdict("No reader met a change this time: run it longer.", False)


def _trouble(figures: Figures) -> str | None:
    if figures.failures:
        return "The demo did not run as it should: " + "; ".join(figures.failures)
    if not figures.transactions or not figures.checks:
        return "The time was too short for a transaction and a session: run it longer."
    return None


def closing_table(title: str, figures: Figures, tables: Sequence[TableStatus]) -> Table:
    table = Table(title=title, title_justify="left", show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_column(style="dim")
    for row in figure_rows(figures, tables):
        table.add_row(*row)
    return table


def figure_rows(figures: Figures, tables: Sequence[TableStatus]) -> list[tuple[str, str, str]]:
    """What was measured, how much, and what that means."""
    return [
        ("maintenance transactions", f"{figures.transactions:,}", f"{figures.rows:,} rows changed"),
        ("reader sessions", f"{figures.sessions:,}", "of three analysts in two processes"),
        ("queries", f"{figures.queries:,}", f"{figures.beside:,} wholly inside a transaction"),
        ("query latency", f"{_ms(figures.median)}", f"median; 95 % within {_ms(figures.ninety_fifth)}"),
        ("opening a session", _ms(figures.longest_opening), "at most"),
        ("waits", f"{figures.waits:,}", "of queries" + _latches(figures)),
        ("checks", f"{figures.checks:,}", "parts = whole = CityTotals"),
        ("inconsistencies", f"{figures.inconsistencies:,}", "checks that failed"),
        ("expired sessions", f"{figures.expired:,}", "told to begin anew"),
        *(_storage(table) for table in sorted(tables, key=lambda t: -t.rows)),
    ]


def _latches(figures: Figures) -> str:
    """Opening and closing write a row of the catalog, which takes the paper's 'simple latching mechanism'."""
    match figures.latches:
        case 0:
            return ""
        case 1:
            return "; 1 latch at open or close"
        case several:
            return f"; {several} latches at open or close"


def _storage(table: TableStatus) -> tuple[str, str, str]:
    rows = table.rows + table.overlay_rows
    return "storage overhead", f"{table.overhead:.1%}", f"of {table.name}, {rows:,} stored tuples"


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:,.0f} ms"


def command() -> str:
    """How whoever runs this demo can call us: by our name, if that is on the path."""
    own = Path(sys.argv[0])
    if shutil.which("matview") or own.name != "matview":
        return "matview"
    return shlex.quote(os.path.relpath(own))


def look_into(path: str) -> RenderableType:
    """The warehouse stays: what to try on it."""
    where, matview = shlex.quote(path), command()
    query = "SELECT * FROM CityTotals ORDER BY total_sales"
    tries = [
        f"{matview} status -w {where}",
        f"{matview} history -w {where}",
        f'{matview} sql -w {where} "{query}"',
    ]
    return Group(Text(f"The warehouse stays in {path}. Look into it:"), *(Text(f"  {t}", style="cyan") for t in tries))
