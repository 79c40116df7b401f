"""Random transactions on a table (id, city, amount), by several writers at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random

from tests.sources.lab import Lab, Writer
from tests.waiting import wait_until

CITIES = ("Oslo", "Bergen", "O''Hara", "", "Ålesund")


def statement(random: Random, table: str, keyed: bool) -> str:
    """One statement of a user; keys meet often enough, rows repeat where there is no key."""
    key, other = random.randrange(60), random.randrange(60)
    city, amount = random.choice(CITIES), random.choice(("NULL", "1.50", "-2.25", "1000000.01"))
    match random.randrange(6):
        case 0 | 1 if keyed:
            return f"DELETE FROM {table} WHERE id = {key}"
        case 0 | 1:
            return f"INSERT INTO {table} VALUES ({key}, '{city}', {amount}), ({key}, '{city}', {amount})"
        case 2:
            return f"INSERT INTO {table} SELECT {key} + 100 * (1 + id), '{city}', {amount} FROM {table} WHERE id < 4"
        case 3:
            return f"UPDATE {table} SET amount = {amount}, city = '{city}' WHERE id BETWEEN {key} AND {key + 5}"
        case 4:
            return f"DELETE FROM {table} WHERE id BETWEEN {other} AND {other + 1} OR id > 90 + {key}"
        case _:
            return f"INSERT INTO {table} VALUES ({key}, '{city}', {amount})"


def run(lab: Lab, random: Random, table: str, keyed: bool, stop: threading.Event, done: list[int]) -> None:
    """Transactions until told to stop; what fails (a key twice) rolls its transaction back."""
    writer = lab.writer()
    try:
        while not stop.is_set():
            transaction(lab, writer, random, table, keyed)
            done.append(1)
    finally:
        writer.close()


def transaction(lab: Lab, writer: Writer, random: Random, table: str, keyed: bool) -> None:
    try:
        writer.begin()
        for _ in range(random.randint(1, 3)):
            writer.execute(statement(random, table, keyed))
        if random.random() < 0.2:
            writer.rollback()
        else:
            writer.commit()
    except lab.conflicts:
        writer.rollback()


@contextmanager
def writers(lab: Lab, tables: Sequence[tuple[str, bool]], seed: int, *, enough: int = 40) -> Iterator[list[int]]:
    """Writers of those tables during the block; it ends no sooner than after `enough` transactions. Yields how many
    there have been, as a list that grows."""
    stop, done, failures = threading.Event(), list[int](), list[BaseException]()

    def guarded(random: Random, table: str, keyed: bool) -> None:
        try:
            run(lab, random, table, keyed, stop, done)
        except BaseException as failure:
            failures.append(failure)

    threads = [
        threading.Thread(target=guarded, args=(Random(f"{seed}/{number}"), lab.quote(table), keyed), daemon=True)
        for number, (table, keyed) in enumerate(tables)
    ]
    for thread in threads:
        thread.start()
    try:
        yield done
        wait_until(lambda: failures or len(done) >= enough)
    finally:
        stop.set()
        for thread in threads:
            thread.join(30)
    if failures:
        raise failures[0]
