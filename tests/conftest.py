"""What all tests share: one Spark session, the marks `spark` and `database`, the conformance list and the run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from tests.algebra.fuzzing import EXAMPLES

from conformance_run import Conformance

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest_plugins = ["pytester", "tests.servers"]

settings.register_profile("few", max_examples=EXAMPLES, deadline=None)
settings.load_profile("few")

# Tests are many small jobs, for which Java's second compiler costs more than it gives.
os.environ.setdefault("MATVIEW_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One local Spark for all tests of a process."""
    from matview.spark.session import spark_session  # here, so that pure tests never wait for PySpark

    session = spark_session()
    yield session
    session.stop()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "database: works on a database of its own")
    config.pluginmanager.register(Conformance(config), "conformance")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that uses Spark is marked so, and comes before those that do not: they fill up what time two processes
    have left at the end. One that needs a database of its own is marked, too."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
        if item.path.parent.parent.name == "sources" or "postgres_server" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.database)
    items.sort(key=lambda item: item.get_closest_marker("spark") is None)
