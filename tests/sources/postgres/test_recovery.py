"""The source breaks off at any point: the call says so, and the same call again gives every change exactly once."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
import sqlglot
from sqlglot import exp
from tests.servers import PostgresServer, postgres_with
from tests.sources.history import writers
from tests.sources.lab import Row, bag, net, plus
from tests.sources.postgres.lab import PostgresLab
from tests.waiting import wait_until

from matview.errors import SourceUnreachable
from matview.sources import connect
from matview.sources.engine import SourceTable
from matview.sources.postgres import PostgresSource
from matview.sources.postgres.connect import Connections
from matview.sources.postgres.patience import Patience
from matview.sources.urls import SourceUrl

STOCK = (
    "CREATE TABLE stock (id int PRIMARY KEY, city varchar(40), amount numeric(12,2))",
    "INSERT INTO stock SELECT g, 'Oslo', g FROM generate_series(1, 50) AS g",
)
QUERY = sqlglot.parse_one("SELECT id, city, amount FROM stock", dialect="spark")
assert isinstance(QUERY, exp.Query)


class Cutting(Connections):
    """The server ends the connection just before the statement of that number."""

    at = 0
    seen = 0

    def _new(self) -> psycopg.Connection[tuple[Any, ...]]:
        connection = super()._new()
        execute = connection.execute

        def counted(*args: Any, **options: Any) -> Any:
            self.seen += 1
            if self.seen == self.at:
                self.cut(connection)
            return execute(*args, **options)

        connection.execute = counted  # type: ignore[method-assign]
        return connection

    def cut(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        pid = connection.info.backend_pid
        self.lab.asked(f"SELECT pg_terminate_backend({pid})")
        wait_until(lambda: not self.lab.asked(f"SELECT 1 FROM pg_stat_activity WHERE pid = {pid}"))

    lab: PostgresLab


class Cut(PostgresSource):
    """A source whose connections can be cut."""

    def __init__(self, lab: PostgresLab, patience: Patience | None = None) -> None:
        super().__init__(SourceUrl.parse(lab.url), patience)
        self._connections.close()
        self.connections = Cutting(SourceUrl.parse(lab.url))
        self.connections.lab = lab
        self._connections = self.connections

    def cut_everywhere(self, action: Callable[[], object], again: Callable[[], object]) -> int:
        """The action, cut at its first statement, at its second and so on until it ends before it is cut. Each time it
        must say so, and afterwards `again` must do what it does."""
        number = 0
        while True:
            number += 1
            self.connections.seen, self.connections.at = 0, number
            try:
                action()
            except SourceUnreachable:
                self.connections.at = 0
                again()
            else:
                self.connections.at = 0
                if self.connections.seen < number:
                    return number


@pytest.fixture
def source(lab: PostgresLab) -> Iterator[Cut]:
    lab.execute(*STOCK)
    source = Cut(lab)
    yield source
    source.close()


@pytest.fixture
def stock(source: Cut) -> list[SourceTable]:
    tables = source.describe(["stock"])
    source.install(tables)
    return tables


def now(lab: PostgresLab) -> Counter[Row]:
    return Counter(lab.rows("stock", ("id", "city", "amount")))


def first(source: PostgresSource, tables: list[SourceTable]) -> Counter[Row]:
    with source.first_state(tables) as state:
        rows = bag(b for part in state.slices(tables[0], 20) for b in state.read(part))
    source.acknowledge(tables, state.taken)
    return rows


@pytest.mark.conforms("M10")
def test_installation_and_removal_are_cut(lab: PostgresLab, source: Cut) -> None:
    before, tables = lab.objects(), source.describe(["stock"])

    def is_whole() -> None:
        source.install(tables)
        assert source.check(tables, installed=True) == []
        lab.execute("UPDATE stock SET amount = amount + 1 WHERE id = 1")
        assert source.capture(tables).rows == 2
        source.remove(tables)
        assert lab.objects() == before

    def install() -> None:
        source.install(tables)
        source.remove(tables)

    assert source.cut_everywhere(install, is_whole) > 20


@pytest.mark.conforms("M10")
def test_the_first_state_is_cut(lab: PostgresLab, source: Cut, stock: list[SourceTable]) -> None:
    lab.execute("DELETE FROM stock WHERE id < 10")

    def is_whole() -> None:
        assert first(source, stock) == now(lab)
        lab.execute("UPDATE stock SET amount = amount + 1 WHERE id = 20")

    assert source.cut_everywhere(is_whole, is_whole) > 8


@pytest.mark.conforms("M10")
def test_rounds_are_cut(lab: PostgresLab, source: Cut, stock: list[SourceTable]) -> None:
    """Capture, changes again, evaluation and acknowledgement, each cut everywhere: nothing is lost, nothing twice."""
    seen = first(source, stock)
    steps = Counter[str]()

    def cut(what: str, action: Callable[[], Any]) -> Any:
        result: list[Any] = []

        def kept() -> None:
            result.append(action())

        steps[what] += source.cut_everywhere(kept, kept)
        return result[-1]

    for statement in ("UPDATE stock SET amount = amount + 1", "DELETE FROM stock WHERE id > 40", "TRUNCATE stock"):
        lab.execute(statement)
        captured = cut("capture", lambda: source.capture(stock))
        old = plus(seen, net(captured, table="stock"))
        assert old == now(lab)
        lab.execute("INSERT INTO stock VALUES (1000, 'later', 1)", "DELETE FROM stock WHERE id = 3")
        again = cut("changes", lambda: source.changes(stock, captured.taken))  # noqa: B023
        assert net(again, table="stock") == net(captured, table="stock")
        shipped = cut("evaluate", lambda: bag(source.evaluate(QUERY, stock, captured.taken, {})))  # noqa: B023
        assert shipped == old
        cut("acknowledge", lambda: source.acknowledge(stock, captured.taken))  # noqa: B023
        seen = old
        lab.execute("DELETE FROM stock WHERE id = 1000")
        captured = source.capture(stock)
        seen = plus(seen, net(captured, table="stock"))
        source.acknowledge(stock, captured.taken)
        assert seen == now(lab)
    assert all(steps[what] > 6 for what in ("capture", "changes", "evaluate", "acknowledge")), steps


def test_a_connection_is_cut_in_the_middle_of_an_answer(
    lab: PostgresLab, source: Cut, stock: list[SourceTable]
) -> None:
    lab.execute("INSERT INTO stock SELECT g, repeat('long', 10), g FROM generate_series(101, 150000) AS g")
    captured = source.capture(stock)
    answer = source.evaluate(QUERY, stock, captured.taken, {})
    next(answer)
    with psycopg.connect(lab.users_url, autocommit=True) as administrator:
        administrator.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'active' AND query ~ '^COPY'"
        )
        with pytest.raises(SourceUnreachable):
            list(answer)
    assert sum(bag(source.evaluate(QUERY, stock, captured.taken, {})).values()) == 149950


def test_an_answer_that_nobody_wants_any_more_leaves_nothing_open(
    lab: PostgresLab, source: Cut, stock: list[SourceTable]
) -> None:
    lab.execute("INSERT INTO stock SELECT g, repeat('long', 10), g FROM generate_series(101, 150000) AS g")
    answer = source.evaluate(QUERY, stock, source.capture(stock).taken, {})
    next(answer)
    answer.close()  # type: ignore[attr-defined]
    still = "SELECT pid FROM pg_stat_activity WHERE state <> 'idle' AND query ~ '^COPY'"
    wait_until(lambda: not lab.asked(still))


def test_a_statement_that_takes_too_long_for_the_source(
    lab: PostgresLab, source: Cut, stock: list[SourceTable]
) -> None:
    lab.execute("INSERT INTO stock SELECT g, 'Oslo', g FROM generate_series(100, 200000) AS g")
    hurried = connect(lab.url.replace("-csearch_path", "-cstatement_timeout%3D20%20-csearch_path"))
    with pytest.raises(SourceUnreachable, match="statement timeout"):
        hurried.capture(stock)
    hurried.close()
    assert source.capture(stock).rows == 199901


# the server -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def careless() -> Iterator[PostgresServer]:
    """A server that says yes before a commit is on disk, and is in no hurry to put it there."""
    with postgres_with({"synchronous_commit": "off", "wal_writer_delay": "10s"}) as server:
        yield server


@pytest.mark.conforms("M10")
def test_the_server_crashes(careless: PostgresServer) -> None:
    """What was captured is still there, what was acknowledged stays away, and connections are made anew."""
    lab = PostgresLab(careless.new_database(), 0)
    lab.execute(*STOCK)
    source = connect(lab.url)
    tables = source.describe(["stock"])
    source.install(tables)
    with source.first_state(tables) as state:
        seen = bag(b for part in state.slices(tables[0], 20) for b in state.read(part))
        first_taken = state.taken
    crash(careless, lab)
    assert seen == now(lab)
    source.acknowledge(tables, first_taken)
    lab.execute("UPDATE stock SET amount = amount + 1 WHERE id < 25")
    captured = source.capture(tables)
    seen = plus(seen, net(captured, table="stock"))
    crash(careless, lab)
    assert seen == now(lab)
    assert net(source.changes(tables, captured.taken), table="stock") == net(captured, table="stock")
    source.acknowledge(tables, captured.taken)
    crash(careless, lab)
    assert source.capture(tables).rows == 0
    source.close()


def crash(server: PostgresServer, lab: PostgresLab) -> None:
    lab.close()
    server.control("stop", "-m", "immediate")
    server.control("start")


def test_a_source_that_is_down(careless: PostgresServer) -> None:
    lab = PostgresLab(careless.new_database(), 1)
    lab.execute(*STOCK)
    source = connect(lab.url)
    tables = source.describe(["stock"])
    source.install(tables)
    careless.control("stop", "-m", "fast")
    try:
        for action in (
            source.tables,
            lambda: source.capture(tables),
            lambda: source.waiting(tables),
            lambda: connect(lab.url),
        ):
            with pytest.raises(SourceUnreachable) as refusal:
                action()
            assert refusal.value.help
    finally:
        careless.control("start")
    assert source.capture(tables).rows == 0
    source.close()


# locks ----------------------------------------------------------------------------------------------------------------


def test_installation_gives_way_to_a_long_transaction(lab: PostgresLab) -> None:
    lab.execute(*STOCK)
    told: list[str] = []
    source = Cut(lab, Patience(in_all=0.6, progress=told.append))
    tables, before = source.describe(["stock"]), lab.objects()
    long_one, other = lab.writer(), lab.writer()
    long_one.begin()
    long_one.execute("UPDATE stock SET amount = 0 WHERE id = 1")
    other.execute("SET lock_timeout = '5s'")
    done = threading.Event()

    def write() -> None:
        while not done.is_set():
            other.execute("UPDATE stock SET amount = amount + 1 WHERE id = 2")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with pytest.raises(SourceUnreachable, match=r"stock was in use for 0.6 s: process .* in a transaction since"):
            source.install(tables)
    finally:
        done.set()
        writer.join()
    assert told
    assert lab.objects() == before
    source.patience = Patience(
        in_all=20, progress=lambda _: long_one.commit() if long_one.connection.info.transaction_status else None
    )  # type: ignore[attr-defined]
    source.install(tables)
    assert source.check(tables, installed=True) == []
    source.close()
    long_one.close()
    other.close()


@pytest.mark.conforms("M6")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_installed_beside_writers(lab: PostgresLab, source: Cut, seed: int) -> None:
    """No gap and no overlap between the first state and what is captured."""
    lab.execute("CREATE TABLE heap (id int, city varchar(40), amount numeric(12,2))")
    tables = source.describe(["stock", "heap"])
    with writers(lab, [("stock", True), ("heap", False), ("stock", True)], seed, enough=60) as done:
        wait_until(lambda: len(done) > 5)
        source.install(tables)
        with source.first_state(tables) as state:
            seen = {t.name: bag(b for part in state.slices(t, 20) for b in state.read(part)) for t in tables}
        source.acknowledge(tables, state.taken)
    captured = source.capture(tables)
    for table in tables:
        seen[table.name] = plus(seen[table.name], net(captured, table=table.name))
        assert seen[table.name] == Counter(lab.rows(table.name, ("id", "city", "amount")))


def test_a_table_is_emptied_while_its_first_state_is_read(
    lab: PostgresLab, source: Cut, stock: list[SourceTable]
) -> None:
    """TRUNCATE does not respect snapshots: it has to wait for the lock."""
    before = now(lab)
    waiting = "SELECT pid FROM pg_locks WHERE NOT granted AND relation = 'stock'::regclass"
    with source.first_state(stock) as state:
        emptying = "BEGIN; TRUNCATE stock; INSERT INTO stock VALUES (7, 'x', 1); COMMIT"
        thread = threading.Thread(target=lambda: lab.writer().execute(emptying))
        thread.start()
        wait_until(lambda: lab.asked(waiting))
        seen = bag(b for part in state.slices(stock[0], 20) for b in state.read(part))
    thread.join()
    assert seen == before
    source.acknowledge(stock, state.taken)
    assert plus(seen, net(source.capture(stock), table="stock")) == now(lab)
