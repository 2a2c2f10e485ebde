"""How long the runs of an experiment will take, at least, said before the first of them.

Example: 6 runs of 30 s of stream in real time, 60,000 triples each: 6 * (1.5 + 30 + 60,000 / 30,000) = 201 s.
"""

from dataclasses import dataclass
from typing import Final

RUN_S: Final = 1.5
"""An engine's process, a run folder and a verdict with few windows, in s of CPU (measured: 1 to 2)."""

TRIPLES_S: Final = 30_000
"""Triples that are answered, recorded and judged in a second of CPU, where a report is due each second of the stream
(measured with ``live`` as C-SPARQL: 105,000 in 3.3 s). Semantics that report at each change take longer."""


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """So many runs of a stream of ``span`` ms and ``triples``, fed at ``factor`` of real time (``None``: fast)."""

    runs: int
    span: int
    triples: int
    factor: float | None

    @property
    def feed_seconds(self) -> float:
        """How long one run is fed, s; 0 as fast as possible, where the work itself is what takes time."""
        return 0.0 if self.factor is None else self.span / 1000 / self.factor

    @property
    def seconds(self) -> float:
        """All runs, one after the other, s."""
        return self.runs * (RUN_S + self.feed_seconds + self.triples / TRIPLES_S)
