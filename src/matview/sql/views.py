"""The statements about materialized views, which sqlglot does not know: a parser over its tokens.

CREATE MATERIALIZED VIEW [IF NOT EXISTS] name [(column, ...)] clause ... AS query
ALTER MATERIALIZED VIEW name AS query          DROP MATERIALIZED VIEW [IF EXISTS] name
REFRESH MATERIALIZED VIEW name [FULL]          SHOW MATERIALIZED VIEWS
EXPLAIN CREATE MATERIALIZED VIEW ...           EXPLAIN MATERIALIZED VIEW name

clause: REFRESH POLICY AUTO | INCREMENTAL [STRICT] | FULL     CLUSTER BY (column, ...)
        COMMENT 'text'                                        TBLPROPERTIES ('name' = 'value', ...)
"""

from __future__ import annotations

from typing import TypeVar

import sqlglot
from sqlglot import Token, TokenType, exp

from matview.errors import BadDefinition, Place, SqlSyntaxError, UnsupportedStatement
from matview.sql import statements as st
from matview.sql.clauses import check_clauses
from matview.sql.pieces import DIALECT, Piece, place_of_token

T = TypeVar("T")

VIEW_STATEMENTS = (
    ("CREATE", "MATERIALIZED"),
    ("ALTER", "MATERIALIZED"),
    ("DROP", "MATERIALIZED"),
    ("REFRESH",),
    ("SHOW", "MATERIALIZED"),
    ("EXPLAIN", "CREATE", "MATERIALIZED"),
    ("EXPLAIN", "MATERIALIZED"),
)
POLICIES: dict[tuple[str, ...], st.RefreshPolicy] = {
    ("INCREMENTAL", "STRICT"): "strict",
    ("INCREMENTAL",): "incremental",
    ("AUTO",): "auto",
    ("FULL",): "full",
}
POLICY_PROPERTY = "matview.refresh.policy"


