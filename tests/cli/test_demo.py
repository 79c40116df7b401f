"""`matview demo` hands over what it was told."""

from __future__ import annotations

import pytest

from .conftest import Run


@pytest.mark.parametrize(
    ("tokens", "told"),
    [
        ((), ((None,), {"seconds": 60.0, "rewrite": True, "versions": 2})),
        (
            ("d", "--seconds", 1, "--no-rewrite", "--versions", 3, "--seed", 4),
            (("d",), {"seconds": 1.0, "rewrite": False, "versions": 3, "seed": 4}),
        ),
    ],
)
def test_demo(run: Run, monkeypatch: pytest.MonkeyPatch, tokens: tuple[object, ...], told: object) -> None:
    calls: list[object] = []

    def play(*arguments: object, **options: object) -> int:
        calls.append((arguments, options))
        return 1

    monkeypatch.setattr("matview.cli.demo.run", play)
    assert run("demo", *tokens).code == 1, "the demo's own verdict"
    assert calls == [told]


@pytest.mark.parametrize(
    ("tokens", "told"),
    [((), ((None,), {"seconds": 25.0})), (("d", "--seconds", 3), (("d",), {"seconds": 3.0}))],
)
def test_retail(run: Run, monkeypatch: pytest.MonkeyPatch, tokens: tuple[object, ...], told: object) -> None:
    calls: list[object] = []

    def play(*arguments: object, **options: object) -> int:
        calls.append((arguments, options))
        return 1

    monkeypatch.setattr("matview.cli.demo.run_retail", play)
    assert run("demo", "retail", *tokens).code == 1
    assert calls == [told]
