"""The query is evaluated only when an arrival brings a new match, not when elements leave the window (CQELS)."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis.models import Fault, Rows, Seen


def proposals(_seen: Seen) -> Iterator[Fault]:
    """Evaluation gated by new matches."""
    sentence = "The query is evaluated only when a new match arrives, not when matches leave the window."
    yield Fault(Part("evaluated on new matches only", sentence), lambda case: replace(case, gate=_new), family="gate")


def _new(matches: Sequence[Rows]) -> bool:
    before: Rows = matches[-2] if len(matches) > 1 else ()
    return bool(Counter(matches[-1]) - Counter(before))
