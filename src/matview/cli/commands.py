r"""What begins with a backslash at the prompt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from matview.cli.report import UsageError
from matview.cli.results import show_columns, show_tables, show_views
from matview.cli.rows import write_table
from matview.cli.shell import Shell
from matview.cli.texts import say

MARK = "\\"


class Leave(Exception):
    """The user is done."""


@dataclass(frozen=True, slots=True)
class Command:
    name: str
    help: str
    do: Callable[[Shell, str], None]


def obey(shell: Shell, line: str) -> None:
    r"""One line such as `\d sales`; raises Leave at `\q`."""
    name, _, argument = line.strip().removeprefix(MARK).partition(" ")
    command = next((command for command in COMMANDS if command.name == name), None)
    if command is None:
        raise UsageError(f"there is no command {MARK}{name}", help=f"{MARK}? lists those there are")
    command.do(shell, argument.strip().rstrip(";").strip())


def _describe(shell: Shell, argument: str) -> None:
    if argument:
        show_columns(shell.warehouse.table(argument.strip("`"), shell.version), shell.look)
    else:
        show_tables(shell.warehouse.tables(shell.version), shell.look)


def _views(shell: Shell, _: str) -> None:
    show_views(shell.warehouse.views(), shell.look)


def _session(shell: Shell, argument: str) -> None:
    match argument:
        case "":
            opened = shell.open_session()
            say(f"queries now read version {opened.version} (session {opened.id})")
        case "off":
            shell.end_session()
            say("queries now read the newest version")
        case session_id:
            shell.attach(session_id)
            say(f"queries now read version {shell.version} (session {session_id})")


def _timing(shell: Shell, _: str) -> None:
    shell.timing = not shell.timing
    say(f"timing is {'on' if shell.timing else 'off'}")


def _help(_shell: Shell, _: str) -> None:
    words = [("BEGIN, COMMIT, ROLLBACK", "several statements as one maintenance transaction")]
    write_table(("command", "what it does"), [(f"{MARK}{c.name}", c.help) for c in COMMANDS] + words)


def _leave(_shell: Shell, _: str) -> None:
    raise Leave


COMMANDS = (
    Command("d", "the tables and views; with a name, the columns of that table", _describe),
    Command("v", "the materialized views", _views),
    Command(
        "session", "pin the current version for the queries that follow; with an id, join that session; off", _session
    ),
    Command("timing", "say how long each statement took, or stop saying it", _timing),
    Command("?", "this list", _help),
    Command("q", "leave (exit and Ctrl-D do, too)", _leave),
)
