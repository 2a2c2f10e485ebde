"""Which faults are worth trying on a run: by its query, its windows, its stream, and what was answered."""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamgauge.model.semantics import R2S, Origin, Report, Tick
from streamgauge.oracle.diagnosis.faults import by_kind
from streamgauge.oracle.diagnosis.models import Fault, Slip, Sway
from streamgauge.oracle.diagnosis.search import Search, values_by_field
from tests.oracle.diagnosis.faults.recordings import CLOSE, elements, recording

CASES = tomllib.loads(Path(__file__).with_name("proposed.toml").read_text("utf-8"))["case"]
EXCLUSIVE = [
    ["value of scope: scope = range", "slide_ignored: SLIDE ignored: [t - 10 ms, t]"],
    ["window_size: window is RANGE 9 ms, SLIDE 9 ms", "window_size_and_slide: window is RANGE 30 ms, SLIDE 30 ms"],
    ["stream_shifted: times shifted by 1 ms", "stream_shifted: times cut to 10 ms", "element_lost: last element lost",
     "window_capped: full at 1 element"],
    ["window_capped: window capped at the newest 1 triple", "one_per_subject: newest per subject only"],
    ["evaluated_on_match: evaluated on new matches only", "starts_at_first_match: reports start at the first match"],
    ["operator_swapped: = for >: (?v > 1)", "filter_ignored: condition ignored: (?v != 9)",
     "filter_ignored: all conditions ignored"],
    ["distinct: DISTINCT applied"],
    ["optional_as_join: OPTIONAL as a join", "optional_as_join: OPTIONAL ignored"],
]  # fmt: skip
"""Faults of which one undoes the other, or of which both are more than an engine has: they are not tried together."""


def searched(case: Mapping[str, Any]) -> tuple[Search, dict[str, tuple[Fault | Slip | Sway, ...]]]:
    """The search over a case's run, and all that is worth trying on it, by kind."""
    text = case.get("stream") or " | ".join(f"{time}: s p {time}." for time in range(*case["times"]))
    changes: dict[str, Any] = dict(case.get("semantics", {}))
    if "report" in changes:
        changes["report"] = frozenset(map(Report, changes["report"]))
    kinds: dict[str, Callable[[str], Any]] = {"r2s": R2S, "origin": Origin, "tick": Tick}
    changes |= {name: kind(changes[name]) for name, kind in kinds.items() if name in changes}
    run = recording(
        text,
        case["query"],
        case.get("answered"),
        tuple(case.get("window", (10, 10))),
        advance=case.get("until", 30),
        semantics=replace(CLOSE, **changes),
        named=case.get("named", False),
    )
    if later := case.get("later", 0):
        run = replace(run, answers=tuple(replace(one, instant=(one.instant or 0) + later) for one in run.answers))
    run = replace(run, answers=tuple(case.get("recorded", run.answers)))
    search = Search(run, elements(text))
    return search, values_by_field(search.seen) | by_kind(search.seen)


def proposed(case: Mapping[str, Any]) -> dict[str, list[Fault]]:
    """The whole-run faults that are worth trying, by kind."""
    return {kind: [fault for fault in faults if isinstance(fault, Fault)] for kind, faults in searched(case)[1].items()}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_the_faults_worth_trying_are_these(case: Mapping[str, Any]) -> None:
    result = proposed(case)
    names = {kind: [fault.part.name for fault in faults] for kind, faults in result.items()}
    assert {kind: names.get(kind, []) for kind in case.get("proposed", {})} == case.get("proposed", {})
    for kind, (count, first, last) in case.get("many", {}).items():
        assert (len(names[kind]), names[kind][0], names[kind][-1]) == (count, first, last)
    sentences = {fault.part.name: fault.part.sentence for faults in result.values() for fault in faults}
    assert all(sentence.endswith(".") for sentence in sentences.values())
    assert {name: sentences[name] for name in case.get("sentences", {})} == case.get("sentences", {})


def test_faults_of_which_one_undoes_the_other_are_not_tried_together() -> None:
    faults = {f"{kind}: {fault.part.name}": fault for kind, several in proposed(CASES[0]).items() for fault in several}
    families = [{faults[name].family for name in names} for names in EXCLUSIVE]
    assert all(len(family) == 1 for family in families)
    assert len(set().union(*families)) == len(EXCLUSIVE)


def test_an_ignored_minus_and_a_lost_branch_of_union_are_tried_together() -> None:
    (case,) = (case for case in CASES if case["name"] == "MINUS and UNION")
    minus, left, right = (fault.family for fault in proposed(case)["negation_ignored"])
    assert minus != left == right
