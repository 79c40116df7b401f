"""The statements of docs/reference/sources.md by which a role gets what capture needs."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs/reference/sources.md").read_text()
SCHEMA = "matview_shop"
"""What the page calls the place of what is captured."""
GRANTS = re.compile(
    r"The role that captures needs, with `\?matview_schema=(\w+)` in the URL,\n\n```\n(.*?)```", re.DOTALL
)


def privileges(section: str, **names: str) -> list[str]:
    """The statements under a heading, with other names for the page's own."""
    found = GRANTS.search(PAGE.split(f"\n## {section}\n")[1].split("\n## ")[0])
    assert found is not None and found[1] == SCHEMA
    statements = re.sub("--.*", "", found[2]).split(";")
    return [_renamed(one.strip(), names) for one in statements if one.strip()]


def _renamed(statement: str, names: dict[str, str]) -> str:
    for name, other in names.items():
        statement = re.sub(rf"(?<![\w\\]){re.escape(name)}\b", lambda _, other=other: other, statement)
    return statement