class ViewParser:
    """Reads one statement from left to right."""

    def __init__(self, piece: Piece, source: str) -> None:
        self._piece = piece
        self._source = source
        self._at = 0

    def statement(self) -> st.Statement:
        if self._took("EXPLAIN"):
            return self._explain()
        if self._took("CREATE"):
            return self._create()
        if self._took("ALTER"):
            return self._alter()
        if self._took("DROP"):
            return self._drop()
        if self._took("REFRESH"):
            return self._refresh()
        self._expect("SHOW", "MATERIALIZED", "VIEWS")
        return self._ended(st.ShowViews())

    def _explain(self) -> st.ExplainView:
        if self._took("CREATE"):
            return st.ExplainView(self._create())
        self._expect("MATERIALIZED", "VIEW")
        return self._ended(st.ExplainView(self._name()))

    def _create(self) -> st.CreateView:
        self._expect("MATERIALIZED", "VIEW")
        if_not_exists = self._took("IF", "NOT", "EXISTS")
        name = self._name()
        columns = self._names() if self._is("(") else ()
        clauses = _Clauses()
        while not self._is("AS"):
            self._clause(clauses)
        query, text = self._query()
        return st.CreateView(
            name, query, text, columns, clauses.policy, if_not_exists, clauses.cluster_by, clauses.properties
        )

    def _alter(self) -> st.AlterView:
        self._expect("MATERIALIZED", "VIEW")
        return st.AlterView(self._name(), *self._query())

    def _drop(self) -> st.DropView:
        self._expect("MATERIALIZED", "VIEW")
        if_exists = self._took("IF", "EXISTS")
        return self._ended(st.DropView(self._name(), if_exists))

    def _refresh(self) -> st.RefreshView:
        if not self._took("MATERIALIZED", "VIEW"):
            raise UnsupportedStatement(
                "Matview refreshes materialized views", where=self._here(), help="REFRESH MATERIALIZED VIEW name [FULL]"
            )
        return self._ended(st.RefreshView(self._name(), self._took("FULL")))

    def _clause(self, clauses: _Clauses) -> None:
        if self._took("REFRESH", "POLICY"):
            clauses.policy = self._policy()
        elif self._took("CLUSTER", "BY"):
            clauses.cluster_by = self._names()
        elif self._took("COMMENT"):
            clauses.properties["comment"] = self._string()
        elif self._took("TBLPROPERTIES"):
            self._properties(clauses)
        else:
            raise self._wrong("REFRESH POLICY, CLUSTER BY, COMMENT, TBLPROPERTIES or AS")

    def _policy(self) -> st.RefreshPolicy:
        for words, policy in POLICIES.items():
            if self._took(*words):
                return policy
        raise self._wrong("AUTO, INCREMENTAL, INCREMENTAL STRICT or FULL")

    def _properties(self, clauses: _Clauses) -> None:
        self._expect("(")
        while True:
            name = self._string()
            self._took("=")
            clauses.set(name, self._string(), self._here())
            if not self._took(","):
                break
        self._expect(")")

    def _query(self) -> tuple[exp.Expr, str]:
        """What stands behind AS, as a tree and as it was written."""
        if not self._is("AS"):
            raise self._wrong("AS and a query")
        text = self._piece.after(self._piece.tokens[self._at])
        if not text.strip():
            raise SqlSyntaxError("a view needs a query after AS", where=self._here())
        tree = sqlglot.parse_one(text, dialect=DIALECT)
        check_clauses(tree, self._source)
        if not isinstance(tree, exp.Query | exp.Values):
            raise BadDefinition("a view is made of a query", where=self._here(), help="write SELECT ... after AS")
        return tree, text

    # tokens -----------------------------------------------------------------------------------------------------------

    def _token(self) -> Token | None:
        return self._piece.tokens[self._at] if self._at < len(self._piece.tokens) else None

    def _is(self, *words: str) -> bool:
        return self._ahead(words) > 0

    def _took(self, *words: str) -> bool:
        """Goes past the words if they stand here."""
        tokens = self._ahead(words)
        self._at += tokens
        return tokens > 0

    def _ahead(self, words: tuple[str, ...]) -> int:
        """How many tokens the words are, if they stand here; the tokenizer makes one of some pairs (CLUSTER BY)."""
        left = list(words)
        for number, token in enumerate(self._piece.tokens[self._at :], 1):
            own = token.text.upper().split()
            if token.token_type is TokenType.STRING or own != left[: len(own)]:
                return 0
            del left[: len(own)]
            if not left:
                return number
        return 0

    def _expect(self, *words: str) -> None:
        if not self._took(*words):
            raise self._wrong(" ".join(words))

    def _name(self) -> str:
        token = self._token()
        if token is None or token.token_type in (TokenType.STRING, TokenType.L_PAREN):
            raise self._wrong("a name")
        self._at += 1
        if self._is("."):
            raise UnsupportedStatement(
                "a warehouse has one flat set of names", where=self._here(), help="write the name without a database"
            )
        return token.text

    def _names(self) -> tuple[str, ...]:
        self._expect("(")
        found = [self._name()]
        while self._took(","):
            found.append(self._name())
        self._expect(")")
        return tuple(found)

    def _string(self) -> str:
        token = self._token()
        if token is None or token.token_type is not TokenType.STRING:
            raise self._wrong("a text in quotes")
        self._at += 1
        return token.text

    def _ended(self, statement: T) -> T:
        if self._token() is not None:
            raise self._wrong("the end of the statement")
        return statement

    def _here(self) -> Place:
        token = self._token() or self._piece.tokens[-1]
        return place_of_token(token, self._source)

    def _wrong(self, wanted: str) -> SqlSyntaxError:
        token = self._token()
        found = f"{token.text!r}" if token else "the end of the text"
        return SqlSyntaxError(f"expected {wanted}, found {found}", where=self._here())


class _Clauses:
    def __init__(self) -> None:
        self.policy: st.RefreshPolicy = "auto"
        self.cluster_by: tuple[str, ...] = ()
        self.properties: dict[str, str] = {}

    def set(self, name: str, value: str, where: Place) -> None:
        """Every clause can be written as a property of the table."""
        if name != POLICY_PROPERTY:
            self.properties[name] = value
            return
        policy = POLICIES.get(tuple(value.upper().split()))
        if policy is None:
            raise SqlSyntaxError(f"{value!r} is no refresh policy: AUTO, INCREMENTAL [STRICT] or FULL", where=where)
        self.policy = policy
