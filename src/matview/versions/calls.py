"""A function is written as it was called: under its name, with its arguments in their order.

sqlglot has a class for most functions, and writes the class, not the call: LOG10(x) as LOG(10, x), MAX(a, b) as
GREATEST(a, b), HEX(a, b) as HEX(a). So a call gets its class only where that, with these literals, is written as a
function of the same arguments, whatever its name (the name is noted, and put back). Any other call is known by its
name alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from inspect import signature
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.generator import Generator

NAME = "spark_name"
"""Notes of a function the name that it was called by."""

Built = Callable[[list[Any], Dialect], exp.Expr]
Shape = tuple[tuple[type[exp.Expr], str, bool] | None, ...]
"""Of each argument the literal that it is: some functions are built by their literals."""

_ALWAYS = frozenset({"STRUCT"})
"""Written with the names of its fields, which survive when columns are renamed."""

_PICKS_ONE = frozenset({"ANY_VALUE", "FIRST", "FIRST_VALUE", "LAST", "LAST_VALUE"})
_UNIT_FIRST = frozenset({"DATEADD", "DATEDIFF", "DATE_ADD", "DATE_DIFF", "TIMESTAMPADD", "TIMESTAMPDIFF"})


def kept(builders: Mapping[str, Callable[..., exp.Expr]]) -> dict[str, Built]:
    """What builds the calls of functions, such that each is written as it was called."""
    return {name: _kept(name, _with_dialect(build)) for name, build in builders.items()}


def _with_dialect(build: Callable[..., exp.Expr]) -> Built:
    if "dialect" in signature(build).parameters:
        return lambda arguments, dialect: build(arguments, dialect=dialect)
    return lambda arguments, _: build(arguments)


def _kept(name: str, build: Built) -> Built:
    @lru_cache(maxsize=1000)
    def survives(shape: Shape, dialect: Dialect) -> bool:
        return _survives(name, build, shape, dialect)

    def made(arguments: list[Any], dialect: Dialect) -> exp.Expr:
        if _says_the_same(name, arguments) or survives(_shape(arguments), dialect):
            return build(arguments, dialect)
        return exp.Anonymous(this=name, expressions=arguments)

    return made


def _says_the_same(name: str, arguments: list[Any]) -> bool:
    """Calls written otherwise that mean the same: FIRST(x, TRUE) is FIRST(x) IGNORE NULLS; units are no columns."""
    if name in _PICKS_ONE and len(arguments) == 2:
        return isinstance(arguments[1], exp.Boolean)
    if name in _UNIT_FIRST and len(arguments) == 3:
        return isinstance(arguments[0], exp.Column | exp.Var)
    return name in _ALWAYS


def _shape(arguments: list[Any]) -> Shape:
    return tuple(
        (type(a), str(a.this), bool(a.args.get("is_string"))) if isinstance(a, exp.Literal | exp.Boolean) else None
        for a in arguments
    )


def _survives(name: str, build: Built, shape: Shape, dialect: Dialect) -> bool:
    """Whether a call of this shape is written as a function of just these arguments."""
    arguments = [_argument(number, literal) for number, literal in enumerate(shape)]
    called = f"({', '.join(map(dialect.generate, arguments))})"
    try:
        node = build([argument.copy() for argument in arguments], dialect)
        if not isinstance(node, exp.Func) or node.error_messages(arguments):
            return False
        node.meta[NAME] = name
        return re.fullmatch(r"\w+" + re.escape(called), dialect.generate(node)) is not None
    except (SqlglotError, ValueError, LookupError, TypeError, AttributeError):  # what it says of calls it cannot build
        return False


def _argument(number: int, literal: tuple[type[exp.Expr], str, bool] | None) -> exp.Expr:
    match literal:
        case None:
            return exp.column(f"argument_{number}")
        case (kind, text, _) if kind is exp.Boolean:
            return exp.Boolean(this=text == "True")
        case (_, text, is_string):
            return exp.Literal(this=text, is_string=is_string)


def called(writer: Generator, function: exp.Expr, text: str) -> str:
    """The text of a function, under the name that it was called by."""
    name = function.meta.get(NAME) if isinstance(function, exp.Func) else None
    found = re.match(r"\w+(?=\()", text) if name else None
    return writer.normalize_func(str(name)) + text[found.end() :] if found else text
