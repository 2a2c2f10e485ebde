"""Every answer is one report late: a window's answer is sent for the next one."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis.models import Fault, Said, Seen


def proposals(seen: Seen) -> Iterator[Fault]:
    """Late with an empty answer at first; where answers name their instants, late with none at first, and early."""
    late = Part("answers one report late", "Every report holds the answer of the report before it, the first one none.")
    yield Fault(late, "delay", lambda case: replace(case, tellings=(*case.tellings, _empty_first)))
    if seen.recorded.count == 0 or seen.recorded.instant(0) is None:
        return  # without instants these are reports lost at the tail and at the head
    silent = Part(
        "answers one report late, the first lost",
        "Every report holds the answer of the one before it; the first is not sent.",
    )
    yield Fault(silent, "delay", lambda case: replace(case, tellings=(*case.tellings, _silent_first)))
    early = Part("answers one report early", "Every report holds the answer of the report after it.")
    yield Fault(early, "delay", lambda case: replace(case, tellings=(*case.tellings, _early)))


def _empty_first(sayings: tuple[Said, ...]) -> tuple[Said, ...]:
    return (*(replace(saying, rows=()) for saying in sayings[:1]), *_silent_first(sayings))


def _silent_first(sayings: tuple[Said, ...]) -> tuple[Said, ...]:
    return tuple(replace(now, rows=before.rows) for before, now in pairwise(sayings))


def _early(sayings: tuple[Said, ...]) -> tuple[Said, ...]:
    return tuple(replace(now, rows=after.rows) for now, after in pairwise(sayings))
