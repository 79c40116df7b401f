"""Sentences, and values as text: what needs no table drawn."""

from __future__ import annotations

import datetime as dt
import json
import re
import sys
from dataclasses import asdict, is_dataclass
from math import isfinite
from typing import Any


def say(text: str) -> None:
    """A sentence, on stdout."""
    print(text)


def note(text: str) -> None:
    """A remark that is no result, on stderr."""
    print(text, file=sys.stderr)


def announce(text: str) -> None:
    """What is being done, for somebody who waits for it at a terminal."""
    if sys.stderr.isatty():
        note(text)


def shortened(error: str, most: int) -> str:
    """The text of an error without the code before it and the help after it, in so many letters."""
    what = re.sub(r"^\[MV\d+\] (at \S+ )?", "", error.split("\n", 1)[0])
    return what if len(what) <= most else f"{what[: most - 1]}…"


def write_json(value: object) -> None:
    print(json.dumps(plain(value), indent=2, ensure_ascii=False))


def as_text(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case dt.datetime():
            return value.isoformat(sep=" ")
        case bytes() | bytearray():
            return value.hex()
        case dict() | list() | tuple():
            return json.dumps(plain(value), ensure_ascii=False)
        case _:
            return str(value)


def plain(value: object) -> Any:
    """What JSON has; decimals become strings, so that no digit is lost, and bytes hexadecimal digits."""
    match value:
        case float() if not isfinite(value):
            return str(value)
        case None | bool() | int() | float() | str():
            return value
        case dt.date():
            return value.isoformat()
        case bytes() | bytearray():
            return value.hex()
        case dict():
            return {as_text(key): plain(item) for key, item in value.items()}
        case tuple() if hasattr(value, "asDict"):  # a Row of Spark's: a struct
            return plain(value.asDict())
        case list() | tuple():
            return [plain(item) for item in value]
        case _ if is_dataclass(value) and not isinstance(value, type):
            return plain(asdict(value))
        case _:
            return str(value)
