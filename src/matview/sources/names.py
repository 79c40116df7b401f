"""Names of source tables as text: parts joined by dots, in double quotes where a part is not a plain word.

orders      sales.orders      "My Schema"."odd ""one"".x"
"""

from __future__ import annotations

import re

from matview.errors import SourceTableUnknown

PLAIN = re.compile(r"[^\W\d]\w*\Z")
PART = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')


def joined(*parts: str) -> str:
    """The text of a name."""
    return ".".join(part if PLAIN.match(part) else '"' + part.replace('"', '""') + '"' for part in parts)


def split(name: str) -> tuple[str, ...]:
    """The parts of a name; what is not quoted is taken as it stands."""
    parts, position = list[str](), 0
    while match := PART.match(name, position):
        parts.append(match[1].replace('""', '"') if match[1] is not None else match[2])
        position = match.end()
        if position == len(name):
            return tuple(parts)
        if name[position] != ".":
            break
        position += 1
    raise SourceTableUnknown(f"{name!r} is not the name of a table")
