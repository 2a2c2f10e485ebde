"""What the oracle's diagnosis says of a deviating run, in words that do not depend on the case."""

import re
from collections.abc import Sequence
from dataclasses import replace

from streamgauge.bench.certifying.running import Outcome
from streamgauge.bench.diagnosis.diagnose import diagnose
from streamgauge.bench.judging.judge import by_arrival
from streamgauge.model.run import Run
from streamgauge.model.semantics import Clock
from streamgauge.model.verdict import Part
from streamgauge.semantics.refusal import OutOfOrderError, RefusedError

NONE_FITS = "no semantics, no named fault and no two of them give these answers"

_COUNTED = re.compile(r"\b[\d,]+ (report|border)s?\b")
_NTH = re.compile(r"\b(?:first|last|\d+th)(?= element lost)")
_NUMBER = re.compile(r"-?\b\d[\d,.]*")


def findings(outcome: Outcome) -> tuple[str, ...]:
    """Every explanation of a wrong outcome: how the engine failed, the models that fit, or that none does."""
    assert outcome.run is not None
    if outcome.run.header.failure:
        return (_failed(outcome.run.header.failure),)
    run, stream = outcome.run, outcome.asked.case.stream
    if outcome.asked.semantics.clock is not Clock.APPLICATION:
        run, stream = _on_the_wall(run), by_arrival(run, stream)
    try:
        diagnosis = diagnose(run, stream)
    except (RefusedError, OutOfOrderError) as error:
        return (f"not diagnosed: {error}",)
    if not diagnosis.exact:
        return (NONE_FITS,)
    return tuple(dict.fromkeys(map(_words, diagnosis.models)))


def _on_the_wall(run: Run) -> Run:
    arrived = max((fed.handed - run.header.started for fed in run.fed), default=0) // 1_000_000
    return replace(run, header=replace(run.header, advanced_to=arrived))


def _words(model: Sequence[Part]) -> str:
    return " and ".join(sorted(_general(part.name) for part in model))


def _general(name: str) -> str:
    """A part's name without what belongs to the one run: expressions, which element, how often."""
    kind, colon, _ = name.partition(": ")
    return kind if colon else _NTH.sub("one", _COUNTED.sub(r"\1s", name))


def _failed(failure: str) -> str:
    """The last line that a failed engine left, its numbers taken out."""
    last = failure.strip().splitlines()[-1].strip()
    return "fails: " + _NUMBER.sub("n", last)[:160]
