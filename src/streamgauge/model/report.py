"""Due reports and what they should say: the vocabulary between the definition, the evaluators and the oracle."""

from dataclasses import dataclass

from streamgauge.model.tabular import Tabular
from streamgauge.model.terms import Row


@dataclass(frozen=True, slots=True)
class View:
    """The content of one window at a report: its scope's borders as the engine would name them (ms), and its content.

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

    ``views`` are what the query's windows hold at it, in the order of the query's windows.
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
        """The latest time that the content may hold, ms."""
        return max(view.last for view in self.views)

    @property
    def seen(self) -> int:
        """How many arrivals it may hold, by rank in system time."""
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
