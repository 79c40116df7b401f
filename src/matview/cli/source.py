"""`matview source`: databases whose tables are captured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from matview.catalog.source_records import Consistency
from matview.cli.durations import shown
from matview.cli.report import UsageError
from matview.cli.rows import write_table
from matview.cli.texts import announce, say, shortened, write_json
from matview.cli.where import HERE, Where
from matview.reading.sources import SourceStatus, asked_anew, sources_of

if TYPE_CHECKING:
    from matview.warehouse import Warehouse

COLUMNS = ("source", "url", "consistency", "state", "tables", "captured", "waiting", "lag", "error")
ERROR = 60

app = App(name="source")


def _open_here(where: Where) -> Warehouse:
    from matview.cli.opened import open_here  # PySpark takes its time to import, and `list` does without

    return open_here(where)


@app.command(name="add")
def add_source(
    name: Annotated[str, Parameter(name="NAME")],
    url: Annotated[str, Parameter(name="URL", help="postgresql://, mariadb:// or sqlite:///")],
    /,
    *tables: Annotated[str, Parameter(name="TABLE", help="As it is called there; `there=here` gives it another name.")],
    prefix: Annotated[str, Parameter(help="Put before the names of tables that are given none.")] = "",
    mode: Annotated[Consistency, Parameter(help="`complete`: a version for each transaction there.")] = "strong",
    remote: Annotated[bool, Parameter(negative="", help="The tables stay there; views ask for their part.")] = False,
    where: Where = HERE,
) -> None:
    """Capture tables of a database: read whole once, then followed by `matview ingest` or `matview run`.

    Its users are not kept waiting. A password belongs into the environment or a file; one in the URL is not kept.

    Example: `matview source add shop 'postgresql://reader@db/shop?password_env=SHOP_PASSWORD' orders customers`

    Example: `matview source add till sqlite:///till.db sales=till_sales`

    Example: `matview source add till sqlite:///till.db sales --remote`
    """
    if not tables:
        raise UsageError("which tables?", help="name those that views shall read")
    named = {there: here or prefix + _last(there) for there, here in map(_pair, tables)}
    with _open_here(where) as warehouse:
        announce(f"{'capturing' if remote else 'reading'} {len(named)} tables of {name} …")
        outcome = warehouse.add_source(name, url, named, mode=mode, replicate=not remote)
    say(f"source {name} added: {outcome}")


def _pair(text: str) -> tuple[str, str]:
    there, separator, here = text.rpartition("=")
    return (there, here) if separator else (text, "")


def _last(name: str) -> str:
    from matview.sources.names import split  # with the drivers' package, which other verbs need not wait for

    return split(name)[-1]


@app.command(name="list")
def list_sources(
    *,
    json: Annotated[bool, Parameter(negative="", help="For programs.")] = False,
    where: Where = HERE,
) -> None:
    """List the sources: what was taken over from each, and what waits there. Needs no Spark.

    Example: `matview source list -w shop.wh`
    """
    with where.open_catalog() as catalog:
        found = sources_of(catalog, asked_anew)
    if json:
        write_json(found)
    else:
        write_table(COLUMNS, [row(source) for source in found])


@app.command(name="tables")
def list_tables(url: Annotated[str, Parameter(name="URL", help="postgresql://, mariadb:// or sqlite:///")], /) -> None:
    """List the tables of a database that can be captured, one to a line, as `source add` takes their names.

    Example: `matview source tables sqlite:///till.db`
    """
    from matview.sources import connect  # with the drivers' package, which other verbs need not wait for

    source = connect(url)
    try:
        for table in source.tables():
            say(table)
    finally:
        source.close()


@app.command(name="check")
def check_source(name: Annotated[str, Parameter(name="NAME")], /, *, where: Where = HERE) -> int:
    """What stands against taking changes over, and what to do about it. Ends with 1 if anything does.

    Example: `matview source check -w shop.wh shop`
    """
    with _open_here(where) as warehouse:
        problems = warehouse.check_source(name)
    for problem in problems:
        say(f"[{problem.code}] {problem.what}")
        if problem.help:
            say(f"  help: {problem.help}")
    if not problems:
        say(f"nothing stands against taking changes over from {name}")
    return int(bool(problems))


@app.command(name="reload")
def reload_source(name: Annotated[str, Parameter(name="NAME")], /, *, where: Where = HERE) -> None:
    """Read the stopped tables of a source whole again, once what stopped them is mended.

    Example: `matview source reload -w shop.wh shop`
    """
    with _open_here(where) as warehouse:
        outcome = warehouse.reload_source(name)
    say(f"source {name} goes on: {outcome}")


@app.command(name="remove")
def remove_source(
    name: Annotated[str, Parameter(name="NAME")],
    /,
    *,
    cascade: Annotated[bool, Parameter(negative="", help="With the views that read its tables.")] = False,
    force: Annotated[
        bool, Parameter(negative="", help="Although it cannot be reached: what capture set up stays there.")
    ] = False,
    where: Where = HERE,
) -> None:
    """Stop capturing: the tables go here, and what capture had set up goes there.

    Example: `matview source remove -w shop.wh shop --cascade`
    """
    with _open_here(where) as warehouse:
        say(str(warehouse.remove_source(name, cascade=cascade, force=force)))


def row(source: SourceStatus) -> tuple[object, ...]:
    """A source on the screen."""
    stopped = [f"{table.table}: {shortened(table.error, ERROR)}" for table in source.tables if table.error]
    errors = [*([shortened(source.error, ERROR)] if source.error else []), *stopped]
    return (
        source.name,
        source.url,
        source.mode,
        source.state,
        ", ".join(f"{table.table}{' (stays there)' * table.remote}" for table in source.tables),
        source.rows,
        "" if source.waiting_rows is None else source.waiting_rows,
        "" if source.lag is None else shown(source.lag),
        "; ".join(errors),
    )
