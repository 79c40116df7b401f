"""The verbs, and what becomes of whatever they raise. Exit codes: 0 ok, 1 failed, 2 usage."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from cyclopts import App, CycloptsError, UnknownCommandError

from matview import __version__
from matview.cli.interrupts import Worker
from matview.cli.report import UsageError, report_bug, report_error, report_plain, report_usage
from matview.errors import MatviewError

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130


@dataclass(frozen=True, slots=True)
class Verb:
    """A command, imported only when it is asked for: a command without Spark must not wait for PySpark's import."""

    name: str
    home: str
    help: str


VERBS = (
    Verb(
        "init",
        "matview.cli.init:init",
        """Make a new warehouse.

        Example: `matview init shop.wh --versions 4`
        """,
    ),
    Verb(
        "sql",
        "matview.cli.sql:sql",
        r"""Run SQL: one statement, a file of them, or an interactive prompt.

        A query reads the newest version, or that of `--session`. A change is a maintenance transaction of its own.
        A file is parsed as a whole before anything runs; then it stops at the first error.

        Example: `matview sql -w shop.wh "SELECT city, sum(amount) FROM sales GROUP BY city"`

        Example: `matview sql -w shop.wh --file load.sql --atomic`

        Example: `matview sql -w shop.wh "SELECT * FROM sales" --print --dialect duckdb | duckdb`
        """,
    ),
    Verb(
        "plan",
        "matview.cli.plan:plan",
        """What files of definitions would create, change and drop, and all that would be illegal then. Needs no Spark.

        A file says how things should be: CREATE of what is there, and just so, changes nothing; of a view or a
        viewgroup that differs, it alters it. Nothing is done. Ends with 1 if anything is wrong.

        Example: `matview plan -w shop.wh tables.sql views.sql`
        """,
    ),
    Verb(
        "apply",
        "matview.cli.apply:apply",
        """Do what `matview plan` tells, all of it as one version, or nothing.

        Example: `matview apply -w shop.wh tables.sql views.sql`
        """,
    ),
    Verb(
        "refresh",
        "matview.cli.refresh:refresh",
        """Bring viewgroups and materialized views up to date, all of them at one version.

        A snapshot view is refreshed with its viewgroup.

        Each is refreshed by the cheapest strategy: `delta` (from the changes alone), `affected` (the groups or
        partitions that the changes meet), or `full`. One whose tables have not changed starts no job.

        Example: `matview refresh -w shop.wh reports by_day`

        Example: `matview refresh -w shop.wh --all`
        """,
    ),
    Verb(
        "source",
        "matview.cli.source:app",
        """Add, list, check and remove sources: databases whose tables are captured.

        Example: `matview source add -w shop.wh shop 'postgresql://reader@db/shop?password_env=SHOP_PASSWORD' orders`
        """,
    ),
    Verb(
        "ingest",
        "matview.cli.ingest:ingest",
        """Take over what has committed at the sources since the last time, as one version.

        Ends with 1 if a source could not be asked; the others are taken over all the same.

        Example: `matview ingest -w shop.wh`

        Example: `matview ingest -w shop.wh shop`
        """,
    ),
    Verb(
        "run",
        "matview.cli.run:run",
        """Take over changes of sources and refresh viewgroups when they are due, until SIGTERM or Ctrl-C.

        A group whose times were missed is refreshed once. What fails is tried again later, and keeps no other back.
        Sources are asked all the time, or as often as `--ingest-every` says.

        Example: `matview run -w shop.wh`

        Example: `matview run -w shop.wh --ingest-every '1 minute'`

        Example: `matview run -w shop.wh --once`
        """,
    ),
    Verb(
        "explain",
        "matview.cli.explain:explain",
        """How a view is maintained: algebra, ADD and DEL, strategies with their costs, SQL, what is read.

        Example: `matview explain -w shop.wh by_city`

        Example: `matview explain -w shop.wh --sql "CREATE MATERIALIZED VIEW v AS SELECT DISTINCT city FROM sales"`
        """,
    ),
    Verb(
        "diff",
        "matview.cli.diff:diff",
        """A view against its query computed anew: `+` rows that it lacks, `-` rows that it has too many.

        The query is computed over the tables as the view has taken them over, the state that it shows; with
        `--newest` over the tables as they are, which is what a refresh would change. Ends with 1 if there are any.

        Example: `matview diff -w shop.wh by_city --limit 5`
        """,
    ),
    Verb(
        "audit",
        "matview.cli.audit:audit",
        """Every view against its query computed anew, over the state that it shows. Ends with 1 if any differs.

        Example: `matview audit -w shop.wh`
        """,
    ),
    Verb(
        "session",
        "matview.cli.session:app",
        """Open, list and close reader sessions: every query in a session reads one version.

        Example: `S=$(matview session open -w shop.wh --ttl '2 hours'); matview sql -w shop.wh --session $S`
        """,
    ),
    Verb(
        "status",
        "matview.cli.status:status",
        """Versions, tables with their storage, views, sources, open sessions, advice. Needs no Spark.

        Example: `matview status -w shop.wh --json`
        """,
    ),
    Verb(
        "history",
        "matview.cli.history:history",
        """Maintenance transactions, the newest first. Needs no Spark.

        Example: `matview history -w shop.wh --limit 5`
        """,
    ),
    Verb(
        "gc",
        "matview.cli.gc:gc",
        """Collect garbage: what no session, and no query still running, can need.

        Example: `matview gc -w shop.wh`
        """,
    ),
    Verb(
        "demo",
        "matview.cli.demo:app",
        """The papers' stories, live: stores are maintained while analysts read; a retailer with six views.

        Example: `matview demo`

        Example: `matview demo retail`
        """,
    ),
)

