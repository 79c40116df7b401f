"""Capture comes and goes without a trace, and notices what is done to it."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.sources.contract.common import (
    Fixtures,
    captured_from_here,
    ids,
)
from tests.sources.lab import Lab, net

from matview.errors import CaptureBypassed, MatviewError
from matview.sources import connect
from matview.sources.engine import Source


class Installed(Fixtures):
    def test_nothing_stands_against_it_before_and_nothing_has_drifted_after(self, lab: Lab, source: Source) -> None:
        lab.execute("CREATE TABLE fine (id INTEGER PRIMARY KEY, city VARCHAR(40))")
        tables = source.describe(["fine"])
        assert source.check(tables, installed=False) == []
        source.install(tables)
        assert source.check(tables, installed=True) == []
        lab.execute("INSERT INTO fine VALUES (1, 'x')")
        source.acknowledge(tables, source.capture(tables).taken)
        assert source.check(tables, installed=True) == []
        assert source.describe(["fine"]) == tables

    @pytest.mark.conforms("M1")
    def test_remove_leaves_nothing(self, lab: Lab, source: Source) -> None:
        lab.execute("CREATE TABLE one (id INTEGER PRIMARY KEY)", "CREATE TABLE two (id INTEGER)")
        before = lab.objects()
        tables = captured_from_here(source, "one", "two")
        assert lab.objects() != before
        lab.execute("INSERT INTO one VALUES (1)", "INSERT INTO two VALUES (1)")
        source.remove(tables[:1])
        assert ids(source.capture(tables[1:]).changes["two"]) == [1]
        source.remove(tables)
        assert lab.objects() == before
        source.remove(tables)
        lab.execute("INSERT INTO one VALUES (2)", "DELETE FROM two")

    @pytest.mark.conforms("M1")
    def test_two_warehouses_capture_one_table(self, lab: Lab, source: Source) -> None:
        """Neither takes anything from the other, in whichever order they come and go."""
        lab.execute("CREATE TABLE one (id INTEGER PRIMARY KEY)", "CREATE TABLE two (id INTEGER)")
        names, before = source.tables(), lab.objects()
        other = connect(lab.beside())
        tables = captured_from_here(source, "one", "two")
        captured_from_here(other, "one", "two")
        assert source.tables() == other.tables() == names
        lab.execute("INSERT INTO one VALUES (1)", "INSERT INTO two VALUES (1)")
        source.acknowledge(tables, source.capture(tables).taken)
        assert source.check(tables, installed=True) == other.check(tables, installed=True) == []
        source.remove(tables)
        lab.execute("INSERT INTO one VALUES (2)", "UPDATE two SET id = 3")
        captured = other.capture(tables)
        assert sorted(ids(captured.changes["one"])) == [1, 2]
        assert net(captured, table="two") == Counter({(3,): 1})
        captured_from_here(source, "one")
        other.remove(tables)
        lab.execute("DELETE FROM one WHERE id = 1")
        assert ids(source.capture(tables[:1]).changes["one"]) == [1]
        source.remove(tables)
        assert lab.objects() == before
        other.close()

    def test_to_install_again_is_harmless(self, lab: Lab, source: Source, stock) -> None:
        lab.execute("INSERT INTO stock VALUES (70, 'x', 1)")
        source.install(stock)
        lab.execute("INSERT INTO stock VALUES (71, 'x', 1)")
        assert sorted(ids(source.capture(stock).changes["stock"])) == [70, 71]

    def test_drift_is_noticed(self, lab: Lab, source: Source) -> None:
        for number, (what, statements) in enumerate(lab.drifts.items()):
            name = f"drifting_{number}"
            lab.execute(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, city VARCHAR(40), amount DECIMAL(12,2))")
            lab.execute(f"CREATE TABLE steady_{number} (id INTEGER PRIMARY KEY)")
            tables = captured_from_here(source, name, f"steady_{number}")
            assert source.check(tables, installed=True) == []
            lab.execute(*(statement.replace("{table}", name) for statement in statements))
            problems = source.check(tables, installed=True)
            assert {problem.table for problem in problems} == {name}, what
            assert all(problem.help for problem in problems), what
            assert (CaptureBypassed.code in {problem.code for problem in problems}) == (what in lab.bypasses), what
            with pytest.raises(MatviewError, match=name):
                source.capture(tables)
            assert source.capture(tables[1:]).rows == 0
