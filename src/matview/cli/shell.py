"""Runs statements one after another and shows what they give: for `matview sql`, its files and its prompt.

A query reads the open transaction, else the reader session, else the newest version. Any other statement belongs to the
open transaction, or is one of its own; in a session that others opened there is none.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum

from pyspark.sql import DataFrame

from matview.cli.interrupts import Worker
from matview.cli.pieces import Piece, pieces
from matview.cli.report import report_error
from matview.cli.results import (
    Look,
    show_columns,
    show_frame,
    show_groups,
    show_outcome,
    show_refreshes,
    show_sessions,
    show_sources,
    show_tables,
    show_views,
    tell,
)
from matview.cli.texts import note, say
from matview.errors import MatviewError, TransactionOver, UnsupportedStatement
from matview.maintain.outcome import Outcome
from matview.maintain.transaction import MaintenanceTransaction
from matview.reading.session import ReaderSession
from matview.spark.errors import translated
from matview.sql import statements as st
from matview.sql.parse import parse_one
from matview.versions.rewrite import Dialect
from matview.warehouse import Warehouse


class Control(Enum):
    """The words that group statements into one transaction."""

    BEGIN = frozenset({"BEGIN", "BEGIN TRANSACTION", "START TRANSACTION"})
    COMMIT = frozenset({"COMMIT", "COMMIT TRANSACTION", "END"})
    ROLLBACK = frozenset({"ROLLBACK", "ROLLBACK TRANSACTION"})


def read(piece: Piece) -> Control | st.Statement:
    words = " ".join(piece.text.upper().split())
    control = next((control for control in Control if words in control.value), None)
    return control or parse_one(piece.padded, piece.source)


class Shell:
    """What a run of `matview sql` remembers from statement to statement."""

    def __init__(self, warehouse: Warehouse, look: Look) -> None:
        self.warehouse = warehouse
        self.look = look
        self.timing = False
        self.transaction: MaintenanceTransaction | None = None
        self.session: ReaderSession | None = None
        self._is_guest = False
        self._worker = Worker()

    # statements -------------------------------------------------------------------------------------------------------

    def run(self, what: Control | st.Statement) -> None:
        """Ctrl-C breaks it off, and what follows it in the same input."""
        self._worker.run(lambda: self._run(what))

    def begin_input(self) -> None:
        self._worker.begin_anew()

    def _run(self, what: Control | st.Statement) -> None:
        with self._timed(), translated():
            match what:
                case Control.BEGIN:
                    self.begin()
                case Control.COMMIT:
                    self.commit()
                case Control.ROLLBACK:
                    self.rollback()
                case Control():
                    raise AssertionError(what)
                case _:
                    self._run_statement(what)

    def _run_statement(self, statement: st.Statement) -> None:
        """What the catalog knows is told without Spark; a plan on a screen is a text, not a cell for each line."""
        if not isinstance(statement, st.Query | st.Look):
            self._refuse_guest()
        match statement:
            case _ if self.transaction is not None:
                self._show(statement, self.transaction.run(statement))
            case st.ExplainView(view) if self.look.format == "table":
                say(self.warehouse.explain(view))
            case _ if isinstance(statement, st.Listing):
                self._look(statement)
            case st.Query(query) if self.session is not None:
                self._show(statement, self.session.query(query))
            case _:
                self._show(statement, self.warehouse.run(statement))

    def _look(self, statement: st.Listing) -> None:
        match statement:
            case st.ShowTables():
                show_tables(self.warehouse.tables(self.version), self.look)
            case st.Describe(table):
                show_columns(self.warehouse.table(table, self.version), self.look)
            case st.ShowViews():
                show_views(self.warehouse.views(), self.look)
            case st.ShowViewgroups():
                show_groups(self.warehouse.viewgroups(), self.look)
            case st.ShowSources():
                show_sources(self.warehouse.sources(ask=True), self.look)
            case st.ShowSessions():
                show_sessions(self.warehouse.sessions(), self.look)
            case st.ShowRefreshes():
                show_refreshes(self.warehouse.refreshes(), self.look)

    def _show(self, statement: st.Statement, result: DataFrame | Outcome) -> None:
        if isinstance(result, Outcome):
            show_outcome(statement, result, self.look)
        else:
            show_frame(result, self.look)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        began = time.perf_counter()
        yield
        if self.timing:
            note(f"time: {time.perf_counter() - began:.3f} s")

    # transactions -----------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        if self.transaction is not None:
            raise UnsupportedStatement("a transaction is open already", help="COMMIT or ROLLBACK it first")
        self._refuse_guest()
        self.transaction = self.warehouse.transaction()

    def commit(self) -> None:
        outcome = self._end_transaction().commit()
        tell(f"committed: {outcome}", self.look)

    def rollback(self) -> None:
        self._end_transaction().rollback()
        tell("rolled back", self.look)

    def _end_transaction(self) -> MaintenanceTransaction:
        if self.transaction is None:
            raise TransactionOver("no transaction is open", help="BEGIN opens one")
        ending, self.transaction = self.transaction, None
        return ending

    # the reader session -----------------------------------------------------------------------------------------------

    @property
    def version(self) -> int | None:
        """The version that queries read, if it is pinned."""
        return None if self.session is None else self.session.version

    def open_session(self) -> ReaderSession:
        self.end_session()
        self.session, self._is_guest = self.warehouse.session(), False
        return self.session

    def attach(self, session_id: str) -> None:
        """Reads in a session that others opened; it outlives us."""
        if self.transaction is not None:
            raise UnsupportedStatement("a transaction is open", help="COMMIT or ROLLBACK it first")
        self.end_session()
        self.session, self._is_guest = self.warehouse.attach(session_id), True

    def _refuse_guest(self) -> None:
        if self._is_guest:
            instead = "to change tables leave out --session, or end it: \\session off"
            raise UnsupportedStatement("a reader session runs queries only", help=instead)

    def end_session(self) -> None:
        if self.session is not None and self._is_guest:
            self.session.detach()
        elif self.session is not None:
            self.session.close()
        self.session, self._is_guest = None, False

    # the end ----------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Nothing stays open: a transaction that was not committed is rolled back."""
        try:
            self.end_session()
        finally:
            if self.transaction is not None:
                self.rollback()


