"""Why two evaluations differ, row by row, and scopes that are written as they hold their triples."""

from dataclasses import replace

import pytest

from streamgauge.semantics.profiles import PROFILES
from streamgauge.workbench.rooms.playground.examples import FIRST
from streamgauge.workbench.rooms.playground.replies import answer_json
from streamgauge.workbench.rooms.playground.result import result
from streamgauge.workbench.rooms.playground.state import PlaygroundState

QUERY = "SELECT ?s FROM NAMED WINDOW <urn:w> ON <urn:in> [RANGE 10s STEP 5s] WHERE { WINDOW <urn:w> { ?s ?p ?o } }"


def found(stream: str, b: dict[str, str], advance: int = 16_000):
    return result(PlaygroundState(QUERY, stream, advance=advance, a={"profile": "rspql"}, b=b))


OVERLAP = "1000: a p b.\n7000: b p d.\n15000: c p f."


@pytest.mark.parametrize(
    ("b", "reason"),
    [
        ({"r2s": "Istream"}, "B's content gives 1 row of these too, but B sends rows that are new."),
        (
            {"r2s": "Istream", "borders": "(o, c]"},
            "B's window (5,000, 15,000] holds the triples of 15,000 ms, A's does not. "
            "B's content gives 1 row of these too, but B sends rows that are new.",
        ),
        ({"borders": "(o, c]"}, "B's window (5,000, 15,000] holds the triples of 15,000 ms, A's does not."),
    ],
)
def test_each_row_of_a_difference_has_its_reason(b, reason):
    differences = {pair.instant: pair.why for pair in found(OVERLAP, {"profile": "rspql"} | b).pairs}
    assert differences[15_000] == reason


def test_a_scope_holds_what_its_label_says():
    told = answer_json(found("0: a p b.\n2500: c p d.\n8000: e p f.", {"profile": "cqels"}, 12_000))
    labels = {entry["instant"]: entry["windows"][0] for entry in told["b"]["candidates"]}
    assert (labels[0]["scope"], labels[0]["triples"]) == ("[0, 0]", 1)
    assert (labels[2_500]["scope"], labels[2_500]["triples"]) == ("[0, 2,500]", 2)


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_the_first_example_has_an_answer_under_every_profile_of_windows(name):
    trouble = result(replace(FIRST, b={"profile": name})).troubles
    assert not [item.sentence for item in trouble if "RSTREAM" in item.sentence.upper()]
