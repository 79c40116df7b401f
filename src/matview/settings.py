"""What can be set about a warehouse, and what it is when nothing is said. All times in seconds."""

from __future__ import annotations

from dataclasses import dataclass

from matview.errors import BadSetting

DEFAULT_RETENTION = 3600.0
"""The retention of a warehouse for which nothing was ever said."""


@dataclass(frozen=True, slots=True)
class Settings:
    """lease_ttl: how long a silent maintenance transaction keeps others out.
    lease_wait: how long a transaction waits for its turn before it says that another is running.
    session_ttl: how long a reader may be silent before garbage collection forgets it.
    file_retention: how long a file that no version needs is left in place for queries whose plan was made before. It
        belongs to the warehouse: a longer one raises what the catalog keeps, None takes that as it is.
    fold_files: how many overlay files a table may gather.
    fold_share: which share of its tuples may stand in the overlay; below fold_least tuples the share does not matter.
    """

    lease_ttl: float = 30.0
    lease_wait: float = 10.0
    session_ttl: float = 60.0
    file_retention: float | None = None
    fold_files: int = 16
    fold_share: float = 0.02
    fold_least: int = 50_000

    def __post_init__(self) -> None:
        for name in ("lease_ttl", "session_ttl"):
            if getattr(self, name) <= 0:
                raise BadSetting(f"{name} must be positive")
        for name in ("lease_wait", "file_retention", "fold_files", "fold_share", "fold_least"):
            if (getattr(self, name) or 0) < 0:
                raise BadSetting(f"{name} must not be negative")
