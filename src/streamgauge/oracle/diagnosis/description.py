"""How long the description of a model is, in bits: models that explain the same answers are ranked by it.

A model is described part by part. A part says which kind of fault it is (log2 of the kinds that are possible in this
run), which of the kind's values it has (log2 of the values that were proposed), and, when it happens now and then,
where it happened and what was chosen there. Fewer free choices make a shorter description, and the shorter one is
the likelier one: a difference of n bits is odds of 2^n to 1 (minimum description length; Rissanen 1978).

Worked example: 32 kinds are possible. A window of other RANGE, one of 16 proposed, needs 5 + 4 = 9 bits. Rows lost in
four of 16 reports, each time one of four rows, need 5 + 1 bits for the kind and its two values, and for each of the
four reports 4 bits (which report) + 2 (how many of four rows) + 2 (which one): 38. Borders that jitter, where 32
moves would change an answer and four did, need 5 + 0 + 4 * 5 = 25 bits. The window of other RANGE comes first.
"""

from collections.abc import Mapping, Sequence
from math import log2
from typing import TypeAlias

from streamgauge.oracle.diagnosis.explanation import ExplanationFit
from streamgauge.oracle.diagnosis.models import Fault, Model, Slip, Sway

AnyPart: TypeAlias = Fault | Slip | Sway


class DescriptionLength:
    """The lengths of descriptions over the parts that one run allows, by their kinds."""

    def __init__(self, kinds: Mapping[str, Sequence[AnyPart]]) -> None:
        possible = [each for each in kinds.values() if each]
        self._kind = log2(max(1, len(possible)))
        self._value = {part: log2(len(parts)) for parts in possible for part in parts}

    def of_part(self, part: AnyPart) -> float:
        """The bits for a part's kind and value."""
        return self._kind + self._value[part]

    def of(self, model: Model, fit: ExplanationFit | None) -> float:
        """The bits for a model, with the places where it slipped or swayed."""
        bits = sum(map(self.of_part, model))
        if fit is not None:
            bits += sum(slip.bits(places) for slip, places in fit.slipped.items())
            bits += fit.swayed * log2(max(2, fit.choices))
        return bits

    def shortest(self, parts: Sequence[AnyPart]) -> float:
        """The fewest bits that one of some parts needs."""
        return min(map(self.of_part, parts), default=0.0)

    def longest(self, parts: Sequence[AnyPart]) -> float:
        """The most bits that one of some parts needs, wherever it happens."""
        return max(map(self.of_part, parts), default=0.0)
