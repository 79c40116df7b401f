"""The conformance list held against a run: what docs/conformance.md claims must have been shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conformance import PAGE, claimed_on, known_items


def items_of(test: pytest.Item) -> list[str]:
    """The items that a test is marked with."""
    return [name for mark in test.iter_markers("conforms") for name in mark.args]


class Conformance:
    """A run of the whole suite fails if an item that the page claims has no passing test in it.

    Where workers share the run, each tells with its reports which items they show, and at its end whether it left out
    any test; only who started them judges.
    """

    def __init__(self, config: pytest.Config, page: Path = PAGE) -> None:
        self._output: dict[str, object] | None = getattr(config, "workeroutput", None)
        self._whole = config.args_source is not pytest.Config.ArgsSource.ARGS and not config.option.collectonly
        self._page = page
        self._shown: set[str] = set()
        self._missing: list[str] = []

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        known = known_items()
        for test in items:
            if unknown := [name for name in items_of(test) if name not in known]:
                raise pytest.UsageError(f"{test.nodeid}: not on the conformance list: {', '.join(unknown)}")
            test.user_properties.extend(("conforms", name) for name in items_of(test))

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        self._whole = self._whole and not items

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self._whole = self._whole and getattr(node, "workeroutput", {}).get("whole", False)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self._shown.update(str(item) for name, item in report.user_properties if name == "conforms")

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if self._output is not None:
            self._output["whole"] = self._whole
            return
        ended = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        if self._whole and ended and not (session.shouldstop or session.shouldfail):
            missing = claimed_on(self._page.read_text()) - self._shown
            self._missing = sorted(missing, key=lambda item: (item[0], int(item[1:])))
        if self._missing:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._missing:
            terminalreporter.section("conformance", red=True)
            terminalreporter.line(f"claimed in {self._page.name}, but no test of it passed: {', '.join(self._missing)}")
