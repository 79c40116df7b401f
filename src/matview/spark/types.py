"""Spark's types as text that Spark reads again."""

from __future__ import annotations

import re

from pyspark.sql import types as t

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def type_text(kind: t.DataType) -> str:
    """As `simpleString`, with the names of fields quoted where they have to be."""
    match kind:
        case t.ArrayType():
            return f"array<{type_text(kind.elementType)}>"
        case t.MapType():
            return f"map<{type_text(kind.keyType)},{type_text(kind.valueType)}>"
        case t.StructType():
            return f"struct<{','.join(f'{_name(f.name)}:{type_text(f.dataType)}' for f in kind.fields)}>"
        case _:
            return kind.simpleString()


def _name(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else "`" + name.replace("`", "``") + "`"
