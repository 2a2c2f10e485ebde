"""The exact strategy: changes of answers are derived from changes of facts, publication by publication."""

from collections.abc import Iterable, Iterator, Sequence
from threading import Thread
from typing import Final

from streamgauge.incremental.budget import BOUNDLESS, TooMuchError
from streamgauge.incremental.drivers.landmark import (
    Difference,
    Landmark,
    StandingQuery,
    answer_bytes,
    fact_bytes,
    terms,
)
from streamgauge.incremental.facts.graphs import Quad
from streamgauge.model.algebra import QueryForm
from streamgauge.model.fact import NOT_HERE, asked, default_only, in_graph, parted
from streamgauge.model.terms import Row, Term, Triple
from streamgauge.reasoning.rules import Rules
from streamgauge.servers.broker.contract import (
    NO_FAILURES,
    AnswerChange,
    Failures,
    HeldSizes,
    Publication,
    Strategy,
    Turn,
)

LARGE: Final = 4 * 2**20
"""Approximate bytes of an answer above which its memory is released in a thread, so that nobody waits for that."""


def start(rules: Rules) -> "Incremental":
    """The strategy without facts and channels."""
    return Incremental(rules)


def _stepped(steps: Iterator[None], turn: Turn) -> bool:
    """Do one step within a turn; returns whether it was the last."""
    with turn():
        return next(steps, True) is True


def _let_go(standing: StandingQuery) -> None:
    """Release the memory of a query that has ended."""
    if answer_bytes((standing,)) > LARGE:
        Thread(target=standing.let_go, name="streamgauge-release", daemon=True).start()
    else:
        standing.let_go()


class Incremental(Strategy):
    """Incremental evaluation of queries over standing facts (``Landmark``)."""

    graphs = True

    def __init__(self, rules: Rules) -> None:
        self._driver, self.derives = Landmark(rules), bool(rules.rules)
        self._standing: dict[str, StandingQuery] = {}
        self._names: dict[StandingQuery, str] = {}
        self._refused: dict[int, str] = {}

    def limit(self, effort: int, derived: int, change: int | None = None, changes: int | None = None) -> None:
        """Set the limits of visits; ``changes`` is unlimited by default."""
        self._driver.limit(effort, derived, change, BOUNDLESS if changes is None else changes)

    def failures(self) -> Failures:
        """Publications that derived too much, and queries whose change cost too much."""
        if not self._refused and not self._driver.has_failed:
            return NO_FAILURES
        refused, self._refused = self._refused, {}
        ended = self._driver.failed().items()  # a query that fails while it is created has no name yet
        return Failures(
            refused, {self._names[standing]: str(why) for standing, why in ended if standing in self._names}
        )

    def load(self, triples: Iterable[Triple]) -> None:
        """Load facts before there are queries."""
        named: list[Quad] = []
        self._driver.load(default_only(triples, named))
        self._driver.graphs.change(named)

    def prepare(self, form: QueryForm, turn: Turn, alone: Turn) -> StandingQuery:
        """Build the query, load its patterns in turns under the lock, and evaluate all other operators without it."""
        with alone():
            standing = StandingQuery(form, self._driver)
        try:
            steps = self._driver.enter(standing)
            while not _stepped(steps, turn):
                pass
            with alone():
                standing.settle()
        except BaseException:
            with turn():
                standing.end()
            standing.let_go()
            raise
        return standing

    def abandon(self, prepared: object) -> None:
        """Detach a prepared query from the facts."""
        if isinstance(prepared, StandingQuery):
            prepared.end()
            _let_go(prepared)

    def create(self, name: str, form: QueryForm, prepared: object = None) -> tuple[str, ...]:
        """Register a query; UnsupportedError names a part that cannot be maintained incrementally."""
        if isinstance(prepared, StandingQuery):
            standing = prepared
            self._driver.begin(standing)
        else:
            standing = self._driver.ask(form)
        self._standing[name] = standing
        self._names[standing] = name
        return standing.kept.variables

    def drop(self, name: str) -> None:
        """Remove a query and its answer."""
        standing = self._standing.pop(name)
        del self._names[standing]
        standing.end()
        _let_go(standing)

    def held(self) -> HeldSizes:
        """The sizes of facts and answers, named graphs not included."""
        facts = self._driver.closure.facts
        return HeldSizes(terms(facts), fact_bytes(facts), answer_bytes(list(self._names)))

    def rows(self, name: str) -> Iterable[Row]:
        """The rows of the current answer, as a snapshot that may be iterated later."""
        # Copied here, under the broker's lock; the generator below runs later, without it.
        solutions = self._standing[name].kept.solutions().copy()
        return (row for row, count in solutions.items() if count > 0)

    def size(self, name: str) -> int:
        """The number of stored rows of an answer."""
        return len(self._standing[name].kept.solutions())

    def publish(self, publications: Sequence[Publication], now: float) -> Iterator[AnswerChange]:  # noqa: ARG002
        """Each publication's own differences."""
        for publication in publications:
            cause = (publication.number,)
            try:
                changed = self._changed(publication)
            except TooMuchError as error:
                self._refused[publication.number] = str(error)
                continue
            for standing, change in changed:
                yield AnswerChange(self._names[standing], cause, change.added, change.removed)

    def _changed(self, publication: Publication) -> Iterator[tuple[StandingQuery, Difference]]:
        added, named = parted(publication.added)
        removed, gone = parted(publication.removed)
        return self._driver.change(added, removed, (named, gone) if named or gone else None)

    @property
    def explicit(self) -> int:
        """The number of explicit facts, those of named graphs included."""
        return self._driver.closure.explicit + self._driver.graphs.explicit

    def facts(
        self, subject: Term | None = None, predicate: Term | None = None, end: Term | None = None
    ) -> Iterator[Triple]:
        """The closure's facts with these terms; those of named graphs if ``subject`` encodes a graph (``asked``)."""
        if subject is not None and " " in subject and not subject.startswith("<<"):
            name, own = asked(subject)
            match = self._driver.graphs.match(name, own, predicate, end)
            return (NOT_HERE if fact is None else in_graph(*fact) for fact in match)
        return self._driver.closure.facts.match(subject, predicate, end)
