"""What Spark's functions are: aggregates, windows, generators, and those whose value no table determines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sqlglot import exp

from matview.algebra.scalars import call, number

Shown = Callable[[exp.Expr], exp.Expr] | None
"""What to make of a value that may come in several forms; None: nothing."""

_AGGREGATE_NAMES = frozenset(
    [
        "any",
        "approx_top_k",
        "bit_and",
        "bit_or",
        "bit_xor",
        "bitmap_and_agg",
        "bitmap_construct_agg",
        "bitmap_or_agg",
        "collect_list",
        "collect_set",
        "count_min_sketch",
        "every",
        "histogram_numeric",
        "hll_sketch_agg",
        "hll_union_agg",
        "mean",
        "percentile",
        "percentile_disc",
        "schema_of_variant_agg",
        "some",
        "std",
        "theta_intersection_agg",
        "theta_sketch_agg",
        "theta_union_agg",
        "try_avg",
        "try_sum",
    ]
)
"""Aggregates of Spark that the parser has no class for."""

_WINDOW_ONLY = (
    exp.CumeDist,
    exp.DenseRank,
    exp.Lag,
    exp.Lead,
    exp.NthValue,
    exp.Ntile,
    exp.PercentRank,
    exp.Rank,
    exp.RowNumber,
)
_GROUPING = (exp.Grouping, exp.GroupingId)
_NO_AGGREGATES = (*_WINDOW_ONLY, *_GROUPING)
_WRAPPERS = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)
_PICKS_ONE = (exp.AnyValue, exp.First, exp.FirstValue, exp.Last, exp.LastValue)
_COLLECTS = (exp.ArrayAgg, exp.ArrayUniqueAgg)
_COUNTS = (exp.Count, exp.CountIf, exp.ApproxDistinct, exp.RegrCount)
GENERATORS = (exp.Explode, exp.Posexplode, exp.Inline, exp.Stack)

_RANDOM = (exp.Rand, exp.Randn, exp.Randstr, exp.Shuffle, exp.Uniform, exp.Uuid)
_NAMED_RANDOM = frozenset(
    ["aes_encrypt", "java_method", "monotonically_increasing_id", "random", "reflect", "try_reflect"]
)
_FROM_OUTSIDE = (
    *_RANDOM,
    exp.CurrentCatalog,
    exp.CurrentDatabase,
    exp.CurrentDate,
    exp.CurrentDatetime,
    exp.CurrentSchema,
    exp.CurrentTime,
    exp.CurrentTimestamp,
    exp.CurrentTimezone,
    exp.CurrentUser,
    exp.Localtime,
    exp.Localtimestamp,
    exp.SessionUser,
    exp.TableSample,
)
_NAMED_FROM_OUTSIDE = frozenset(
    [
        "curdate",
        "current_time",
        "input_file_block_length",
        "input_file_block_start",
        "input_file_name",
        "java_method",
        "localtimestamp",
        "monotonically_increasing_id",
        "now",
        "random",
        "reflect",
        "spark_partition_id",
        "try_reflect",
        "user",
        "version",
    ]
)
BARE = frozenset(
    [
        "current_catalog",
        "current_database",
        "current_date",
        "current_schema",
        "current_time",
        "current_timestamp",
        "current_user",
        "localtimestamp",
        "session_user",
        "user",
    ]
)
"""Functions that may be written without parentheses, where no column has the name."""


def bare(expression: exp.Expr) -> exp.Expr:
    """The expression without parentheses around it; a subquery keeps its own."""
    while isinstance(expression, exp.Paren):
        expression = expression.this
    return expression


def own_nodes(expression: exp.Expr) -> Iterator[exp.Expr]:
    """The nodes of an expression, without what stands inside its subqueries."""
    yield from expression.walk(prune=lambda n: isinstance(n, exp.Query))


def has_subquery(expression: exp.Expr) -> bool:
    return any(isinstance(n, exp.Query) for n in own_nodes(expression))


_OF_NOW_WITHOUT_ARGUMENTS = frozenset(["to_unix_timestamp", "unix_timestamp"])


def depends_on_more(node: exp.Expr) -> bool:
    """Whether a function's value depends on more than the tables."""
    if isinstance(node, exp.Anonymous):
        name = node.name.lower()
        without = name in _OF_NOW_WITHOUT_ARGUMENTS and not node.expressions
        return without or name in _NAMED_FROM_OUTSIDE or issubclass(_class_of(name), _FROM_OUTSIDE)
    return isinstance(node, _FROM_OUTSIDE)


def is_random(expression: exp.Expr) -> bool:
    """Whether computing it a second time, for the same row and in the same statement, may give something else."""
    return any(map(_draws, expression.walk()))


def _draws(node: exp.Expr) -> bool:
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in _NAMED_RANDOM or issubclass(_class_of(node.name), _RANDOM)
    return isinstance(node, _RANDOM)


def _class_of(name: str) -> type[exp.Expr]:
    """The class that the parser has for functions of that name: calls that it would write otherwise have none."""
    return exp.FUNCTION_BY_NAME.get(name.upper(), exp.Anonymous)


def is_aggregate_function(node: exp.Expr) -> bool:
    if isinstance(node, exp.Anonymous):
        named = issubclass(_class_of(node.name), exp.AggFunc) and not issubclass(_class_of(node.name), _NO_AGGREGATES)
        return named or node.name.lower() in _AGGREGATE_NAMES
    if isinstance(node, exp.Any):
        return not isinstance(node.parent, exp.Binary) and not has_subquery(node)
    return isinstance(node, exp.AggFunc) and not isinstance(node, _NO_AGGREGATES)


