"""Due reports and what they should say: the vocabulary between the definition, the evaluators and the oracle."""

from dataclasses import dataclass

from streamgauge.model.terms import Row


@dataclass(frozen=True, slots=True)
class DueReport:
    """A report that is due (or may be, before its content is known).

    ``instant`` is when it is due (ms, application time); ``start`` and ``end`` are the scope's borders as the
    engine would name them. The content is every arrival with ``first <= time <= last`` (both inclusive, ms)
    whose rank in system time is below ``seen``.
    """

    instant: int
    start: int
    end: int
    first: int
    last: int
    seen: int


@dataclass(frozen=True, slots=True)
class ExpectedReport:
    """What one due report should stream: ``rows`` is a bag over ``variables``; ``content`` counts its triples."""

    due: DueReport
    variables: tuple[str, ...]
    rows: tuple[Row, ...]
    content: int
