"""Every answer is one report late: a window's answer is sent for the next one."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis.models import Fault, ModelReport, Seen


def proposals(seen: Seen) -> Iterator[Fault]:
    """Late, after an empty first answer; if answers name their instants, also late without a first one, and early."""
    late = Part("answers one report late", "Every report holds the answer of the report before it, the first one none.")
    yield Fault(late, lambda case: replace(case, report_rules=(*case.report_rules, _empty_first)))
    if seen.recorded.count == 0 or seen.recorded.instant(0) is None:
        return  # without instants these are reports lost at the tail and at the head
    silent = Part(
        "answers one report late, the first lost",
        "Every report holds the answer of the one before it; the first is not sent.",
    )
    yield Fault(silent, lambda case: replace(case, report_rules=(*case.report_rules, _silent_first)))
    early = Part("answers one report early", "Every report holds the answer of the report after it.")
    yield Fault(early, lambda case: replace(case, report_rules=(*case.report_rules, _early)))


def _empty_first(reports: tuple[ModelReport, ...]) -> tuple[ModelReport, ...]:
    return (*(replace(report, rows=()) for report in reports[:1]), *_silent_first(reports))


def _silent_first(reports: tuple[ModelReport, ...]) -> tuple[ModelReport, ...]:
    # The report keeps its instant and takes the rows of its neighbour: an engine that is late sends at the right time
    # what was right before.
    return tuple(replace(now, rows=before.rows) for before, now in pairwise(reports))


def _early(reports: tuple[ModelReport, ...]) -> tuple[ModelReport, ...]:
    return tuple(replace(now, rows=after.rows) for now, after in pairwise(reports))
