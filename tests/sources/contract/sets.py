"""A round takes a set of transactions: none is lost, none is taken twice, in whatever order they commit."""

from __future__ import annotations

import json

import pytest
from tests.sources.contract.common import (
    AS_AT_FIRST,
    STATEMENTS,
    Fixtures,
    ids,
    now,
)
from tests.sources.lab import Lab, net, plus

from matview.errors import MatviewError
from matview.sources import connect
from matview.sources.engine import Source


class Sets(Fixtures):
    @pytest.mark.conforms("M6", "M9")
    def test_two_rounds(self, lab: Lab, source: Source, stock) -> None:
        lab.execute("INSERT INTO stock VALUES (40, 'first', 1)")
        first = source.capture(stock)
        lab.execute("INSERT INTO stock VALUES (41, 'second', 1)")
        source.acknowledge(stock, first.taken)
        second = source.capture(stock)
        assert ids(first.changes["stock"]) == [40]
        assert ids(second.changes["stock"]) == [41]
        source.acknowledge(stock, second.taken)
        assert source.capture(stock).rows == 0

    @pytest.mark.conforms("M9")
    def test_to_acknowledge_again_is_harmless(self, lab: Lab, source: Source, stock) -> None:
        lab.execute("INSERT INTO stock VALUES (40, 'first', 1)")
        first = source.capture(stock)
        source.acknowledge(stock, first.taken)
        lab.execute("INSERT INTO stock VALUES (41, 'second', 1)")
        source.acknowledge(stock, first.taken)
        source.acknowledge(stock, json.loads(json.dumps(first.taken)))
        assert ids(source.capture(stock).changes["stock"]) == [41]

    @pytest.mark.conforms("M10")
    def test_the_changes_of_a_set_are_the_same_again(self, lab: Lab, source: Source, stock) -> None:
        lab.execute("INSERT INTO stock VALUES (40, 'first', 1)", "DELETE FROM stock WHERE id = 1")
        first = source.capture(stock)
        lab.execute("UPDATE stock SET city = 'later'", "INSERT INTO stock VALUES (41, 'later', 1)")
        after_a_crash = connect(lab.url)
        again = after_a_crash.changes(stock, json.loads(json.dumps(first.taken)))
        after_a_crash.close()
        assert net(again, table="stock") == net(first, table="stock")
        assert (again.transactions, again.rows) == (first.transactions, first.rows)

    @pytest.mark.conforms("M6")
    def test_a_lower_transaction_that_commits_later_is_neither_lost_nor_taken_twice(
        self, lab: Lab, source: Source, stock
    ) -> None:
        if not lab.many_writers:
            pytest.skip("one writer at a time: nobody can be late")
        late, early = lab.writer(), lab.writer()
        late.begin()
        late.execute("INSERT INTO stock VALUES (50, 'late', 1)")
        early.begin()
        early.execute("INSERT INTO stock VALUES (51, 'early', 1)")
        early.commit()
        first = source.capture(stock)
        assert ids(first.changes["stock"]) == [51]
        late.execute("INSERT INTO stock VALUES (52, 'late', 1)")
        late.commit()
        assert ids(source.changes(stock, first.taken).changes["stock"]) == [51]
        source.acknowledge(stock, first.taken)
        assert sorted(ids(source.capture(stock).changes["stock"])) == [50, 52]
        late.close()
        early.close()

    @pytest.mark.conforms("M6")
    def test_one_set_for_several_tables(self, lab: Lab, source: Source, stock, heap) -> None:
        lab.together("INSERT INTO stock VALUES (60, 'x', 1)", "INSERT INTO heap VALUES (60, 'x', 1)")
        captured = source.capture([*stock, *heap])
        assert ids(captured.changes["stock"]) == ids(captured.changes["heap"]) == [60]
        source.acknowledge([*stock, *heap], captured.taken)
        assert source.capture([*stock, *heap]).rows == 0

    @pytest.mark.conforms("M18")
    def test_a_round_beside_one_that_is_not_acknowledged(self, lab: Lab, source: Source, stock) -> None:
        lab.execute("INSERT INTO stock VALUES (65, 'one', 1)")
        one = source.capture(stock)
        lab.execute("INSERT INTO stock VALUES (66, 'two', 1)")
        two = source.capture(stock, besides=[one.taken])
        assert (ids(one.changes["stock"]), ids(two.changes["stock"])) == ([65], [66])
        lab.execute("INSERT INTO stock VALUES (67, 'three', 1)")
        source.acknowledge(stock, one.taken)
        assert ids(source.changes(stock, two.taken).changes["stock"]) == [66]
        three = source.capture(stock, besides=[two.taken])
        assert ids(three.changes["stock"]) == [67]
        source.acknowledge(stock, two.taken)
        assert ids(source.changes(stock, three.taken).changes["stock"]) == [67]
        source.acknowledge(stock, three.taken)
        assert source.capture(stock).rows == 0

    @pytest.mark.conforms("M13")
    def test_one_transaction_at_a_time(self, lab: Lab, source: Source, stock, heap) -> None:
        tables = [*stock, *heap]
        if not lab.orders_transactions:
            with pytest.raises(MatviewError):
                source.capture(tables, most=1)
            return
        states = [now(lab, "stock")]
        for statements in STATEMENTS.values():
            lab.together(*AS_AT_FIRST, *statements, "INSERT INTO heap VALUES (1, 'x', 1)")
            states.append(now(lab, "stock"))
        seen = [states[0]]
        while (captured := source.capture(tables, most=1)).transactions:
            assert captured.transactions == 1
            assert captured.changes["heap"].num_rows == 1
            seen.append(plus(seen[-1], net(captured, table="stock")))
            source.acknowledge(tables, captured.taken)
        assert seen == states

    def test_what_waits(self, lab: Lab, source: Source, stock, heap) -> None:
        tables = [*stock, *heap]
        nothing = source.waiting(tables)
        assert (nothing.rows, nothing.since) == (0, None)
        lab.execute("INSERT INTO stock VALUES (80, 'x', 1), (81, 'x', 1)", "UPDATE heap SET amount = 1 WHERE id = 1")
        waiting = source.waiting(tables)
        assert waiting.rows == 6
        assert waiting.since is not None
        assert waiting.since.tzinfo is not None
        captured = source.capture(tables)
        assert captured.transactions == 2 or not lab.orders_transactions
        source.acknowledge(tables, captured.taken)
        assert source.waiting(tables).rows == 0
