"""The pages of the docs name the bounds of the oracle that a reader meets."""

from importlib import import_module
from pathlib import Path

import pytest

from streamgauge.oracle.judging.gracious import BUDGET

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    ("page", "module", "name", "words"),
    [
        ("judging", "judging.align", "BAND", "moves by at most {:,} reports"),
        ("judging", "worlds.conditions", "MAX_CASES", "more than {:,} cases at one place"),
        ("judging", "worlds.membership", "MAX_STEPS", "or {:,} steps"),
        ("diagnosis", "diagnosis.search", "TRIPLES_LIMIT", "limited to {:,} triples"),
        ("diagnosis", "diagnosis.search", "ANSWERS_LIMIT", "and {:,} answers"),
        ("diagnosis", "diagnosis.search", "REPORTS_LIMIT", "more than {:,} reports are skipped"),
    ],
)
def test_pages_name_the_bounds_that_a_reader_meets(page, module, name, words):
    bound = getattr(import_module(f"streamgauge.oracle.{module}"), name)
    assert words.format(bound) in (DOCS / f"{page}.md").read_text("utf-8")


def test_gracious_mode_says_how_many_triples_it_takes():
    assert f"over at most {BUDGET // 1_000_000} million triples" in (DOCS / "judging.md").read_text("utf-8")
