"""What a database's error means to Matview: wait and try again, or one of four domain errors."""

from __future__ import annotations

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, SQLAlchemyError

from matview.errors import CatalogCorrupt, CatalogUnavailable, MatviewError, StorageFailure

_SQLITE_BUSY = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL")
_SQLITE_STORAGE = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY")
_SQLITE_AWAY = ("SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH")

# classes and codes of PostgreSQL's appendix A
_POSTGRES_BUSY = ("40001", "40P01")
_POSTGRES_WAITED_ENOUGH = "55P03"
_POSTGRES_STORAGE = ("53100", "58030", "25006")
_POSTGRES_AWAY = ("08", "28", "3D", "53", "57", "25P03")


def is_busy(error: DBAPIError) -> bool:
    """Somebody else is in the way for a moment; the transaction has left no trace and may be run again."""
    return _sqlite_name(error).startswith(_SQLITE_BUSY) or _sqlstate(error) in _POSTGRES_BUSY


def is_waited_out(error: DBAPIError) -> bool:
    """Somebody else was in the way all the time that the database itself was told to wait."""
    return _sqlstate(error) == _POSTGRES_WAITED_ENOUGH


def translate(error: SQLAlchemyError, name: str) -> MatviewError:
    """The domain error for a database error that waiting does not cure."""
    if not isinstance(error, DBAPIError):
        return CatalogUnavailable(f"the catalog {name} does not answer: {error}")
    sqlite, postgres, cause = _sqlite_name(error), _sqlstate(error), str(error.orig).strip()
    if sqlite.startswith(_SQLITE_STORAGE) or postgres in _POSTGRES_STORAGE:
        return StorageFailure(f"the storage of the catalog {name} failed: {cause}")
    if sqlite.startswith(_SQLITE_AWAY) or postgres.startswith(_POSTGRES_AWAY) or _no_code(error):
        return CatalogUnavailable(f"the catalog {name} cannot be reached: {cause}")
    return CatalogCorrupt(f"the catalog {name} cannot be read: {cause}")


def _no_code(error: DBAPIError) -> bool:
    """A driver that never reached its database has no code to give."""
    codeless = not _sqlite_name(error) and not _sqlstate(error)
    return codeless and isinstance(error, OperationalError | InterfaceError)


def _sqlite_name(error: DBAPIError) -> str:
    return str(getattr(error.orig, "sqlite_errorname", None) or "")


def _sqlstate(error: DBAPIError) -> str:
    return str(getattr(error.orig, "sqlstate", None) or "")
