"""Answers: what an engine says."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from streamgauge.model.terms import Row

AnswerKind: TypeAlias = Literal["solutions", "triples", "boolean"]


@dataclass(frozen=True, slots=True)
class Answer:
    """One report of an engine.

    ``received`` is the harness's monotonic clock in ns (0 until it is stamped). ``instant`` (ms) and
    ``scope`` (start, end in ms) are what the engine says the answer speaks of, ``None`` when it is silent.
    ``added`` is the bag that is streamed; ``removed`` is empty but for engines that send deltas.
    A boolean answer is one row with ``"true"^^xsd:boolean`` or ``"false"^^xsd:boolean``.
    """

    variables: tuple[str, ...]
    added: tuple[Row, ...]
    removed: tuple[Row, ...] = ()
    kind: AnswerKind = "solutions"
    instant: int | None = None
    scope: tuple[int, int] | None = None
    received: int = 0
