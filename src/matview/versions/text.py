"""Spark SQL text of a query, and a parser for it: what was written is what is run.

sqlglot speaks for many dialects and many versions. On the way from text to text it lifts nested WITHs, leaves out
arguments that older versions had not, and approximates what they could not compute. None of it may happen here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.dialect import groupconcat_sql, strposition_sql
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.generator import Generator
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser

from matview.errors import UnsupportedStatement
from matview.versions.calls import NAME, called, kept

_SYNTAX_OF_THEIR_OWN = ("AND", "CAST", "EXTRACT", "OR", "TRIM", "TRY_CAST")
_HINTS = (
    *("BROADCAST", "BROADCASTJOIN", "MAPJOIN", "MERGE", "MERGEJOIN"),
    *("SHUFFLEMERGE", "SHUFFLE_HASH", "SHUFFLE_REPLICATE_NL"),
)
_CALLED_OR_SPOKEN = (
    *("APPROX_PERCENTILE", "LISTAGG", "MAX_BY", "MIN_BY", "OVERLAY"),
    *("PERCENTILE_APPROX", "POSITION", "STRING_AGG", "SUBSTR", "SUBSTRING"),
)
"""Functions with a clause inside, such as FROM; sqlglot reads as many more for the sake of other dialects."""

_TEXTS = (TokenType.STRING, TokenType.RAW_STRING)
_OF_OTHER_DIALECTS = (
    *("~~~", "~~", "~~*", "~*", "-|-", "<->", "<<->>", "&<", "&>", "&&", "??"),
    *("#>", "#>>", "->>", "?::"),
)
"""Operators of theirs; in Spark, ~~ is ~ twice."""

Joined = Callable[[Any, Any], exp.Expr]

_OPERATORS: tuple[tuple[tuple[TokenType, ...], int, Joined], ...] = (
    ((TokenType.PIPE,), 1, lambda a, b: exp.BitwiseOr(this=a, expression=b)),
    ((TokenType.CARET,), 2, lambda a, b: exp.BitwiseXor(this=a, expression=b)),
    ((TokenType.AMP,), 3, lambda a, b: exp.BitwiseAnd(this=a, expression=b)),
    ((TokenType.LT,) * 2, 4, lambda a, b: exp.BitwiseLeftShift(this=a, expression=b)),
    ((TokenType.GT,) * 3, 4, lambda a, b: exp.Anonymous(this="SHIFTRIGHTUNSIGNED", expressions=[a, b])),
    ((TokenType.GT,) * 2, 4, lambda a, b: exp.BitwiseRightShift(this=a, expression=b)),
)
"""Those that bind less than terms, and how closely they bind."""

_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET)
_SIGNS = (TokenType.DASH, TokenType.PLUS)
_UNITS = frozenset(
    unit + plural
    for unit in ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND", "NANOSECOND")
    for plural in ("", "S")
)
_TYPED = ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ")
_SUFFIXES = ("BD", "D", "F", "L", "S", "Y")
_BEFORE, _BEHIND = "before_literal", "behind_literal"
"""Note of a cast that it was written as a literal: DATE '2020-01-01', 10L."""

_ONE_INTERVAL = "one_interval"
"""Notes of parentheses that the interval inside was written as one, of several units."""


def _named(name: str) -> Callable[[Any], Any]:
    """Reads a call as sqlglot does, notes its name, and takes no argument that would be dropped."""
    read = SparkParser.FUNCTION_PARSERS[name]

    def named(parser: Any) -> Any:
        first = parser._index
        found = read(parser)
        if isinstance(found, exp.Func):
            found.meta[NAME] = name
            if _commas(parser._tokens[first : parser._index]) >= _values(found):
                parser.raise_error(f"{name} has too many arguments")
        return found

    return named


def _commas(tokens: Iterable[Token]) -> int:
    """Those that stand between the arguments themselves."""
    depth = commas = 0
    for token in tokens:
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        commas += token.token_type is TokenType.COMMA and depth == 0
    return commas


def _values(function: exp.Func) -> int:
    """How many arguments a function has kept; DISTINCT has several in one."""
    values = [value for name, value in function.args.items() if name != "on_overflow"]
    given = [each for value in values for each in (value if isinstance(value, list) else [value])]
    several = [len(each.expressions) - 1 for each in given if isinstance(each, exp.Distinct)]
    return sum(isinstance(each, exp.Expr) for each in given) + sum(several)


def _signed(value: exp.Expr) -> exp.Expr:
    """-'1' as '-1': other engines know no sign before a text."""
    if not isinstance(value, exp.Neg) or not value.this.is_string:
        return value
    text = value.this.name.strip()
    return exp.Literal.string(text[1:] if text.startswith("-") else "-" + text.removeprefix("+"))


def _position(writer: Any, found: exp.StrPosition) -> str:
    """INSTR has what is searched in first, LOCATE and POSITION have it second."""
    if str(found.meta.get(NAME)).upper() == "INSTR":
        return str(writer.func("INSTR", found.this, found.args["substr"], found.args.get("position")))
    return strposition_sql(writer, found, func_name="LOCATE", supports_position=True)


def _literal(writer: Any, cast: exp.Expr) -> str | None:
    """A cast that was written as a literal; None for any other."""
    before, behind = cast.meta.get(_BEFORE), cast.meta.get(_BEHIND)
    if not isinstance(cast.this, exp.Literal) or not (before or behind):
        return None
    return f"{before}{writer.sql(cast.this)}" if before else f"{cast.this.name}{behind}"


def _is_not(writer: Any, negated: exp.Not) -> str | None:
    """`a IS NOT NULL`, as it is said; None where something else is negated."""
    if not isinstance(negated.this, exp.Is):
        return None
    return f"{writer.sql(negated.this, 'this')} IS NOT {writer.sql(negated.this, 'expression')}"


def _interval(writer: Generator, held: exp.Paren) -> str | None:
    """An interval of several units as it was written; None for any other parentheses."""
    parts = list(held.this.flatten()) if isinstance(held.this, exp.Add) else []
    if not held.meta.get(_ONE_INTERVAL) or not all(isinstance(part, exp.Interval) for part in parts):
        return None
    return "INTERVAL " + " ".join(writer.sql(part).removeprefix("INTERVAL ") for part in parts)


class MatviewSpark(Spark):
    """Spark SQL that comes out as it went in. WITH stands where it stood: lifted, two of one name would collide."""

    ORIGINAL_NAME_META_KEY = NAME

    class Tokenizer(Spark.Tokenizer):
        """A quote that is doubled is a quote, except in raw literals; the first escape is the one that is written."""

        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            word: token for word, token in Spark.Tokenizer.KEYWORDS.items() if word not in _OF_OTHER_DIALECTS
        }
        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']

    class Parser(SparkParser):
        FUNCTIONS: ClassVar[dict[str, Any]] = kept(
            {
                **SparkParser.FUNCTIONS,
                "INSTR": exp.StrPosition.from_arg_list,
                "PERCENTILE": exp.Quantile.from_arg_list,
            }
        )
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            **{name: SparkParser.FUNCTION_PARSERS[name] for name in (*_SYNTAX_OF_THEIR_OWN, *_HINTS)},
            **{name: _named(name) for name in _CALLED_OR_SPOKEN},
        }
        SUPPORTS_TABLE_QUERY = True
        TERM: ClassVar[dict[TokenType, Any]] = {
            **SparkParser.TERM,
            TokenType.DPIPE: lambda this, expression: exp.DPipe(this=this, expression=expression, safe=True),
        }
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: read for name, read in SparkParser.NO_PAREN_FUNCTION_PARSERS.items() if name != "TRANSFORM"
        }

        def _parse_bitwise(self) -> exp.Expr | None:
            """As Spark binds: 1 | 8 >> 1 is 1 | (8 >> 1)."""
            found, waiting = self._parse_term(), list[tuple[Any, int, Joined]]()
            while found is not None and (operator := self._matched_operator()) is not None:
                while waiting and waiting[-1][1] >= operator[0]:
                    left, _, joined = waiting.pop()
                    found = self.expression(joined(left, found))
                waiting.append((found, *operator))
                found = self._parse_term()
            for left, _, joined in reversed(waiting):
                found = self.expression(joined(left, found))
            return found

        def _matched_operator(self) -> tuple[int, Joined] | None:
            for tokens, rank, joined in _OPERATORS:
                index = self._index
                if all(self._match(token) for token in tokens):
                    return rank, joined
                self._retreat(index)
            return None

        def _parse_type(self, parse_interval: bool = True, fallback_to_identifier: bool = False) -> exp.Expr | None:
            """sqlglot makes a cast of DATE '2020-01-01': the literal is written as such."""
            word, is_literal = self._curr.text.upper(), self._next.token_type in _TEXTS
            found = super()._parse_type(parse_interval, fallback_to_identifier)
            if is_literal and word in _TYPED and isinstance(found, exp.Cast):
                found.meta[_BEFORE] = f"{word} "
            return found

        def build_cast(self, strict: bool, **kwargs: Any) -> exp.Expr:
            """sqlglot makes a cast of 128Y, of which the negative would be one too large."""
            suffix, value = self._prev.text.upper(), kwargs["this"]
            made = super().build_cast(strict, **kwargs)
            if suffix in _SUFFIXES and isinstance(value, exp.Literal):
                made.meta[_BEHIND] = suffix
            return made

        def _parse_interval(self, require_interval: bool = True, parse_function_unit: bool = True) -> Any:
            """INTERVAL 1 DAY -2 HOURS is one value, whatever stands around it; sqlglot would add up loose ones."""
            index = self._index
            if not self._match(TokenType.INTERVAL) and require_interval:
                return None
            found = self._parse_interval_part(parse_function_unit)
            if found is None:
                self._retreat(index)
                return None
            whole: exp.Expr = found
            while (further := self._parse_interval_part(parse_function_unit, further=True)) is not None:
                whole = exp.Add(this=whole, expression=further)
            if whole is found:
                return found
            held = exp.Paren(this=whole)
            held.meta[_ONE_INTERVAL] = True
            return held

        def _parse_interval_part(self, function_unit: bool, further: bool = False) -> exp.Interval | None:
            """A value and its unit; the first may be a text that has both."""
            index = self._index
            value = None if further and not self._literal_ahead() else self._parse_unary()
            has_unit = value is not None and self._curr.text.upper() in _UNITS
            if value is None or not (has_unit or (value.is_string and not further)):
                self._retreat(index)
                return None
            return self._parse_interval_span(_signed(value), function_unit)

        def _literal_ahead(self) -> bool:
            token = self._next if self._curr.token_type in _SIGNS else self._curr
            return token.token_type in (*_TEXTS, TokenType.NUMBER)

        def _parse_atom(self) -> exp.Expr | None:
            """The shortcut for what stands alone; it would take a raw literal alone that others follow."""
            if self._curr.token_type in _TEXTS and self._next.token_type in _TEXTS:
                return None
            return super()._parse_atom()

        def _parse_primary(self) -> exp.Expr | None:
            """Literals one after the other, raw ones among them, are one literal, as Spark reads them."""
            if not self._match_set(_TEXTS):
                return super()._parse_primary()
            first = self._prev
            parts = [first.text]
            while self._match_set(_TEXTS):
                parts.append(self._prev.text)
            return exp.Literal.string("".join(parts)).update_positions(first)

    class Generator(SparkGenerator):
        EXPRESSIONS_WITHOUT_NESTED_CTES: ClassVar[set[type[exp.Expr]]] = set()
        TABLESAMPLE_SEED_KEYWORD = "REPEATABLE"
        TRANSFORMS: ClassVar[dict[type[exp.Expr], Callable[[Any, Any], str]]] = {
            **{kind: write for kind, write in SparkGenerator.TRANSFORMS.items() if kind is not exp.Select},
            exp.ArgMax: lambda self, e: self.func("MAX_BY", e.this, e.expression, e.args.get("count")),
            exp.ArgMin: lambda self, e: self.func("MIN_BY", e.this, e.expression, e.args.get("count")),
            exp.Cast: lambda self, e: _literal(self, e) or self.cast_sql(e),
            exp.TryCast: lambda self, e: _literal(self, e) or SparkGenerator.TRANSFORMS[exp.TryCast](self, e),
            exp.Not: lambda self, e: _is_not(self, e) or self.not_sql(e),
            exp.Paren: lambda self, e: _interval(self, e) or self.paren_sql(e),
            exp.GroupConcat: lambda self, e: groupconcat_sql(self, e, sep=None),
            exp.StrPosition: lambda self, e: _position(self, e),
            exp.WithinGroup: Generator.withingroup_sql,
        }

        def sql(self, expression: str | exp.Expr | None, key: str | None = None, comment: bool = True) -> str:
            text = super().sql(expression, key, comment)
            return called(self, expression, text) if isinstance(expression, exp.Func) and key is None else text


@contextmanager
def refusing_depth() -> Iterator[None]:
    """What is nested deeper than Python can follow is refused, as the statement that it is."""
    try:
        yield
    except RecursionError:
        raise UnsupportedStatement(
            "the statement is nested too deeply",
            help="name its inner parts in a WITH, and leave out parentheses that change nothing",
        ) from None


def spark_text(query: exp.Expr) -> str:
    """The query as Spark SQL."""
    with refusing_depth():
        return MatviewSpark().generate(query)


def quoted(name: str) -> str:
    """A name as Spark SQL takes it, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


