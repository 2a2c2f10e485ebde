"""Recordings in which an engine slipped at a few reports, or swayed: what explains them, alone and in how many bits."""

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from streamgauge.model.answer import Answer
from streamgauge.model.run import Run
from streamgauge.model.semantics import Grain
from streamgauge.oracle.diagnosis.search import Search
from tests.notation import rows
from tests.oracle.diagnosis.faults.recordings import CLOSE, elements, recording

TABLE = tomllib.loads(Path(__file__).with_name("slips.toml").read_text("utf-8"))


@cache
def right(stream: str, grain: str, until: int) -> Run:
    """The run of an engine without a fault."""
    semantics = replace(CLOSE, grain=Grain(grain))
    return recording(stream, TABLE["query"], advance=until, semantics=semantics)


def explanations(case: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The slips that explain a recording, each alone, and the sway, alone and with one: what is said, and the bits."""
    run = right(case.get("stream", TABLE["stream"]), case.get("grain", "report"), case.get("until", 70))
    texts = case["answers"].split("|") if case["answers"] else []
    answers = tuple(Answer(("s", "v"), tuple(rows(text))) for text in texts)
    search = Search(replace(run, answers=answers), elements(case.get("stream", TABLE["stream"])))
    reports, results = search.reports(search.base), {}
    for slip in search.slips:
        fit = search.fit(search.base, reports, (slip,))
        if fit is not None and fit.slipped:
            part = slip.describe(fit.slipped[slip])
            results[part.name] = [part.sentence, round(slip.bits(fit.slipped[slip]), 2)]
    for sway, slips in product(search.sways, [(), *((slip,) for slip in search.slips)]):
        if (swayed := search.swayed(search.base, sway, slips)) and len(swayed[0].slipped) == len(slips):
            fit, used = swayed
            part = sway.describe(fit.swayed, used)
            names = [part.name, *(slip.describe(places).name for slip, places in fit.slipped.items())]
            results[" + ".join(names)] = [part.sentence, fit.choices]
    return results


@pytest.mark.parametrize("case", TABLE["case"], ids=lambda case: case["name"])
def test_a_recording_with_slips_is_explained_by_these(case: Mapping[str, Any]) -> None:
    assert explanations(case) == case["explained"]
