"""Due reports and their expected content: the vocabulary of the definition, the evaluators and the oracle."""

from dataclasses import dataclass

from streamgauge.model.tabular import Tabular
from streamgauge.model.terms import Row


@dataclass(frozen=True, slots=True)
class View:
    """One window at a report: the borders of its scope as the engine would name them (ms), and its content.

    The content is every arrival of the window's stream with ``first <= time <= last`` (both inclusive, ms), whose
    rank in system time, over all streams of the query, is at least ``after`` and below ``seen``, and whose own
    validity, if it has one, ends after ``last``.
    """

    start: int
    end: int
    first: int
    last: int
    seen: int
    after: int = 0


@dataclass(frozen=True, slots=True)
class DueReport:
    """A report that is due (or may be, before its content is known) at ``instant`` (ms, application time).

    ``views`` are the contents of the query's windows, in their order.
    """

    instant: int
    views: tuple[View, ...]

    @property
    def start(self) -> int:
        """The start of the earliest scope, ms."""
        return min(view.start for view in self.views)

    @property
    def end(self) -> int:
        """The end of the latest scope, ms."""
        return max(view.end for view in self.views)

    @property
    def last(self) -> int:
        """The latest time (ms) of an element in the content."""
        return max(view.last for view in self.views)

    @property
    def seen(self) -> int:
        """The number of arrivals, by rank in system time, that the content is taken from."""
        return max(view.seen for view in self.views)


@dataclass(frozen=True, slots=True)
class ExpectedReport(Tabular):
    """The answer of one due report: ``rows`` is a bag over ``variables``; ``content`` counts its triples."""

    due: DueReport
    variables: tuple[str, ...]
    rows: tuple[Row, ...]
    content: int

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.variables

    @property
    def bag(self) -> tuple[Row, ...]:
        """The rows that should be streamed."""
        return self.rows
