"""The command line: `matview VERB ...`. Thin: one verb, one file; what a verb does is done elsewhere.

app        the verbs, the exit codes          where      which warehouse is meant
init  sql  refresh  explain  diff  audit                 the verbs
session  status  history  gc  demo                       more of them
pieces     a text of several statements       shell      runs them: transactions, reader session, timing
prompt     the interactive prompt             commands   what begins with a backslash there
rows       as a table, CSV or JSON            report     errors
texts      sentences and values               durations  times, as people write and read them
opened     a warehouse, whose Spark is announced before it starts
"""

import gc

gc.set_threshold(50_000)  # imports make objects by the ten thousand that stay: looking through them takes 0.1 s

from matview.cli.app import main  # noqa: E402

__all__ = ["main"]
