"""What the documents show is run: Python blocks as programs, SQL blocks as statements, from top to bottom."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

import matview
from matview.cli import main
from matview.sql.parse import parse

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(document: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", document.read_text(), re.DOTALL | re.MULTILINE)


def with_blocks(language: str) -> list[Any]:
    found = [document for document in DOCUMENTS if blocks(document, language)]
    return [pytest.param(document, id=str(document.relative_to(ROOT))) for document in found]


@pytest.mark.parametrize("document", with_blocks("python"))
def test_python_blocks_run(document: Path, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for block in blocks(document, "python"):
        exec(compile(block, str(document), "exec"), {"__name__": "example"})


def test_the_commands_of_the_readme_run(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After its Python blocks, in the same directory, as a newcomer would."""
    readme = ROOT / "README.md"
    monkeypatch.chdir(tmp_path)
    for block in blocks(readme, "python"):
        exec(compile(block, str(readme), "exec"), {"__name__": "example"})
    (sql,) = blocks(readme, "sql")
    Path("views.sql").write_text(sql)
    (commands,) = re.findall(r"^```\n(matview init.*?)^```", readme.read_text(), re.DOTALL | re.MULTILINE)
    ran = []
    for line in commands.splitlines():
        _, *tokens = shlex.split(line, comments=True)
        if tokens == ["sql", "-w", "store.wh"]:
            continue  # a prompt
        assert main([*tokens, *(["--once"] if tokens[0] == "run" else [])]) in (0, None), line
        ran.append(tokens[0])
    assert len(ran) == 10


@pytest.mark.parametrize("document", with_blocks("sql"))
def test_sql_blocks_run(document: Path, spark: Any, tmp_path: Path) -> None:
    with matview.open(tmp_path / "wh", spark=spark) as warehouse:
        for block in blocks(document, "sql"):
            for statement in parse(block, document.name):
                result = warehouse.run(statement)
                if hasattr(result, "collect"):
                    result.collect()


def test_every_error_code_is_documented() -> None:
    text = (ROOT / "docs/reference/errors.md").read_text()
    for kind in matview.MatviewError.__subclasses__():
        assert f"| {kind.code} | {kind.__name__} |" in text, kind
