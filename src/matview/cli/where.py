"""Which warehouse is meant: `-w`, else MATVIEW_WAREHOUSE, else ./warehouse."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from matview.catalog.catalog import Catalog
from matview.cli.report import UsageError
from matview.opening import open_catalog

DEFAULT = "warehouse"

CatalogUrl = Annotated[
    str | None,
    Parameter(
        name="--catalog",
        env_var="MATVIEW_CATALOG",
        help="URL of the catalog's database, where it is not a file in the warehouse.",
    ),
]


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Where:
    """The options that every verb on a warehouse takes."""

    warehouse: Annotated[
        str | None,
        Parameter(
            name=("--warehouse", "-w"),
            env_var="MATVIEW_WAREHOUSE",
            help="Directory of the warehouse; `./warehouse` if there is one.",
        ),
    ] = None
    catalog: CatalogUrl = None

    @property
    def root(self) -> str:
        if self.warehouse is not None:
            return self.warehouse
        if Path(DEFAULT).is_dir():
            return DEFAULT
        raise UsageError(
            "which warehouse?", help=f"give -w DIR, set MATVIEW_WAREHOUSE, or go where there is a ./{DEFAULT}"
        )

    def open_catalog(self) -> Catalog:
        """The catalog alone, at once; what needs no Spark needs no more."""
        return open_catalog(self.root, self.catalog)


HERE = Where()
