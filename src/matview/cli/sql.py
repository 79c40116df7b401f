"""`matview sql`: one statement, a file of them, what comes in on stdin, or the prompt."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.types import NonNegativeInt

from matview.cli.opened import open_here
from matview.cli.prompt import interact
from matview.cli.report import UsageError
from matview.cli.results import Look
from matview.cli.rows import Format
from matview.cli.shell import Shell, print_text, run_atomically, run_text
from matview.cli.where import HERE, Where
from matview.errors import TransactionOver
from matview.versions.rewrite import Dialect

STDIN = "-"


def sql(
    statement: Annotated[str | None, Parameter(name="STATEMENT", help="What to run.")] = None,
    /,
    *,
    file: Annotated[
        str | None,
        Parameter(name=("--file", "-f"), allow_leading_hyphen=True, help="Run the statements of a file; `-` is stdin."),
    ] = None,
    atomic: Annotated[
        bool, Parameter(negative="", help="All of it as one maintenance transaction, or nothing.")
    ] = False,
    session: Annotated[str | None, Parameter(help="Read in this session; `matview session open` makes one.")] = None,
    print_: Annotated[
        bool, Parameter(name="--print", negative="", help="Print queries for another engine; run nothing.")
    ] = False,
    dialect: Annotated[Dialect, Parameter(help="For `--print`: which engine.")] = "duckdb",
    format: Annotated[Format, Parameter(help="How rows are written.")] = "table",
    limit: Annotated[
        NonNegativeInt | None, Parameter(help="At most so many rows; 0: all. Tables stop at 1000.")
    ] = None,
    where: Where = HERE,
) -> int:
    text, source = _text(statement, file)
    if text is None and (atomic or print_):
        raise UsageError("--atomic and --print need a statement or a file")
    with open_here(where) as warehouse, closing(Shell(warehouse, Look(format, limit))) as shell:
        if session is not None:
            shell.attach(session)
        if text is None:
            interact(shell)
            return 0
        if print_:
            return _code(print_text(shell, text, source, dialect))
        return _code(run_atomically(shell, text, source) if atomic else _run_whole(shell, text, source))


def _run_whole(shell: Shell, text: str, source: str) -> bool:
    ok = run_text(shell, text, source)
    if ok and shell.transaction is not None:
        raise TransactionOver("the text ends inside a transaction, which is rolled back", help="end it with COMMIT")
    return ok


def _code(ok: bool) -> int:
    return 0 if ok else 1


def _text(statement: str | None, file: str | None) -> tuple[str | None, str]:
    """What to run and what to call it; None for the prompt."""
    if statement is not None and file is not None:
        raise UsageError("a statement or --file, not both")
    if statement is not None and not statement.strip():
        raise UsageError("the statement is empty")
    if statement is not None:
        return statement, "<sql>"
    if file == STDIN or (file is None and not sys.stdin.isatty()):
        return sys.stdin.read(), "<stdin>"
    return (None, "") if file is None else (_contents(file), file)


def _contents(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from None
