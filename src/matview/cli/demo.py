"""`matview demo`: the paper's story, played live."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from matview.demo.main import run

SECONDS, VERSIONS = 60.0, 2


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
    if seed is None:
        return run(directory, seconds=seconds, rewrite=rewrite, versions=versions)
    return run(directory, seconds=seconds, rewrite=rewrite, versions=versions, seed=seed)
