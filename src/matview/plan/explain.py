"""A view's plan as text: the algebra, ADD and DEL, the strategies with their costs, the SQL that runs, what is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import indent

from sqlglot import exp

from matview.algebra.nodes import Change, Node, Scan, Stored
from matview.algebra.text import text
from matview.delta.paper import WAREHOUSE, Sites, formula, shown
from matview.plan.choice import Situation, candidates, choose
from matview.plan.definition import Part
from matview.plan.sites import Ask, Where, cut, question, stages
from matview.plan.steps import Action, Apply, Merge, Rebuild, Step
from matview.sql.render import query, spelled_out
from matview.versions.text import MatviewSpark


@dataclass(frozen=True)
class Reading:
    """What a refresh would read of a table."""

    files: int
    size: int
    changed_files: int = 0


@dataclass(frozen=True)
class Elsewhere:
    """The tables that stay at their sources: where, what they are called there, and the words of each source."""

    at: Mapping[str, str]
    names: Mapping[str, str]
    dialects: Mapping[str, str]

    @property
    def sites(self) -> Sites:
        return Sites(tuple(self.at.items()))


NOWHERE_ELSE = Elsewhere({}, {}, {})


@dataclass(frozen=True)
class Explained:
    """One stored relation of a view in a situation, pending or supposed."""

    part: Part
    situation: Situation
    readings: Mapping[str, Reading]
    where: Where
    supposed: bool = False
    reason: str | None = None


def explain(parts: Sequence[Explained], elsewhere: Elsewhere = NOWHERE_ELSE) -> str:
    """The parts in the order in which they are refreshed; the view itself is the last."""
    return "\n\n".join("\n".join(_part(part, elsewhere)) for part in parts)


def _part(explained: Explained, elsewhere: Elsewhere) -> Iterator[str]:
    part, situation = explained.part, explained.situation
    kind = "hidden view" if part.name.startswith("__") else "view"
    yield f"{kind} {part.name}"
    yield from _section("algebra", text(part.node))
    yield from _section("stored", _stored(part))
    if explained.reason:
        yield from _section("not maintained from changes", explained.reason)
    changed = sorted(situation.changed)
    if changed and not part.is_opaque:
        yield from _section("when " + ", ".join(changed) + " change", _formulas(part.node, changed, elsewhere.sites))
    options, chosen = candidates(part, situation), choose(part, situation)
    basis = "supposing that 1 in 1,000 rows changes" if explained.supposed else "for the changes that are waiting"
    yield from _section(f"strategies, {basis}", "\n".join(_option(step, chosen) for step in options))
    found = cut(chosen.node, explained.where)
    for number, (site, asks) in enumerate((one for stage in stages(found.asks) for one in stage), 1):
        yield from _section(f"asks {number}: {shown(site)}", _asks(asks, elsewhere.dialects[site], elsewhere))
    yield from _section("runs" + f" at {WAREHOUSE}" * bool(found.asks), _runs(chosen.over(found.node).action))
    readings = (_reading(name, r, elsewhere.at.get(name)) for name, r in sorted(explained.readings.items()))
    yield from _section("reads", "\n".join(readings))


def _section(title: str, body: str) -> Iterator[str]:
    yield f"  {title}"
    yield indent(body, "    ")


def _stored(part: Part) -> str:
    key = ", ".join(part.schema.key) or "none: a bag"
    hidden = ", ".join(c.name for c in part.schema.columns if c.hidden)
    return f"key: {key}" + (f"\nhidden: {hidden}" if hidden else "")


def _formulas(node: Node, changed: Sequence[str], sites: Sites) -> str:
    return "\n".join(f"{side} = {formula(node, side, changed, sites)}" for side in ("ADD", "DEL"))


def _option(step: Step, chosen: Step) -> str:
    mark = "  <- chosen" if step.strategy == chosen.strategy else ""
    return f"{step.strategy:<9} {step.cost:8.2f} s{mark}"


def _runs(action: Action) -> str:
    match action:
        case Apply(change):
            return "add to the view, by weight:\n" + _sql(change)
        case Merge(rows):
            return "merge into the view, by key:\n" + _sql(rows)
        case Rebuild(rows):
            return "write anew:\n" + _sql(rows)


def _asks(asks: Sequence[Ask], dialect: str, elsewhere: Elsewhere) -> str:
    """One query for the site, and the relations that are sent along with it. `Δ` are its changes of the round, and its
    tables are read as they were after them."""
    sent = [f"sent along as {name}:\n{_sql(node)}" for ask in asks for name, node in ask.sent]

    def name(leaf: Scan | Change | Stored) -> exp.Table:
        table = leaf.scan.table if isinstance(leaf, Change) else leaf.table if isinstance(leaf, Scan) else leaf.view
        mark = "Δ" if isinstance(leaf, Change) else ""
        return exp.Table(this=exp.to_identifier(mark + elsewhere.names.get(table, table), quoted=True))

    return "\n".join([*sent, spelled_out(question(asks).node, name).sql(dialect, pretty=True)])


def _sql(node: Node) -> str:
    return query(node).sql(MatviewSpark, pretty=True)


def _reading(name: str, reading: Reading, site: str | None) -> str:
    if site is not None:
        return f"{name}: stays at {shown(site)}"
    changed = f", {reading.changed_files} with changes" if reading.changed_files else ""
    return f"{name}: {reading.files} files, {reading.size / 1e6:.1f} MB{changed}"
