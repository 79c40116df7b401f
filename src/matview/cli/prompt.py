"""The interactive prompt: lines until a semicolon, history, completion of names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import SqlLexer  # type: ignore[import-untyped]

from matview.cli.commands import MARK, Leave, obey
from matview.cli.pieces import is_complete
from matview.cli.report import UsageError, report_bug, report_error, report_plain, report_usage
from matview.cli.shell import Shell, run_text
from matview.cli.texts import say
from matview.errors import MatviewError

LEAVING = ("exit", "quit")
KEYWORDS = (
    *("SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "JOIN", "WITH", "UNION ALL"),
    *("INSERT INTO", "VALUES", "UPDATE", "SET", "DELETE FROM", "MERGE INTO", "USING", "WHEN MATCHED THEN"),
    *("CREATE MATERIALIZED VIEW", "REFRESH MATERIALIZED VIEW", "ALTER MATERIALIZED VIEW", "DROP MATERIALIZED VIEW"),
    *("SHOW MATERIALIZED VIEWS", "EXPLAIN MATERIALIZED VIEW", "REFRESH POLICY", "INCREMENTAL STRICT"),
    *("CREATE TABLE", "DROP TABLE", "PRIMARY KEY", "SHOW TABLES", "DESCRIBE", "BEGIN", "COMMIT", "ROLLBACK"),
)


def interact(shell: Shell) -> None:
    """Reads and runs until the user leaves."""
    say(f"{shell.warehouse.path}: statements end with a semicolon, {MARK}? lists commands, {MARK}q leaves")
    session = _prompt_session(shell)
    while True:
        try:
            text = session.prompt(_prompt(shell))
            handle(shell, text)
        except KeyboardInterrupt:
            continue  # the line is given up
        except (EOFError, Leave):
            return


def handle(shell: Shell, text: str) -> None:
    """What was entered: nothing, a command, or statements. Errors are told, and the prompt comes back."""
    entered = text.strip()
    if entered.rstrip("; ").lower() in LEAVING:
        raise Leave
    shell.begin_input()
    try:
        if entered.startswith(MARK):
            obey(shell, entered)
        else:
            run_text(shell, text, "<sql>")
    except Leave:
        raise
    except KeyboardInterrupt:
        report_plain("interrupted")
    except MatviewError as error:
        report_error(error)
    except UsageError as error:
        report_usage(error)
    except Exception as error:  # whatever it is, the prompt comes back
        report_bug(error)


def _prompt(shell: Shell) -> str:
    """`matview>`, with the version that a session pins, and a star while a transaction is open."""
    pinned = "" if shell.version is None else f"@{shell.version}"
    return f"matview{pinned}{'*' if shell.transaction else ''}> "


def _prompt_session(shell: Shell) -> PromptSession[str]:
    return PromptSession(
        multiline=True,
        prompt_continuation=lambda width, *_: "> ".rjust(width),
        key_bindings=_bindings(),
        history=_history(),
        lexer=PygmentsLexer(SqlLexer),
        completer=WordCompleter(lambda: list(_words(shell)), ignore_case=True),
        complete_while_typing=False,
    )


def _bindings() -> KeyBindings:
    """Enter ends the input once it is complete, and begins a new line before."""
    bindings = KeyBindings()

    @bindings.add("enter", filter=Condition(_is_entered))
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    return bindings


def _is_entered() -> bool:
    buffer = get_app().current_buffer
    text = buffer.text.strip()
    return text.startswith(MARK) or text.lower() in LEAVING or is_complete(text)


def _words(shell: Shell) -> Iterator[str]:
    yield from KEYWORDS
    for table in shell.warehouse.tables(shell.version):
        yield table.name
        yield from table.schema.visible


def _history() -> History:
    """In the user's state directory; in memory where that cannot be written."""
    path = state_dir() / "history"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))


def state_dir() -> Path:
    home = os.environ.get("XDG_STATE_HOME")
    return (Path(home) if home else Path.home() / ".local" / "state") / "matview"
