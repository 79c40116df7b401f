"""What an experiment leaves: a table on the screen, JSON and a picture beside it."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import matplotlib
from rich.console import Console
from rich.table import Table

matplotlib.use("Agg")
from matplotlib import pyplot

RESULTS = Path(__file__).parent / "results"
console = Console(width=120)


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured ratio, with the bar it is held against (None: reported only)."""

    name: str
    value: float
    bar: float | None = None
    note: str = ""

    @property
    def met(self) -> bool | None:
        return None if self.bar is None else self.value <= self.bar


def alternating(rounds: int, **runs: Callable[[], object]) -> dict[str, list[float]]:
    """Seconds of each run, in turns, so that a busy moment of the machine meets all of them; one round to warm up."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(rounds + 1):
        for name, run in runs.items():
            began = time.perf_counter()
            run()
            if turn:
                seconds[name].append(time.perf_counter() - began)
    return seconds


def ratio(seconds: dict[str, list[float]], over: str, under: str) -> float:
    """The median of one over the median of the other."""
    return statistics.median(seconds[over]) / statistics.median(seconds[under])


def report(name: str, figures: Sequence[Figure], details: dict[str, object]) -> None:
    table = Table(title=name)
    for heading in ("figure", "value", "bar", "met", "note"):
        table.add_column(heading, justify="right" if heading in ("value", "bar") else "left")
    for figure in figures:
        met = {True: "[green]yes[/]", False: "[red]no[/]", None: ""}[figure.met]
        bar = "" if figure.bar is None else f"{figure.bar:.2f}"
        table.add_row(figure.name, f"{figure.value:.3f}", bar, met, figure.note)
    console.print(table)
    RESULTS.mkdir(exist_ok=True)
    content = {"figures": [asdict(f) | {"met": f.met} for f in figures], "details": details}
    (RESULTS / f"{name}.json").write_text(json.dumps(content, indent=2, default=str))
    _picture(name, figures)
    console.print(f"written: bench/results/{name}.json and {name}.png")


def _picture(name: str, figures: Sequence[Figure]) -> None:
    height = max(2.0, 0.45 * len(figures))
    drawing, axes = pyplot.subplots(figsize=(9, height))
    names = [f.name for f in figures][::-1]
    values = [f.value for f in figures][::-1]
    colours = ["#c0392b" if f.met is False else "#2e86c1" for f in figures][::-1]
    axes.barh(names, values, color=colours)
    for i, figure in enumerate(reversed(figures)):
        if figure.bar is not None:
            axes.plot([figure.bar, figure.bar], [i - 0.4, i + 0.4], color="black", linewidth=2)
    axes.axvline(1.0, color="grey", linestyle=":")
    axes.set_title(f"{name}: ratios within one run (black: the bar)")
    drawing.tight_layout()
    drawing.savefig(RESULTS / f"{name}.png", dpi=120)
    pyplot.close(drawing)
