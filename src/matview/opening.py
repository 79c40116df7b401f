"""Where a warehouse's catalog is, and how it is opened or made: no Spark, so that a command line can do it at once.

Catalog and directory carry the same id, the directory in a file of its own: a URL that was meant for another directory
must not make one warehouse's garbage of another one's files.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Protocol

from matview.catalog.catalog import Catalog
from matview.catalog.connect import url_of_file
from matview.catalog.settings import FILE_RETENTION, MARKED, WAREHOUSE_ID
from matview.catalog.version import check_versions
from matview.errors import BadSetting, CatalogCorrupt, ForeignDirectory, MatviewError, NotAWarehouse

CATALOG_FILE = "catalog.sqlite"
MARKER = "matview.id"
DEFAULT_VERSIONS = 3

_LEFTOVERS = frozenset({CATALOG_FILE, *(f"{CATALOG_FILE}-{part}" for part in ("wal", "shm", "journal"))})


class Directory(Protocol):
    """What is asked of a warehouse's directory here; `Files` answers it for object stores."""

    def make(self) -> None: ...
    def names(self, path: str = "") -> list[str]: ...
    def read_text(self, path: str) -> str | None: ...
    def write_text(self, path: str, text: str) -> None: ...


def open_catalog(root: str, url: str | None = None) -> Catalog:
    """The catalog of the warehouse at `root`; NotAWarehouse: there is none; ForeignDirectory: it is another's."""
    place = catalog_url(root, url)
    if not Catalog.exists(place):
        raise _no_warehouse(root)
    opened = Catalog.open(place)
    try:
        _tie(opened, root, url)
    except BaseException:
        opened.close()
        raise
    return opened


def create_catalog(
    root: str, versions: int | None = None, url: str | None = None, *, file_retention: float | None = None
) -> Catalog:
    """Makes the warehouse at `root`, a new or an empty directory; that is all there is to make but tables."""
    place = catalog_url(root, url)
    if Catalog.exists(place):
        raise BadSetting(f"there is a warehouse already at {root}", help="use it, or choose another directory")
    if not _is_empty(root):
        raise _no_warehouse(root)
    kept = DEFAULT_VERSIONS if versions is None else versions
    check_versions(kept)
    _directory(root).make()
    made = Catalog.create(place, versions=kept)
    try:
        if file_retention is not None:
            made.settings.set(FILE_RETENTION, repr(file_retention))
        _tie(made, root, url)
    except BaseException:
        made.close()
        raise
    return made


def open_or_create(
    root: str, versions: int | None = None, url: str | None = None, *, file_retention: float | None = None
) -> Catalog:
    """The warehouse at `root`, made if there is none; when another process makes it at the same time, that one."""
    with suppress(NotAWarehouse):
        return open_catalog(root, url)
    try:
        return create_catalog(root, versions, url, file_retention=file_retention)
    except MatviewError:
        with suppress(NotAWarehouse):
            return open_catalog(root, url)
        raise


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


# catalog and directory ------------------------------------------------------------------------------------------------


def _tie(catalog: Catalog, root: str, url: str | None) -> None:
    """The directory has the catalog's id; one that has none yet gets it, if the two fit."""
    own, directory = catalog.settings.get(WAREHOUSE_ID), _directory(root)
    if own is None:
        raise CatalogCorrupt("the catalog has lost the id of its warehouse")
    there = directory.read_text(MARKER)
    if there is None:
        _refuse_unless_fitting(catalog, root, url, own)
        try:
            directory.write_text(MARKER, own + "\n")
        except OSError:  # who may only read must not be kept from reading; the next who may write marks it
            return
    elif there.strip() != own:
        raise ForeignDirectory(f"{root} belongs to the warehouse of another catalog")
    if catalog.settings.get(MARKED) is None:
        catalog.settings.set(MARKED, "yes")


def _refuse_unless_fitting(catalog: Catalog, root: str, url: str | None, own: str) -> None:
    """A catalog inside the directory is surely its own; another's directory was marked, or fits."""
    if url is not None and (catalog.settings.get(MARKED) or not _fits(catalog, root)):
        raise ForeignDirectory(
            f"{root} is not the directory of this catalog's warehouse (there is no {MARKER})",
            help=f"give the directory that it was made with; if this is it, put a file {MARKER} there that says {own}",
        )


def _fits(catalog: Catalog, root: str) -> bool:
    """Every table of the catalog has its directory, and what other directories there are, some are the catalog's."""
    there = {f"tables/{name}" for name in _directory(root).names("tables")}
    live = {table.directory for table in catalog.tables.live(catalog.version().current_vn)}
    known = {table.directory for table in catalog.tables.all()}
    return live <= there and (not there or bool(known & there))


def _is_empty(root: str) -> bool:
    """Nothing there, but perhaps a catalog in which nothing is: somebody was killed while making a warehouse."""
    return set(_directory(root).names()) <= _LEFTOVERS


def _absolute(root: str) -> str:
    """A path in full, since it may be another directory that one is in; a URL as it is."""
    return root if "://" in root else str(Path(root).resolve())


def _no_warehouse(root: str) -> MatviewError:
    names = _directory(root).names()
    if MARKER in names and CATALOG_FILE in names:
        return CatalogCorrupt(f"the catalog of the warehouse {root} is empty")
    if MARKER in names:
        elsewhere = "give its URL: catalog='postgresql://...', --catalog, or MATVIEW_CATALOG"
        return NotAWarehouse(f"the catalog of the warehouse {root} is not in its directory", help=elsewhere)
    if set(names) <= _LEFTOVERS:
        return NotAWarehouse(f"there is no warehouse at {_absolute(root)}")
    return NotAWarehouse(f"{root} holds something, and it is no warehouse (there is no catalog in it)")


class _LocalDirectory:
    """A directory of this machine, looked at without pyarrow, which takes 0.2 s to import."""

    def __init__(self, root: str) -> None:
        self._root = Path(root)

    def make(self) -> None:
        self._root.mkdir(parents=True, exist_ok=True)

    def names(self, path: str = "") -> list[str]:
        place = self._root / path
        if place.is_file():
            return [place.name]
        return [entry.name for entry in place.iterdir()] if place.is_dir() else []

    def read_text(self, path: str) -> str | None:
        try:
            return (self._root / path).read_text(encoding="utf-8") or None
        except FileNotFoundError:
            return None

    def write_text(self, path: str, text: str) -> None:
        (self._root / path).write_text(text, encoding="utf-8")


def _directory(root: str) -> Directory:
    if is_local(root):
        return _LocalDirectory(root)
    # Imported here for the sake of start-up time: pyarrow takes 0.2 s, and only object stores need it to be looked at.
    from matview.storage.files import Files

    return Files(root)
