"""How far the oracle looks. Another bound gives other verdicts, diagnoses or refusals, so it is changed here too."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from streamgauge.oracle.diagnosis.models import Seen
from streamgauge.oracle.diagnosis.search import Search
from tests.oracle.diagnosis.faults.recordings import elements, recording

ORACLE = "streamgauge.oracle"
DOCS = Path(__file__).parents[2] / "docs"

BOUNDS = {
    "judging.align": {"BAND": 50, "MAX_CORRIDOR": 10_000_000},
    "judging.border_fits": {"MAX_STRETCH_TRIPLES": 1_500_000, "MAX_EXACT_TRIALS": 200},
    "judging.cautions": {"MAX_NAMED_IRIS": 3, "MAX_COMPARED_IRIS": 20_000},
    "judging.gracious": {"BUDGET": 20_000_000, "CONTENT_COST": 100, "NARROW": (64, 8, 1)},
    "judging.histories": {"MAX_PAIRS": 100_000},
    "judging.judge": {"MAX_SEARCHED_TRIPLES": 3_000_000, "IN_PROCESS": 1_000_000, "MAX_INSTANTS": 300_000},
    "judging.lifetimes": {"MAX_PAIRS": 256},
    "worlds.blank_nodes": {"MAX_CANDIDATES": 10_000},
    "worlds.conditions": {"MAX_CASES": 2_000},
    "worlds.membership": {"MAX_STEPS": 300_000},
    "diagnosis.diagnose": {"VERY_LONG": 3, "PER_FAMILY": 50, "FINE_EVALUATIONS": 8_000, "NEAREST_ORIGINS": 3},
    "diagnosis.models": {"MAX_LISTED": 5},
    "diagnosis.search": {
        **{"UNITS": (1, 10, 100, 1000), "MAX_ORIGINS": 60, "CLOSEST": 4},
        **{"REPORTS_LIMIT": 3_000, "TRIPLES_LIMIT": 200_000, "ANSWERS_LIMIT": 20_000},
    },
    "diagnosis.faults.clock_drift": {"MAX_RATES": 150},
    "diagnosis.faults.element_lost": {"MAX_LOST": 60},
    "diagnosis.faults.null_aggregate": {"MAX_WORDS": 3},
    "diagnosis.faults.reports_reordered": {"MAX_APART": 200},
    "diagnosis.faults.rounding": {"MAX_DIGITS": 6},
    "diagnosis.faults.runs_on": {"MAX_SLIDES": 10},
    "diagnosis.faults.stream_shifted": {"UNITS": (10, 100, 1000)},
    "diagnosis.faults.window_capped": {"MAX_CAPS": 30},
    "diagnosis.faults.window_size_and_slide": {"MAX_PAIRS": 120, "MAX_SIZES": 40},
}


CALLS: dict[str, Callable[[ModuleType], object]] = {
    "judging.align": lambda module: module.by_order((), (), None),
    "judging.border_fits": lambda module: module._ranks([]),
    "judging.cautions": lambda module: module._local("<urn:a>"),
    "judging.gracious": lambda module: list(module.cautions([], 0)),
    "judging.histories": lambda module: module._sums([]),
    "judging.judge": lambda module: module.first_time(()),
    "judging.lifetimes": lambda module: list(module.signed(())),
    "worlds.blank_nodes": lambda module: module._classes({}),
    "worlds.conditions": lambda module: module.any_of(()),
    "worlds.membership": lambda module: module._as_term(None),
    "diagnosis.diagnose": lambda module: module._shortest(()),
    "diagnosis.models": lambda module: module.ordinal(1),
    "diagnosis.search": lambda module: module.DescriptionLength({}),
}
"""A call of each module but those of faults: `make mutants` takes a test to be of a module where it runs some of it."""


@pytest.fixture(scope="module")
def seen() -> Seen:
    """A recording of two answers."""
    run = recording("1: s p 1. | 12: s p 2.", "SELECT ?s ?v { ?s <urn:p> ?v }", advance=20)
    return Search(run, elements("1: s p 1. | 12: s p 2.")).seen


@pytest.mark.parametrize("module", BOUNDS)
def test_how_far_is_looked(module: str, seen: Seen) -> None:
    found = import_module(f"{ORACLE}.{module}")
    CALLS.get(module, lambda of_faults: list(of_faults.proposals(seen)))(found)
    assert {name: getattr(found, name) for name in BOUNDS[module]} == BOUNDS[module]


@pytest.mark.parametrize(
    ("page", "module", "name", "words"),
    [
        ("judging", "judging.align", "BAND", "moves by at most {:,} reports"),
        ("judging", "worlds.conditions", "MAX_CASES", "more than {:,} cases at one place"),
        ("judging", "worlds.membership", "MAX_STEPS", "or {:,} steps"),
        ("diagnosis", "diagnosis.search", "TRIPLES_LIMIT", "at most {:,} triples"),
        ("diagnosis", "diagnosis.search", "ANSWERS_LIMIT", "and {:,} answers"),
        ("diagnosis", "diagnosis.search", "REPORTS_LIMIT", "more than {:,} reports are skipped"),
    ],
)
def test_pages_name_the_bounds_that_a_reader_meets(page, module, name, words):
    assert words.format(BOUNDS[module][name]) in (DOCS / f"{page}.md").read_text("utf-8")


def test_gracious_mode_says_how_many_triples_it_takes():
    assert "over at most 20 million triples" in (DOCS / "judging.md").read_text("utf-8")
