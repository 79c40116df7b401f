"""Window functions in a form that gives the same values for the same rows, one that Spark might give."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from matview.algebra.nodes import Node
from matview.algebra.scalars import column
from matview.sql.lower.context import Context
from matview.sql.lower.functions import NoSettledForm, Shown, called, is_aggregate_function, settled
from matview.sql.lower.ordering import explicit, ties_broken

_BY_ROW = (exp.RowNumber, exp.Ntile, exp.Lag, exp.Lead)
_BY_PEERS = (exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist)
_BY_PLACE = (exp.First, exp.FirstValue, exp.Last, exp.LastValue, exp.NthValue)


class NoSettledWindow(ValueError):
    """A window function whose value depends on how tied rows happen to be ordered."""


def settled_window(ctx: Context, node: Node, window: exp.Expr, by: Sequence[str]) -> tuple[exp.Window, Shown]:
    """The function over `node`, partitioned by the columns `by`, and what to make of its value."""
    order = tuple(explicit(o, o.this) for o in (window.args["order"].expressions if window.args.get("order") else []))
    function = called(window.this)
    if isinstance(function, _BY_PEERS):
        return _over(window.this, by, order, None), None
    if isinstance(function, _BY_ROW):
        return _over(window.this, by, ties_broken(ctx, order, node, window, by), None), None
    if isinstance(function, _BY_PLACE):
        return _by_place(ctx, node, window, by, order), None
    return _aggregate(ctx, node, window, by, order)


def _over(function: exp.Expr, by: Sequence[str], order: Sequence[exp.Ordered], spec: exp.Expr | None) -> exp.Window:
    ordering = exp.Order(expressions=[o.copy() for o in order]) if order else None
    return exp.Window(
        this=function.copy(),
        partition_by=[column(name) for name in by],
        order=ordering,
        spec=_whole_spec(spec) if spec is not None else None,
        over="OVER",
    )


def _whole_spec(spec: exp.Expr) -> exp.Expr:
    """The frame with its end written out."""
    made = spec.copy()
    if not made.args.get("end"):
        made.set("end", "CURRENT ROW")
        made.set("end_side", None)
    return made


def _is_rows(spec: exp.Expr | None) -> bool:
    return spec is not None and str(spec.args.get("kind")).upper() == "ROWS"


def _bound(spec: exp.Expr, which: str) -> tuple[str, str]:
    value, side = spec.args.get(which), spec.args.get(f"{which}_side")
    return str(value or "CURRENT ROW").upper(), str(side or "").upper()


def _is_whole(spec: exp.Expr | None, order: Sequence[exp.Ordered]) -> bool:
    """Whether the frame is the whole partition, whatever the row."""
    if spec is None:
        return not order
    ends = _bound(spec, "start"), _bound(_whole_spec(spec), "end")
    return ends == (("UNBOUNDED", "PRECEDING"), ("UNBOUNDED", "FOLLOWING"))


def _is_up_to_peers(spec: exp.Expr | None) -> bool:
    """Whether the frame is all rows up to the current one and its peers, as it is when nothing is said."""
    if spec is None:
        return True
    return (_bound(spec, "start"), _bound(_whole_spec(spec), "end")) == (
        ("UNBOUNDED", "PRECEDING"),
        ("CURRENT ROW", ""),
    )


def _aggregate(
    ctx: Context, node: Node, window: exp.Expr, by: Sequence[str], order: Sequence[exp.Ordered]
) -> tuple[exp.Window, Shown]:
    """An aggregate over a frame: frames of ROWS need a total order, those of RANGE have none to need."""
    spec = window.args.get("spec")
    if order and isinstance(called(window.this), exp.ArrayAgg):
        return _listed(ctx, node, window, by, order), None
    function, shape = _steady(window.this)
    if _is_whole(spec, order):
        return _over(function, by, (), None), shape
    if _is_rows(spec):
        return _over(function, by, ties_broken(ctx, order, node, window, by), spec), shape
    return _over(function, by, order, spec), shape


def _listed(ctx: Context, node: Node, window: exp.Expr, by: Sequence[str], order: Sequence[exp.Ordered]) -> exp.Window:
    """collect_list in an order: rows that tie are told apart, unless the frame goes by which of them tie."""
    spec = window.args.get("spec")
    total = ties_broken(ctx, order, node, window, by)
    if _is_whole(spec, order):
        return _over(window.this, by, total, _WHOLE)
    if _is_rows(spec) or len(total) == len(order):
        return _over(window.this, by, total, spec)
    raise NoSettledWindow("lists rows that tie in the order in which they come")


def _steady(function: exp.Expr) -> tuple[exp.Expr, Shown]:
    """The aggregate as it is settled without OVER."""
    if not is_aggregate_function(called(function)):
        return function, None
    try:
        form = settled(function)
    except NoSettledForm as reason:
        raise NoSettledWindow(str(reason)) from None
    return form.call, form.shown


def _by_place(
    ctx: Context, node: Node, window: exp.Expr, by: Sequence[str], order: Sequence[exp.Ordered]
) -> exp.Window:
    """first_value, last_value, nth_value: which row that is, is told by a total order."""
    spec, function = window.args.get("spec"), called(window.this)
    total = ties_broken(ctx, order, node, window, by)
    if _is_rows(spec):
        return _over(window.this, by, total, spec)
    if _is_whole(spec, order):
        return _over(window.this, by, total, _WHOLE)
    if _is_up_to_peers(spec) and not isinstance(window.this, exp.IgnoreNulls):
        if isinstance(function, exp.First | exp.FirstValue):
            return _over(window.this, by, total, _RUNNING)
        if isinstance(function, exp.Last | exp.LastValue):  # any of the peers may come last
            return _over(exp.Max(this=function.this.copy()), by, order, _PEERS)
    raise NoSettledWindow("depends on the order of rows that tie, and its frame on the same rows")


def _rows_from_first(end: str, side: str | None) -> exp.WindowSpec:
    return exp.WindowSpec(kind="ROWS", start="UNBOUNDED", start_side="PRECEDING", end=end, end_side=side)


_WHOLE = _rows_from_first("UNBOUNDED", "FOLLOWING")
_RUNNING = _rows_from_first("CURRENT ROW", None)
_PEERS = exp.WindowSpec(kind="RANGE", start="CURRENT ROW", end="CURRENT ROW")
