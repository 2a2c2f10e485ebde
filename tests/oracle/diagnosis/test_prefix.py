"""The beginning of a run that is too large to explain: whole instants, with the answers that they can cause."""

from dataclasses import replace

import pytest

from streamgauge.oracle.diagnosis.prefix import NoPrefixError, prefix
from streamgauge.semantics.profiles import RSPQL
from tests.notation import stream
from tests.oracle.runs import right_run

TEXT = " | ".join(f"{1000 * n}: s{n} p o. s{n} q o." for n in range(10))
ELEMENTS = stream(TEXT)
RUN = right_run(RSPQL, TEXT, window=(2000, 2000), advance=10_000)
"""Ten elements of two triples, and reports at 2,000 to 10,000 ms."""


def cut(triples=100, answers=100, run=RUN):
    """The horizon of the prefix, the times of its elements, and the instants of its answers."""
    part, kept = prefix(run, iter(ELEMENTS), lambda count: run.answers[:count], triples, answers)
    assert part.fed == tuple(one for one in run.fed if one.time <= part.header.advanced_to)
    return part.header.advanced_to, [e.time for e in kept], [answer.instant for answer in part.answers]


@pytest.mark.parametrize(
    ("limits", "end", "elements", "answers"),
    [
        ({}, 10_000, 10, 5),
        ({"triples": 20}, 10_000, 10, 5),
        ({"triples": 19}, 8_999, 9, 4),
        ({"triples": 9}, 3_999, 4, 1),
        ({"triples": 8}, 3_999, 4, 1),
        ({"triples": 7}, 2_999, 3, 1),
        ({"answers": 5}, 10_000, 10, 5),
        ({"answers": 4}, 9_999, 10, 4),
        ({"answers": 1}, 3_999, 4, 1),
        ({"triples": 9, "answers": 3}, 3_999, 4, 1),
        ({"triples": 17, "answers": 1}, 3_999, 4, 1),
    ],
)
def test_a_prefix_ends_before_the_first_element_or_answer_left_out(limits, end, elements, answers):
    assert cut(**limits) == (end, [1000 * n for n in range(elements)], [2000 * n for n in range(1, answers + 1)])


def test_answers_of_one_instant_stay_together():
    twice = replace(RUN, answers=tuple(answer for answer in RUN.answers for _ in range(2)))
    assert cut(answers=3, run=twice)[2] == [2000, 2000]
    assert cut(answers=4, run=twice)[2] == [2000, 2000, 4000, 4000]


def test_what_has_no_prefix_is_named():
    nameless = replace(RUN, answers=tuple(replace(answer, instant=None) for answer in RUN.answers))
    assert cut(triples=20, run=nameless)[0] == 10_000
    with pytest.raises(NoPrefixError, match="its answers name no instants"):
        cut(triples=19, run=nameless)
    with pytest.raises(NoPrefixError, match="its first element has more than 1 triples"):
        cut(triples=1)
    with pytest.raises(NoPrefixError, match="not in the order of their instants"):
        cut(triples=9, run=replace(RUN, answers=RUN.answers[::-1]))
