"""What cannot be lowered is refused: with a code, the place where it stands, and words that help."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from matview.errors import MatviewError
from matview.sql.lower import lower
from matview.sql.parse import parse_one

from .tables import schema_of


@dataclass(frozen=True)
class Refusal:
    query: str
    code: str
    place: str
    words: tuple[str, ...]


def _refusals() -> list[Refusal]:
    blocks = (Path(__file__).parent / "refusals.txt").read_text().strip().split("\n\n")
    return [_refusal(*block.split("\n!! ")) for block in blocks]


def _refusal(query: str, expected: str) -> Refusal:
    code, place, *words = expected.split()
    return Refusal(query, code, place, tuple(words))


REFUSALS = _refusals()


@pytest.mark.parametrize("refusal", REFUSALS, ids=[r.query[:60] for r in REFUSALS])
def test_refused(refusal: Refusal) -> None:
    with pytest.raises(MatviewError) as caught:
        lower(parse_one(refusal.query).query, schema_of, "views.sql")
    error = caught.value
    assert error.code == refusal.code, str(error)
    assert str(error.where) == f"views.sql:{refusal.place}", str(error)
    assert [word for word in refusal.words if word not in f"{error.what} {error.help}"] == [], str(error)
    assert error.help
