"""The conformance page says what the tests say, and a run that does not show what it claims fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance import PAGE, Mark, claimed_on, known_items, marks, owed, page

PLUGIN = f"""
import sys
from pathlib import Path

sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from conformance_run import Conformance

def pytest_configure(config):
    config.addinivalue_line("markers", "conforms(*items)")
    config.pluginmanager.register(Conformance(config, Path(__file__).with_name("page.md")))
"""
TESTS = """
import pytest

@pytest.mark.conforms("Q1")
def test_one(): pass

@pytest.mark.conforms("Q2")
def test_two(): assert {}
"""


def make_suite(pytester: pytest.Pytester, tests: str) -> None:
    pytester.makeconftest(PLUGIN)
    pytester.makepyfile(test_it=tests)


def test_the_page_is_what_make_docs_would_write() -> None:
    assert PAGE.read_text() == page(owed(), marks()), "docs/conformance.md is stale: run `make docs`"


def test_what_the_page_claims_has_a_test() -> None:
    assert claimed_on(PAGE.read_text()) <= {mark.item for mark in marks()}


def test_every_mark_is_on_the_list() -> None:
    assert {mark.item for mark in marks()} <= known_items()


def test_the_list_has_all_five_papers() -> None:
    assert {title[0]: len(items) for title, items in owed().items()} == {"Q": 20, "M": 18, "C": 18, "D": 18, "J": 11}


def test_marks_are_found_wherever_they_stand(tmp_path: Path) -> None:
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "test_a.py").write_text(
        "import pytest\n"
        "pytestmark = pytest.mark.conforms('Q1')\n"
        "class TestB:\n"
        "    @pytest.mark.conforms('Q2', 'M3')\n"
        "    def test_c(self): pass\n"
        "@pytest.mark.parametrize('x', [pytest.param(1, marks=pytest.mark.conforms('Q4'))])\n"
        "def test_d(x): pass\n"
    )
    file = "tests/test_a.py"
    assert marks(tests) == [
        Mark("Q1", file, "the whole file"),
        Mark("Q2", file, "test_c"),
        Mark("M3", file, "test_c"),
        Mark("Q4", file, "test_d"),
    ]


def test_a_page_claims_what_has_a_test_and_nothing_else() -> None:
    papers = {"Q: one": {"Q1": "a | b", "Q2": "c"}, "M: two": {"M1": "d"}}
    text = page(papers, [Mark("Q1", "tests/test_a.py", "test_b")])
    assert claimed_on(text) == {"Q1"}
    assert "| Q2 | c | not claimed |" in text
    assert "M1" not in text


@pytest.mark.parametrize(
    ("claimed", "two_passes", "arguments", "complains"),
    [
        ("Q1", True, [], False),
        ("Q2", True, [], False),
        ("Q2", False, [], True),
        ("Q3", True, [], True),
        ("Q3", True, ["-k", "one"], False),  # not the whole suite
        ("Q3", True, ["test_it.py"], False),
        ("Q2", False, ["-n", "1"], True),  # processes tell what passed in them
        ("Q2", True, ["-n", "1"], False),
    ],
)
def test_a_full_run_must_show_what_is_claimed(
    pytester: pytest.Pytester,
    claimed: str,
    two_passes: bool,
    arguments: list[str],
    complains: bool,
) -> None:
    make_suite(pytester, TESTS.format("True" if two_passes else "False"))
    pytester.path.joinpath("page.md").write_text(f"| {claimed} | what | `test_it.py`: test_x |\n")
    result = pytester.runpytest_inprocess(*arguments)
    assert result.ret == (1 if complains else 0)
    assert (f"no test of it passed: {claimed}" in result.stdout.str()) == complains


def test_a_mark_that_is_not_on_the_list_ends_the_run(pytester: pytest.Pytester) -> None:
    make_suite(pytester, TESTS.format("True").replace("Q1", "Q99"))
    result = pytester.runpytest_inprocess()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "not on the conformance list: Q99" in result.stderr.str() + result.stdout.str()
