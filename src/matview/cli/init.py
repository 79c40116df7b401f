"""`matview init DIR`: a new warehouse."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from matview.cli.texts import say
from matview.cli.where import CatalogUrl
from matview.opening import DEFAULT_VERSIONS, create_catalog


def init(
    directory: Annotated[str, Parameter(name="DIR", help="A new or empty directory.")],
    /,
    *,
    versions: Annotated[
        int, Parameter(help="How many versions readers can choose from; it can be raised later.")
    ] = DEFAULT_VERSIONS,
    catalog: CatalogUrl = None,
) -> None:
    with create_catalog(directory, versions, catalog) as made:
        state = made.version()
    say(f"made the warehouse {directory}: {state.versions} versions, now at version {state.current_vn}")
    say(f"""next:   matview sql -w {directory} "CREATE TABLE t (id BIGINT, name STRING, PRIMARY KEY (id))\"""")
    say(f"or:     matview sql -w {directory}      (a prompt)")
    if catalog is not None:
        say("each time with the same --catalog, or with MATVIEW_CATALOG set to it")
