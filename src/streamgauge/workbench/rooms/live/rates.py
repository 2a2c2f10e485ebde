"""Rates: elements and answers a second over the last ten seconds."""

from collections import deque
from typing import Final, NamedTuple

SPAN_S: Final = 10.0


class CountSample(NamedTuple):
    """Counts at an instant: ``at`` in seconds of a clock that never goes back."""

    at: float
    elements: int
    answers: int


class RateMeter:
    """Counts of the last ten seconds, sampled now and then."""

    def __init__(self, first: CountSample) -> None:
        self._samples = deque((first,))

    def add(self, sample: CountSample) -> None:
        """A later sample; those older than the span go, but for the newest of them."""
        samples = self._samples
        samples.append(sample)
        while len(samples) > 2 and samples[1].at <= sample.at - SPAN_S:
            samples.popleft()

    def rates(self, now: CountSample) -> tuple[float, float]:
        """Elements and answers a second until now."""
        first = self._samples[0]
        seconds = now.at - first.at
        if seconds <= 0:
            return 0.0, 0.0
        return (now.elements - first.elements) / seconds, (now.answers - first.answers) / seconds