def run_text(shell: Shell, text: str, source: str) -> bool:
    """Every statement of a text, up to the first error, which is told; whether there was none.

    All is parsed before anything runs.
    """
    found = _read_all(text, source)
    return found is not None and all(_ran(shell, piece, what) for piece, what in found)


def run_atomically(shell: Shell, text: str, source: str) -> bool:
    """As `run_text`, but all or nothing."""
    found = _read_all(text, source)
    if found is None or not all(_is_no_control(piece, what) for piece, what in found):
        return False
    shell.run(Control.BEGIN)
    if not all(_ran(shell, piece, what) for piece, what in found):
        return False
    shell.run(Control.COMMIT)
    return True


def print_text(shell: Shell, text: str, source: str, dialect: Dialect) -> bool:
    """Every query of a text as another engine can run it on the same files; nothing is run."""
    session = shell.session or shell.open_session()
    piece = Piece(text, 1, 1, text, source, is_one_of_several=False)
    try:
        for piece in pieces(text, source):
            print(session.text(piece.padded, dialect) + ";")
    except MatviewError as error:
        report_error(error, piece)
        return False
    return True


def _read_all(text: str, source: str) -> Sequence[tuple[Piece, Control | st.Statement]] | None:
    """The statements, parsed; None when one cannot be, which is told."""
    found = []
    piece = Piece(text, 1, 1, text, source, is_one_of_several=False)
    try:
        for piece in pieces(text, source):
            found.append((piece, read(piece)))
    except MatviewError as error:
        report_error(error, piece)
        return None
    return found


def _ran(shell: Shell, piece: Piece, what: Control | st.Statement) -> bool:
    try:
        shell.run(what)
    except MatviewError as error:
        report_error(error, piece)
        return False
    return True


def _is_no_control(piece: Piece, what: Control | st.Statement) -> bool:
    if isinstance(what, Control):
        report_error(UnsupportedStatement("all of it is one transaction already", help="leave out --atomic"), piece)
        return False
    return True
