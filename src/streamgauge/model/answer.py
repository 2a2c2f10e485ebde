"""Answers: what an engine says."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from streamgauge.model.terms import Row, Term

AnswerKind: TypeAlias = Literal["solutions", "triples", "boolean"]


@dataclass(frozen=True, slots=True)
class Answer:
    """One report of an engine.

    ``received`` is the harness's monotonic clock in ns (0 until it is stamped). ``instant`` (ms) and
    ``scope`` (start, end in ms) are what the engine says the answer speaks of, ``None`` when it is silent.
    ``added`` is the bag that is streamed; ``removed`` is empty but for engines that send deltas.
    ``made`` (monotonic ns) is when the engine says that it made the answer, ``None`` when it is silent.
    A boolean answer is one row with ``"true"^^xsd:boolean`` or ``"false"^^xsd:boolean``.
    """

    variables: tuple[str, ...]
    added: tuple[Row, ...]
    removed: tuple[Row, ...] = ()
    kind: AnswerKind = "solutions"
    instant: int | None = None
    scope: tuple[int, int] | None = None
    received: int = 0
    made: int | None = None

    def rows(self) -> list[dict[str, Term]]:
        """The rows of ``added`` by column, terms in N-Triples, unbound variables left out.

        The columns of triples are ``subject``, ``predicate`` and ``object``, that of a boolean is ``answer``.
        """
        names = self.columns
        return [{name: term for name, term in zip(names, row, strict=True) if term is not None} for row in self.added]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns of its rows."""
        if self.kind == "solutions":
            return self.variables
        return ("subject", "predicate", "object") if self.kind == "triples" else ("answer",)
