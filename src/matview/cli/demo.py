"""`matview demo`: the papers' stories, played live."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from matview.cli.report import UsageError
from matview.demo.main import run
from matview.demo.retail.main import SECONDS as RETAIL_SECONDS
from matview.demo.retail.main import run as run_retail
from matview.spelling import meant

SECONDS, VERSIONS = 60.0, 2

app = App(name="demo")


@app.default
def demo(
    directory: Annotated[
        str | None, Parameter(name="DIR", help="Where its warehouse goes; `./demo-warehouse` if nothing is said.")
    ] = None,
    /,
    *,
    seconds: Annotated[float, Parameter(help="How long it plays.")] = SECONDS,
    rewrite: Annotated[
        bool, Parameter(negative="--no-rewrite", help="Without: readers read the tables as they are, and go wrong.")
    ] = True,
    versions: Annotated[int, Parameter(help="How many versions are kept.")] = VERSIONS,
    seed: Annotated[int | None, Parameter(help="Another evening.")] = None,
) -> int:
    if directory is not None and _is_new_word(directory) and (asked := meant(directory, ["retail"])) is not None:
        raise UsageError(f"there is no demo {directory!r}", help=f"{asked} A directory: ./{directory}")
    if seed is None:
        return run(directory, seconds=seconds, rewrite=rewrite, versions=versions)
    return run(directory, seconds=seconds, rewrite=rewrite, versions=versions, seed=seed)


def _is_new_word(directory: str) -> bool:
    """It may be a name that was misspelt."""
    return Path(directory).name == directory and not Path(directory).exists()


@app.command
def retail(
    directory: Annotated[
        str | None, Parameter(name="DIR", help="Where its warehouse goes; `./demo-warehouse` if nothing is said.")
    ] = None,
    /,
    *,
    seconds: Annotated[float, Parameter(help="How long it plays.")] = RETAIL_SECONDS,
) -> int:
    """A retailer's six views: policies that contradict one another are refused, legal ones run live.

    Example: `matview demo retail`
    """
    return run_retail(directory, seconds=seconds)