def is_window_only(node: exp.Expr) -> bool:
    return isinstance(node, _WINDOW_ONLY)


def called(node: exp.Expr) -> exp.Expr:
    """The function inside FILTER, IGNORE NULLS and WITHIN GROUP."""
    while isinstance(node, _WRAPPERS):
        node = node.this
    return node


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node is an aggregate call, clauses included, and no window function."""
    return is_aggregate_function(called(node)) and not _is_windowed(node)


def _is_windowed(node: exp.Expr) -> bool:
    while isinstance(node.parent, _WRAPPERS) and node.arg_key == "this":
        node = node.parent
    return isinstance(node.parent, exp.Window) and node.arg_key == "this"


def has_grouping(expression: exp.Expr) -> bool:
    """Whether it asks which columns are grouped by."""
    return any(isinstance(n, _GROUPING) for n in own_nodes(expression))


def has_aggregate(expression: exp.Expr) -> bool:
    return any(is_aggregate(n) for n in own_nodes(expression))


def has_window(expression: exp.Expr) -> bool:
    return any(isinstance(n, exp.Window) for n in own_nodes(expression))


# one answer among several ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Settled:
    """An aggregate whose value is a function of its rows, and what to make of that value."""

    call: exp.Expr
    shown: Shown
    over_nothing: exp.Expr | None
    """Its value over no rows at all; None where that is not known here."""


class NoSettledForm(ValueError):
    """An aggregate whose value depends on the order in which rows come."""


def settled(node: exp.Expr) -> Settled:
    """The aggregate in a form that gives the same value for the same rows: one of those that Spark might give."""
    function = called(node)
    _refuse_order(node, function)
    swapped = _with_function(node, _settled_function(node, function))
    return Settled(swapped, _shown(function), _over_nothing(called(swapped)))


def _unknown_name(function: exp.Expr) -> str:
    """The name of a function that the parser has no class for."""
    return function.name.lower() if isinstance(function, exp.Anonymous) else ""


def _refuse_order(node: exp.Expr, function: exp.Expr) -> None:
    if isinstance(function, exp.GroupConcat) and not isinstance(function.this, exp.Order):
        raise NoSettledForm("joins strings in the order in which rows come")
    if isinstance(function, exp.ApproxQuantile) or _unknown_name(function) in ("histogram_numeric", "approx_top_k"):
        raise NoSettledForm("gives an approximation that depends on the order in which rows come")
    if isinstance(function, exp.ArgMax | exp.ArgMin) and function.args.get("count"):
        raise NoSettledForm("gives several values, of which rows that tie are not told apart")
    ordered = isinstance(function, exp.GroupConcat) or node.find(exp.WithinGroup) is not None
    if ordered and not isinstance(function, exp.PercentileCont):
        raise NoSettledForm("is not understood with WITHIN GROUP")


_SYNONYMS: dict[str, type[exp.Func]] = {
    "every": exp.LogicalAnd,
    "some": exp.LogicalOr,
    "any": exp.LogicalOr,
    "std": exp.Stddev,
    "mean": exp.Avg,
}


def _settled_function(node: exp.Expr, function: exp.Expr) -> exp.Expr:
    match function:
        case exp.Any():
            return exp.LogicalOr(this=bare(function.this).copy())
        case exp.Anonymous() if function.name.lower() in _SYNONYMS and len(function.expressions) == 1:
            return _SYNONYMS[function.name.lower()](this=function.expressions[0].copy())
        case exp.ArgMax() | exp.ArgMin():
            return type(function)(this=function.this.copy(), expression=_tie_broken(function))
        case exp.Mode():
            return exp.Mode(this=function.this.copy(), deterministic=exp.true())
        case exp.PercentileCont():
            return _percentile(node, function)
    if isinstance(function, _PICKS_ONE):
        return exp.Min(this=function.this.copy())
    return function.copy()


def _tie_broken(function: exp.ArgMax | exp.ArgMin) -> exp.Expr:
    """Rows that tie in the order are told apart by the value itself; rows without an order stay out."""
    order, value = function.expression, function.this
    pair = call("struct", order, value)
    there = exp.Not(this=exp.Is(this=order.copy(), expression=exp.null()))
    return exp.Case(ifs=[exp.If(this=there, true=pair)])


def _percentile(node: exp.Expr, function: exp.PercentileCont) -> exp.Expr:
    within = node.find(exp.WithinGroup)
    ordered = within.expression.expressions if within is not None else []
    if len(ordered) != 1 or ordered[0].args.get("desc"):
        raise NoSettledForm("is understood with one ascending order only")
    return exp.Quantile(this=ordered[0].this.copy(), quantile=function.this.copy())


def _with_function(node: exp.Expr, function: exp.Expr) -> exp.Expr:
    """The call with another function in it; FILTER stays, what spoke of the old function goes."""
    if not isinstance(node, _WRAPPERS):
        return function
    inner = _with_function(node.this, function)
    if not isinstance(node, exp.Filter):
        return inner
    return exp.Filter(this=inner, expression=node.expression.copy())


def _shown(function: exp.Expr) -> Shown:
    return (lambda value: call("sort_array", value)) if isinstance(function, _COLLECTS) else None


def _over_nothing(function: exp.Expr) -> exp.Expr | None:
    if isinstance(function, _COUNTS):
        return number(0)
    if isinstance(function, _COLLECTS):
        return exp.Array(expressions=[])
    is_null = isinstance(function, exp.AggFunc) or _unknown_name(function) in ("try_sum", "try_avg")
    return exp.null() if is_null else None
