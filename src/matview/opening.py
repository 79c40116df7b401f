"""Where a warehouse's catalog is, and how it is opened or made: no Spark, so that a command line can do it at once."""

from __future__ import annotations

from pathlib import Path

from matview.catalog.catalog import Catalog
from matview.catalog.connect import url_of_file
from matview.errors import BadSetting, NotAWarehouse

CATALOG_FILE = "catalog.sqlite"
DEFAULT_VERSIONS = 3


def open_catalog(root: str, url: str | None = None) -> Catalog:
    """The catalog of the warehouse at `root`; NotAWarehouse where there is none."""
    place = catalog_url(root, url)
    if Catalog.exists(place):
        return Catalog.open(place)
    if not _is_empty(root):
        raise NotAWarehouse(f"{root} holds something, and it is no warehouse (there is no {CATALOG_FILE})")
    raise NotAWarehouse(f"there is no warehouse at {root}")


def create_catalog(root: str, versions: int | None = None, url: str | None = None) -> Catalog:
    """Makes the warehouse at `root`, a new or an empty directory; that is all there is to make but tables."""
    place = catalog_url(root, url)
    if Catalog.exists(place):
        raise BadSetting(f"there is a warehouse already at {root}", help="use it, or choose another directory")
    if not _is_empty(root):
        raise NotAWarehouse(f"{root} holds something, and it is no warehouse (there is no {CATALOG_FILE})")
    if is_local(root):
        Path(root).mkdir(parents=True, exist_ok=True)
    return Catalog.create(place, versions=DEFAULT_VERSIONS if versions is None else versions)


def catalog_url(root: str, url: str | None = None) -> str:
    """The URL given, or that of the file in the warehouse's own directory."""
    if url is not None:
        return url
    if not is_local(root):
        raise BadSetting(
            f"{root} is no local directory: its catalog cannot be a SQLite file", help="give catalog='postgresql://...'"
        )
    return url_of_file(Path(root).absolute() / CATALOG_FILE)


def is_local(root: str) -> bool:
    return "://" not in root


def _is_empty(root: str) -> bool:
    if is_local(root):
        path = Path(root)
        return not path.exists() or (path.is_dir() and not any(path.iterdir()))
    # Imported here for the sake of start-up time: pyarrow takes 0.2 s, and only object stores need it to be looked at.
    from matview.storage.files import Files

    return Files(root).is_empty()
