"""`matview demo`: the whole performance, from an empty directory to the closing table."""

from __future__ import annotations

import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.text import Text

from matview.demo.analyst import Analyst, Habit
from matview.demo.colleague import DESKS, READING, Colleague, Orders, told_if_failed
from matview.demo.events import Closed, Event, Expired, Failed, Started
from matview.demo.java import log_file, quiet_java
from matview.demo.maintainer import Maintainer, Pace, load
from matview.demo.place import cleared, marked, shown
from matview.demo.readers import WarehouseReader
from matview.demo.report import Verdict, closing_table, look_into, verdict_with_rewrite, verdict_without_rewrite
from matview.demo.screen import Frame, Screen, screen_for, whole_picture
from matview.demo.story import Figures, Story, tell
from matview.errors import BadSetting
from matview.reading.status import TableStatus
from matview.spark.session import spark_session
from matview.warehouse import Warehouse, open_warehouse

SEED = 1997
REFRESH = 0.25
PATIENCE = 120.0  # on a machine that is too busy, for two transactions and a session of everybody


@dataclass(frozen=True, slots=True)
class Mode:
    """How the analysts read, how that is announced, and what the run is to show."""

    desk: str
    title: str
    intro: str
    verdict: Callable[[Figures], Verdict]


INTRO = (
    "A chain of sporting-goods stores. DailySales and CityTotals change, both of them in one maintenance transaction"
    " after the other, while Ana, Ben and, in a process of her own, Cleo sum by city, drill down by product line, and"
    " check that the parts add up to the whole. "
)
WITH_REWRITE = Mode(
    "pinned",
    "On-line view maintenance",
    INTRO + "Each of their sessions reads one version of both tables, and waits for nobody.\n",
    verdict_with_rewrite,
)
WITHOUT_REWRITE = Mode(
    "naive",
    "On-line view maintenance WITHOUT the rewrite",
    INTRO + "This time without the rewrite: each query reads what is newest in each table.\n",
    verdict_without_rewrite,
)


@dataclass(frozen=True, slots=True)
class Script:
    """What is played: where, how long, and by whom."""

    path: str | None
    seconds: float
    mode: Mode
    versions: int
    seed: int
    pace: Pace
    here: tuple[Habit, ...]
    elsewhere: tuple[Habit, ...]

    def __post_init__(self) -> None:
        if not self.seconds > 0:
            raise BadSetting(f"the demo needs some seconds, not {self.seconds:g}")

    @property
    def frame(self) -> Frame:
        names = tuple(habit.name for habit in (*self.here, *self.elsewhere))
        return Frame(names, self.seconds, f"{self.mode.title} · {self.versions}VNL")


@dataclass(frozen=True, slots=True)
class Played:
    """What remains when the curtain has fallen."""

    place: Path
    story: Story
    tables: tuple[TableStatus, ...]


def run(
    path: str | None = None,
    *,
    seconds: float = 60.0,
    rewrite: bool = True,
    versions: int = 2,
    seed: int = SEED,
) -> int:
    """Plays the demo and says what it has shown; 0 if that is what it should show, 1 if not."""
    console = Console()
    script = standard(path, seconds, WITH_REWRITE if rewrite else WITHOUT_REWRITE, versions, seed)
    console.print(script.mode.intro)
    return curtain(script, play(script, console), console)


def standard(path: str | None, seconds: float, mode: Mode, versions: int, seed: int) -> Script:
    """Two analysts in this process and one in another, who every other time stays until she is told to begin anew."""
    ana = Habit("Ana", drills=2, think=1.0, long_every=5, seed=seed + 1)
    ben = Habit("Ben", drills=4, think=1.5, long_every=3, seed=seed + 2)
    cleo = Habit("Cleo", drills=3, think=1.2, long_every=2, long_drills=99, seed=seed + 3)
    return Script(path, seconds, mode, versions, seed, Pace(), (ana, ben), (cleo,))


