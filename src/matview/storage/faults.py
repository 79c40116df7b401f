"""What the storage says, as our own error."""

from __future__ import annotations

import errno

from matview.errors import StorageFailure


def storage_failure(error: BaseException, doing: str, help: str | None = None) -> StorageFailure:
    text = str(error)
    full = (isinstance(error, OSError) and error.errno == errno.ENOSPC) or "No space left on device" in text
    if full:
        return StorageFailure(f"{doing}: no space left on the device", help=help)
    return StorageFailure(f"{doing}: {text.splitlines()[0] if text else type(error).__name__}", help=help)
