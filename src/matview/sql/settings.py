"""What clauses and properties say about a view, each thing once: every clause has a property of the same meaning."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from matview.errors import BadDefinition, BadSchedule, MatviewError, Place, SeveralViewgroups, SqlSyntaxError
from matview.groups.graph import Maintain
from matview.groups.schedule import Schedule, parse
from matview.sql import statements as st

POLICIES: dict[tuple[str, ...], st.RefreshPolicy] = {
    ("INCREMENTAL", "STRICT"): "strict",
    ("INCREMENTAL",): "incremental",
    ("AUTO",): "auto",
    ("FULL",): "full",
}
MAINTAIN: dict[tuple[str, ...], Maintain] = {(policy.upper(),): policy for policy in Maintain}
OWN_PREFIX = "matview."
Reading = Callable[[str], object]


class ViewSettings:
    """Collects what is said, and where; nothing may be said twice."""

    def __init__(self) -> None:
        self._said: dict[str, Any] = {}
        self._kept: dict[str, str] = {}
        self._where: dict[str, Place] = {}

    def say(self, what: str, value: object, where: Place) -> None:
        if what in self._said:
            raise self._twice(what, value, where)
        self._said[what] = value
        self._where[what] = where

    def _twice(self, what: str, value: object, where: Place) -> MatviewError:
        if what == "VIEWGROUP" and str(value).casefold() != str(self._said[what]).casefold():
            return SeveralViewgroups(f"a view is in one viewgroup, not in {self._said[what]} and {value}", where=where)
        return SqlSyntaxError(f"{what} is said twice", where=where, help="say it once, as a clause or as a property")

    def say_property(self, name: str, value: str, where: Place) -> None:
        """A property with a meaning is heard as the clause; others are kept."""
        if name in _PROPERTIES:
            what, reading = _PROPERTIES[name]
            self.say(what, _read(reading, value, where), where)
        elif name.casefold().startswith(OWN_PREFIX):
            known = ", ".join(sorted(_PROPERTIES))
            raise BadDefinition(f"{name!r} is no property of a view", where=where, help=f"there are {known}")
        else:
            self._kept[name] = value

    def view(
        self, name: str, query: exp.Expr, text: str, columns: tuple[str, ...], if_not_exists: bool
    ) -> st.CreateView:
        """The view that was described."""
        self._refuse_idle_schedule()
        comment = {"comment": self._said["COMMENT"]} if "COMMENT" in self._said else {}
        return st.CreateView(
            name,
            query,
            text,
            columns,
            self._said.get("REFRESH POLICY", "auto"),
            if_not_exists,
            self._said.get("CLUSTER BY", ()),
            self._kept | comment,
            self._said.get("MAINTAIN"),
            self._said.get("VIEWGROUP"),
            self._said.get("REFRESH"),
        )

    def changes(self, name: str) -> st.SetView:
        """The changes that were described."""
        self._refuse_idle_schedule()
        said = self._said
        return st.SetView(
            name, said.get("MAINTAIN"), said.get("VIEWGROUP"), said.get("REFRESH"), said.get("REFRESH POLICY")
        )

    def _refuse_idle_schedule(self) -> None:
        maintain: Maintain = self._said.get("MAINTAIN", Maintain.SNAPSHOT)
        if "REFRESH" in self._said and maintain is not Maintain.SNAPSHOT:
            raise BadDefinition(
                f"a view with MAINTAIN {maintain.upper()} has no schedule",
                where=self._where["REFRESH"],
                help="only snapshot views are refreshed by a schedule",
            )


def located(error: BadSchedule, where: Place) -> BadSchedule:
    """The same error with its place."""
    return BadSchedule(error.what, where=where, help=error.help)


def _read(reading: Reading, value: str, where: Place) -> object:
    try:
        return reading(value)
    except BadSchedule as error:
        raise located(error, where) from None
    except KeyError as error:
        raise SqlSyntaxError(f"{value!r} is none of {error.args[0]}", where=where) from None


def _word(choices: Mapping[tuple[str, ...], object], shown: str) -> Reading:
    def reading(value: str) -> object:
        found = choices.get(tuple(value.upper().split()))
        if found is None:
            raise KeyError(shown)
        return found

    return reading


def _schedule(value: str) -> Schedule:
    return parse(value)


_PROPERTIES: dict[str, tuple[str, Reading]] = {
    "matview.refresh.policy": ("REFRESH POLICY", _word(POLICIES, "AUTO, INCREMENTAL [STRICT] or FULL")),
    "matview.maintain": ("MAINTAIN", _word(MAINTAIN, "IMMEDIATE, DEFERRED or SNAPSHOT")),
    "matview.viewgroup": ("VIEWGROUP", str),
    "matview.refresh.schedule": ("REFRESH", _schedule),
}