def play(script: Script, console: Console) -> Played:
    """Sets the stage, lets everybody work for the time given, and sees them off."""
    place = cleared(script.path)
    with ExitStack() as stack:
        log = log_file()
        colleagues = [Colleague(Orders(str(place), script.mode.desk, habit), log) for habit in script.elsewhere]
        for colleague in colleagues:
            stack.callback(colleague.end)
        with console.status("Starting Spark, once here and once in the process of an analyst ..."), quiet_java(log):
            spark = spark_session()
        warehouse = stack.enter_context(open_warehouse(place, script.versions, spark))
        stack.enter_context(marked(place))
        with console.status("Loading the sales of sixty days ..."):
            first = load(warehouse, script.seed)
            performance = stack.enter_context(closing(Performance(script, warehouse, colleagues)))
        events = performance.run(screen_for(console, script.frame), first)
        story = tell(events)
        if not story.figures.failures:
            log.unlink()
        return Played(place, story, warehouse.status().tables)


class Performance:
    """Everybody at work: threads here, colleagues elsewhere, and one queue that all of them tell their events."""

    def __init__(self, script: Script, warehouse: Warehouse, colleagues: Sequence[Colleague]) -> None:
        self._script = script
        self._warehouse = warehouse
        self._colleagues = colleagues
        self._stop = threading.Event()
        self._heard: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._events: list[Event] = []
        self._own = [open_warehouse(warehouse.path, spark=warehouse.spark, settings=READING) for _ in script.here]

    def run(self, screen: Screen, first: int) -> list[Event]:
        """All that happened; Ctrl-C ends it early, and in order."""
        deadline = time.monotonic() + self._script.seconds
        threads = self._threads(deadline)
        self._heard.put(Started(time.time(), first, self._script.versions))
        with screen:
            self._begin(threads)
            with suppress(KeyboardInterrupt), _plain_interrupt():  # the audience has seen enough
                self._watch(screen, deadline, threads[0])
            self._end(threads)
            self._show(screen)
        return self._events

    def _begin(self, threads: Sequence[threading.Thread]) -> None:
        for thread in threads:
            thread.start()
        for colleague in self._colleagues:
            colleague.go(self._heard.put)

    def _watch(self, screen: Screen, deadline: float, maintenance: threading.Thread) -> None:
        """To the deadline; longer if maintenance is not through, or somebody has not yet had a session."""
        while time.monotonic() < deadline + PATIENCE and not self._failed():
            if time.monotonic() >= deadline and not maintenance.is_alive() and self._all_have_sat():
                return
            time.sleep(REFRESH)
            self._show(screen)

    def _failed(self) -> bool:
        return any(isinstance(event, Failed) for event in self._events)

    def _all_have_sat(self) -> bool:
        return {e.analyst for e in self._events if isinstance(e, Closed | Expired)} >= set(self._script.frame.analysts)

    def _end(self, threads: Sequence[threading.Thread]) -> None:
        self._stop.set()
        for colleague in self._colleagues:
            colleague.end()
        for thread in threads:
            thread.join()

    def _threads(self, deadline: float) -> list[threading.Thread]:
        """The first one is maintenance."""
        script = self._script
        maintainer = Maintainer(self._warehouse, script.seed, script.pace, self._heard.put, self._stop)
        work: dict[str, Callable[[], None]] = {"maintenance": partial(maintainer.work, deadline)}
        for habit, own in zip(script.here, self._own, strict=True):
            reader = WarehouseReader(own, DESKS[script.mode.desk])
            work[habit.name] = Analyst(habit, reader, self._heard.put, self._stop).rehearse_and_work
        return [
            threading.Thread(target=told_if_failed, args=(do, name, self._heard.put), name=name, daemon=True)
            for name, do in work.items()
        ]

    def _show(self, screen: Screen) -> None:
        while not self._heard.empty():
            self._events.append(self._heard.get())
        screen.show(self._events)

    def close(self) -> None:
        for warehouse in self._own:
            warehouse.close()


def curtain(script: Script, played: Played, console: Console) -> int:
    """The whole time line, the table, the verdict, and where to look."""
    figures = played.story.figures
    verdict = script.mode.verdict(figures)
    console.print(whole_picture(played.story, script.frame, min(console.width, 120)))
    console.print()
    console.print(closing_table(script.frame.title, figures, played.tables))
    console.print(Text(verdict.text, style="bold green" if verdict.good else "bold red"))
    console.print(look_into(shown(played.place)), soft_wrap=True)
    return 0 if verdict.good else 1


@contextmanager
def _plain_interrupt() -> Iterator[None]:
    """Ctrl-C as Python has it: Spark's own answer to it would cancel the queries that are running."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
