"""Sets of numbers as ranges, held against sets of numbers."""

from __future__ import annotations

from random import Random

from matview.sources.mariadb.numbers import GREATEST, Numbers


def numbers(random: Random) -> set[int]:
    return set(random.sample(range(1, 40), random.randrange(20)))


def test_ranges_are_what_sets_are() -> None:
    random = Random(5)
    for _ in range(300):
        some = [numbers(random) for _ in range(random.randrange(4))]
        united = Numbers.united(map(Numbers.of, some))
        assert united == Numbers.of(set[int]().union(*some))
        assert Numbers.united([united, united.others()]).ranges == ((1, GREATEST),)
        assert Numbers.united([united, united.others()]) == Numbers.of(()).others()
        inside = {number for low, high in united.ranges for number in range(low, high + 1)}
        outside = {number for low, high in united.others().ranges for number in range(low, min(high, 39) + 1)}
        assert (inside, outside) == (set[int]().union(*some), set(range(1, 40)) - inside)


def test_long_ranges_are_not_counted_out() -> None:
    long = Numbers(((1, 10**15),))
    assert Numbers.united([long, Numbers(((10**15 + 1, 10**16),))]).ranges == ((1, 10**16),)
    assert long.others().ranges == ((10**15 + 1, GREATEST),)
