"""What a statement gives, shown: the rows of a query, the sentence about a change, the columns of a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, YearMonthIntervalType

from matview.catalog.records import RefreshRecord, SessionRecord, TableRecord
from matview.cli.durations import moment, shown
from matview.cli.rows import ENDLESS, Format, Row, write_rows
from matview.cli.texts import note, say, shortened
from matview.maintain.outcome import Outcome
from matview.reading.groups import GroupStatus
from matview.reading.sources import SourceStatus
from matview.reading.views import ViewStatus
from matview.spark.errors import translate, translated
from matview.sql import statements as st

TABLE_LIMIT = 1000  # a table on a screen is for people; programs get all of it
REASON = 80


@dataclass(frozen=True, slots=True)
class Look:
    """How rows are shown; `limit` None: as many as are good for the format, 0: all."""

    format: Format = "table"
    limit: int | None = None

    @property
    def most(self) -> int | None:
        if self.limit is None:
            return TABLE_LIMIT if self.format == "table" else None
        return self.limit or None


def show_frame(frame: DataFrame, look: Look) -> None:
    """One row more than is shown is asked for, to know whether there are more."""
    names, most = frame.columns, look.most
    if any(isinstance(field.dataType, YearMonthIntervalType) for field in frame.schema.fields):
        frame = frame.toDF(*(f"c{i}" for i in range(len(names))))  # names may repeat
        frame = frame.select(*map(_shown, frame.schema.fields))
    with translated():
        if most is None:
            write_rows(names, _streamed(frame), look.format)
            return
        rows = frame.limit(most + 1).collect()
    write_rows(names, rows[:most], look.format)
    if len(rows) > most:
        note(f"the first {most} rows; --limit says how many, --limit 0 all")


def _shown(field: StructField) -> Column:
    """PySpark has no value for an interval of months; its text it has."""
    column = F.col(field.name)
    return column.cast("string") if isinstance(field.dataType, YearMonthIntervalType) else column


def _streamed(frame: DataFrame) -> Iterator[Row]:
    """Row after row, never all at once. PySpark leaves what goes wrong on this way as it comes from Java."""
    try:
        yield from frame.toLocalIterator()
    except Py4JJavaError as error:
        raise translate(PySparkException(str(error)), "reading rows") from error


def tell(sentence: str, look: Look) -> None:
    """On stdout beside tables; programs that read CSV or JSON there are spared it."""
    (say if look.format == "table" else note)(sentence)


def show_outcome(statement: st.Statement, outcome: Outcome, look: Look) -> None:
    tell(_sentence(statement, outcome), look)


def _sentence(statement: st.Statement, outcome: Outcome) -> str:
    version = "" if outcome.version is None else f" (version {outcome.version})"
    match statement:
        case _ if outcome.version is None and not outcome.done and (idle := _idle(statement)):
            return idle
        case st.CreateTable(name):
            return f"created table {name}{version}"
        case st.DropTable(name, cascade=False):
            return f"dropped table {name}{version}"
        case st.RefreshView(name) | st.RefreshViewgroup(name) if not outcome.counts.total:
            return f"{name} is up to date"
        case st.CreateSource(name):
            return f"source {name} added: {outcome}"
        case st.RefreshSource(name) if outcome.version is None:
            return f"{name} is up to date"
        case st.SetVersions(versions):
            return f"{versions} versions are kept from now on"
        case _:
            return str(outcome)


def _idle(statement: st.Statement) -> str:
    """What is said of a statement that found nothing to do."""
    match statement:
        case st.CreateTable(name, if_not_exists=True):
            return f"table {name} is there"
        case st.DropTable(name, if_exists=True):
            return f"table {name} is not there"
        case st.CreateView(name, if_not_exists=True):
            return f"{name} is there"
        case st.DropView(name, if_exists=True):
            return f"materialized view {name} is not there"
        case st.CreateViewgroup(name, if_not_exists=True):
            return f"viewgroup {name} is there"
        case st.DropViewgroup(name, if_exists=True):
            return f"viewgroup {name} is not there"
        case st.CreateSource(name, if_not_exists=True):
            return f"source {name} is there"
        case st.DropSource(name, if_exists=True):
            return f"source {name} is not there"
        case _:
            return ""


def show_tables(tables: Sequence[TableRecord], look: Look) -> None:
    rows = [(t.name, ", ".join(t.schema.visible), ", ".join(t.schema.key), t.created_vn) for t in tables]
    write_rows(("table", "columns", "key", "since version"), rows, look.format)


def show_views(views: Sequence[ViewStatus], look: Look) -> None:
    most = REASON if look.format == "table" else ENDLESS
    rows = [
        (
            v.name,
            v.maintain,
            v.group,
            v.policy,
            ", ".join(v.reads),
            v.behind,
            v.strategy,
            shortened(v.reason or "", most),
        )
        for v in views
    ]
    write_rows(
        ("view", "maintain", "viewgroup", "policy", "reads", "behind", "last strategy", "computed anew because"),
        rows,
        look.format,
    )


def show_groups(groups: Sequence[GroupStatus], look: Look) -> None:
    rows = [
        (
            g.name,
            g.schedule,
            ", ".join(g.views),
            g.state,
            _time(g.state_at),
            shown(g.behind),
            _time(g.due_at),
            g.comment,
        )
        for g in groups
    ]
    names = ("viewgroup", "refresh", "views", "state", "state of", "behind", "next refresh", "comment")
    write_rows(names, rows, look.format)


def show_sources(sources: Sequence[SourceStatus], look: Look) -> None:
    most = REASON if look.format == "table" else ENDLESS
    rows = [
        (
            s.name,
            s.url,
            s.mode,
            s.state,
            ", ".join(t.table for t in s.tables),
            s.rows,
            s.waiting_rows,
            "; ".join(shortened(e, most) for e in (s.error, *(t.error for t in s.tables)) if e),
        )
        for s in sources
    ]
    write_rows(("source", "url", "consistency", "state", "tables", "captured", "waiting", "error"), rows, look.format)


def show_sessions(sessions: Sequence[SessionRecord], look: Look) -> None:
    rows = [(s.id, s.version, s.grain, moment(s.opened_at), s.holder) for s in sessions]
    write_rows(("session", "version", "grain", "opened", "by"), rows, look.format)


def show_refreshes(records: Sequence[RefreshRecord], look: Look) -> None:
    rows = [(r.view, r.vn, r.strategy, r.rows, shown(r.seconds), moment(r.refreshed_at)) for r in records]
    write_rows(("view", "version", "strategy", "rows", "took", "at"), rows, look.format)


def _time(seconds: float | None) -> str:
    return "" if seconds is None else moment(seconds)


def show_columns(table: TableRecord, look: Look) -> None:
    rows = [(c.name, c.type, c.nullable, c.name in table.schema.key) for c in table.schema.columns if not c.hidden]
    write_rows(("column", "type", "nullable", "key"), rows, look.format)