IN_FRONT = frozenset({"sql", "run", "demo"})
"""These see to Ctrl-C themselves, in the main thread."""

HELP = """Materialized views in a Spark lakehouse, read consistently while they are maintained.

Example: `matview init shop.wh && export MATVIEW_WAREHOUSE=shop.wh && matview sql`
"""


def make_app() -> App:
    app = App(
        name="matview",
        help=HELP,
        version=__version__,
        help_format="markdown",
        exit_on_error=False,
        print_error=False,
        result_action="return_value",
        suppress_keyboard_interrupt=False,
    )
    for place, verb in enumerate(VERBS):
        app.command(verb.home, name=verb.name, help=verb.help, sort_key=place)
    return app


def main(tokens: Sequence[str] | None = None) -> int:
    """Runs one command line; gives the exit code. Whatever is raised is told on stderr, without a stack trace."""
    try:
        code = _called(list(sys.argv[1:] if tokens is None else tokens))
    except UnknownCommandError as error:
        report_usage(_unknown_verb((error.unused_tokens or [""])[0]))
        return USAGE
    except (CycloptsError, UsageError) as error:
        report_usage(error)
        return USAGE
    except MatviewError as error:
        report_error(error)
        return FAILED
    except KeyboardInterrupt:
        report_plain("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        _forget_stdout()
        return FAILED
    except OSError as error:
        report_plain(str(error))
        return FAILED
    except Exception as error:  # a bug of ours: users get no stack trace unless they ask for it
        report_bug(error)
        return FAILED
    return code if isinstance(code, int) else OK


def _called(tokens: list[str]) -> object:
    app = make_app()
    return app(tokens) if tokens and tokens[0] in IN_FRONT else Worker().run(lambda: app(tokens))


def _unknown_verb(name: str) -> UsageError:
    """By hand: Cyclopts would import every verb, PySpark and all, to say what was meant."""
    verbs = [verb.name for verb in VERBS]
    meant = get_close_matches(name, verbs, n=1)
    return UsageError(
        f"there is no command {name!r}", help=f"did you mean {meant[0]!r}?" if meant else ", ".join(verbs)
    )


def _forget_stdout() -> None:
    """Who read our output has gone (`matview history | head -1`): Python must not complain again at its exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
