from collections.abc import Iterator

import pytest

from .model import database


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "conforms(item): the item of the conformance list that the test holds")


@pytest.fixture(scope="session", autouse=True)
def _close_duckdb() -> Iterator[None]:
    yield
    database().close()
    database.cache_clear()
