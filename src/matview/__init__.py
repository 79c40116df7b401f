"""Matview: materialized views in a Spark lakehouse that stay fresh incrementally, read consistently meanwhile."""

from typing import TYPE_CHECKING

__version__ = "0.1.0"

__all__ = [
    "Applied",
    "AtOnce",
    "AtTime",
    "MaintenanceTransaction",
    "MatviewError",
    "Outcome",
    "Proposal",
    "ReaderSession",
    "SessionExpired",
    "Settings",
    "Warehouse",
    "WhenIdle",
    "open",
]

if TYPE_CHECKING:
    from matview.errors import MatviewError, SessionExpired
    from matview.maintain.apply import Applied
    from matview.maintain.outcome import Outcome
    from matview.maintain.policy import AtOnce, AtTime, WhenIdle
    from matview.maintain.transaction import MaintenanceTransaction
    from matview.plan.propose.proposal import Proposal
    from matview.reading.session import ReaderSession
    from matview.settings import Settings
    from matview.warehouse import Warehouse
    from matview.warehouse import open_warehouse as open
else:
    # Names are imported when first asked for: `import matview.catalog` alone must not wait for PySpark (PEP 562).
    from importlib import import_module

    _HOMES = {
        "Applied": "matview.maintain.apply",
        "AtOnce": "matview.maintain.policy",
        "AtTime": "matview.maintain.policy",
        "MaintenanceTransaction": "matview.maintain.transaction",
        "MatviewError": "matview.errors",
        "Outcome": "matview.maintain.outcome",
        "Proposal": "matview.plan.propose.proposal",
        "ReaderSession": "matview.reading.session",
        "SessionExpired": "matview.errors",
        "Settings": "matview.settings",
        "Warehouse": "matview.warehouse",
        "WhenIdle": "matview.maintain.policy",
        "open": "matview.warehouse",
    }
    _OTHER_NAMES = {"open": "open_warehouse"}

    def __getattr__(name):
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(import_module(_HOMES[name]), _OTHER_NAMES.get(name, name))
        globals()[name] = found
        return found

    def __dir__():
        return sorted({*globals(), *_HOMES})