def foreign_text(query: exp.Expr, dialect: str, *, pretty: bool = False) -> str:
    """The text for another engine, which gives what Spark gives: also over no rows, where others say null of COUNT_IF,
    and DuckDB of what is collected."""
    with refusing_depth():
        query = query.copy()
        for call in _of(query, exp.Anonymous):
            query = _replaced(query, call, _understood(call))
        _over_no_rows(query, dialect)
        return query.sql(dialect, pretty=pretty, copy=False)


def _of(query: exp.Expr, *kinds: type[exp.Expr]) -> list[exp.Expr]:
    """Parts of these kinds, inner ones first: each can be replaced by what holds those inside of it."""
    return list(query.find_all(*kinds))[::-1]


def _replaced(query: exp.Expr, old: exp.Expr, new: exp.Expr) -> exp.Expr:
    if old is query:
        return new
    if old is not new:
        old.replace(new)
    return query


def _understood(call: exp.Expr) -> exp.Expr:
    """A call that was kept as it was written, as what sqlglot takes it for: other engines have other names for it."""
    if call.name.upper() not in SparkParser.FUNCTIONS:
        return call
    try:
        return exp.func(call.name, *call.expressions, dialect="spark")
    except (SqlglotError, ValueError, LookupError):
        return call


def _over_no_rows(query: exp.Expr, dialect: str) -> None:
    for count in _of(query, exp.CountIf):
        if not isinstance(count.this, exp.Distinct):
            count.replace(exp.Count(this=exp.Case().when(count.this, exp.Literal.number(1)), big_int=True))
    for whole in _of(query, exp.ArrayAgg, exp.ArrayUniqueAgg) if dialect == "duckdb" else ():
        while isinstance(whole.parent, exp.Filter | exp.Window) and whole.parent.this is whole:
            whole = whole.parent
        whole.replace(exp.Coalesce(this=whole.copy(), expressions=[exp.Array(expressions=[])]))
