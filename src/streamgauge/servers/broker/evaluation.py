"""Strategies that evaluate queries again over the closure, at each change or deferred by heuristics.

``Guessing`` is the common part of the two heuristics of SENS (Murth and Kuehn, ESWC 2009; Murth et al., SEP-BM, section
4.2). Similar publications lead to similar notifications: rows are guessed from the effects of earlier publications,
tested one by one by an ASK, and sent immediately; a full evaluation finds the rows that were not guessed. A channel
most of whose rows were guessed is evaluated only at intervals.

The code and full texts of SENS were not available. The abstracts and the report state the above, the threshold of 80%
guessed rows, and the similarities (StringRS: text in blocks; GraphSS: type and properties of the main resource). Our
own choices are the window of 200 rows (at least 20), the longest delay of 10 s, the immediate evaluation of deletions,
50 tests per publication and channel, guesses only for joins, unions and filters, and the templates of both heuristics.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from sys import getsizeof
from typing import Final, Protocol

from streamgauge.incremental.drivers.landmark import ROW, fact_bytes, terms
from streamgauge.incremental.rewrite import UnsupportedError
from streamgauge.model import algebra as al
from streamgauge.model.terms import Row, Term, Triple
from streamgauge.query.traversal import every_pattern, with_names, written_variables
from streamgauge.reasoning.closure import Closure
from streamgauge.reasoning.rules import Rules
from streamgauge.servers.broker.contract import AnswerChange, HeldSizes, Publication, Strategy
from streamgauge.sparql.algebra import TRUE, answer
from streamgauge.sparql.bgp import Dataset, IndexedGraph


class IndexedClosure:
    """The closure of explicit facts under rules, as a graph to evaluate queries over."""

    def __init__(self, rules: Rules) -> None:
        self.closure = Closure(rules)
        self._dataset = Dataset(IndexedGraph(()))

    def load(self, triples: Iterable[Triple]) -> None:
        """Load many facts at once, with what follows from them."""
        self.closure.load(triples)
        self._dataset = Dataset(IndexedGraph(self.closure.facts.match(None, None, None)))

    def change(self, added: Iterable[Triple], removed: Iterable[Triple]) -> bool:
        """Remove, then add facts; returns whether the closure changed."""
        came, went = self.closure.change(added, removed)
        self._dataset.default.discard(went)
        self._dataset.default.extend(came)
        return bool(came or went)

    def rows(self, form: al.Select) -> set[Row]:
        """The answer as a set of rows over its variables; ValueError for unsupported queries."""
        return set(answer(form, self._dataset))

    def holds(self, form: al.Ask) -> bool:
        """The answer of an ASK."""
        return answer(form, self._dataset) == ((TRUE,),)


@dataclass
class EvaluatedChannel:
    """A channel's query, and its answer at the last evaluation."""

    form: al.Select
    shown: set[Row] = field(default_factory=set)
    behind: list[int] = field(default_factory=list)
    """Numbers of the publications since that evaluation."""


class Evaluating(Strategy):
    """Channels over an indexed closure; evaluations are not limited."""

    def __init__(self, rules: Rules) -> None:
        self.stored, self.derives = IndexedClosure(rules), bool(rules.rules)
        self.channels: dict[str, EvaluatedChannel] = {}

    def load(self, triples: Iterable[Triple]) -> None:
        """Load facts before there are channels."""
        self.stored.load(triples)

    def create(self, channel: str, form: al.QueryForm, prepared: object = None) -> tuple[str, ...]:  # noqa: ARG002
        """Create a channel; UnsupportedError for queries other than SELECT, and for LIMIT and GRAPH."""
        if not isinstance(form, al.Select):
            raise UnsupportedError("only a SELECT is evaluated again: write one, or use the strategy incremental")
        if any(isinstance(inner, al.Slice) for inner in every_pattern(form.pattern)):
            raise UnsupportedError(
                "LIMIT and OFFSET are not evaluated again: leave them out, or use the strategy incremental"
            )
        if any(isinstance(inner, al.Graph) for inner in every_pattern(form.pattern)):
            raise UnsupportedError("GRAPH: facts have no graphs here, use the strategy incremental")
        self.channels[channel] = EvaluatedChannel(form, self.stored.rows(form))
        return form.variables

    def drop(self, channel: str) -> None:
        """Remove a channel with its answer."""
        del self.channels[channel]

    def held(self) -> HeldSizes:
        """The sizes of facts and answers."""
        facts = self.stored.closure.facts
        answers = sum(getsizeof(channel.shown) + ROW * len(channel.shown) for channel in list(self.channels.values()))
        return HeldSizes(terms(facts), fact_bytes(facts), answers)

    def rows(self, channel: str) -> Iterable[Row]:
        """The rows of a channel's answer at its last evaluation."""
        return self.channels[channel].shown.copy()

    def size(self, channel: str) -> int:
        """The number of rows of a channel's answer at its last evaluation."""
        return len(self.channels[channel].shown)

    def facts(
        self, subject: Term | None = None, predicate: Term | None = None, end: Term | None = None
    ) -> Iterator[Triple]:
        """The facts of the closure with these terms."""
        return self.stored.closure.facts.match(subject, predicate, end)

    @property
    def explicit(self) -> int:
        """The number of explicit facts."""
        return self.stored.closure.explicit

    def differences(self, channel: EvaluatedChannel) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
        """Evaluate a channel again; returns the rows added and removed."""
        now = self.stored.rows(channel.form)
        added, removed = tuple(now - channel.shown), tuple(channel.shown - now)
        channel.shown = now
        return added, removed


Graph = tuple[Triple, ...]
_TESTABLE: Final = (al.Project, al.Distinct, al.BGP, al.Filter, al.Union, al.Join)


@dataclass(frozen=True, slots=True)
class Settings:
    """When evaluations of a channel are deferred, and how many rows are guessed.

    If more than ``share`` of the last ``window`` rows (at least ``least``) were guessed, evaluations wait for
    ``interval`` seconds. At most ``guesses`` rows are tested per publication.
    """

    share: float = 0.8
    interval: float = 10.0
    window: int = 200
    least: int = 20
    guesses: int = 50


class Heuristic(Protocol):
    """A heuristic with what it has learned for one channel."""

    def learn(self, graph: Graph, row: Row) -> None:
        """Learn that a publication led to a row."""

    def guess(self, graph: Graph) -> Iterable[Row]:
        """Rows that a publication may lead to, likeliest first."""


@dataclass
class _Learned:
    """A channel's heuristic, and for each of the last rows whether it was guessed."""

    heuristic: Heuristic
    test: al.Pattern | None
    guessed: deque[bool]
    evaluated: float = 0.0


@dataclass
class Guessing(Evaluating):
    """Channels over an indexed closure, each with a heuristic created by ``make`` for its number of columns."""

    rules: Rules
    make: Callable[[int], Heuristic]
    settings: Settings = field(default_factory=Settings)
    complete: bool = False

    def __post_init__(self) -> None:
        super().__init__(self.rules)
        self._learned: dict[str, _Learned] = {}

    def create(self, channel: str, form: al.QueryForm, prepared: object = None) -> tuple[str, ...]:
        """Create a channel with its heuristic; UnsupportedError as ``Evaluating``."""
        variables = super().create(channel, form, prepared)
        guessed: deque[bool] = deque(maxlen=self.settings.window)
        self._learned[channel] = _Learned(self.make(len(variables)), _testable(self.channels[channel].form), guessed)
        return variables

    def drop(self, channel: str) -> None:
        """Remove a channel with its heuristic."""
        super().drop(channel)
        del self._learned[channel]

    def publish(self, publications: Sequence[Publication], now: float) -> Iterator[AnswerChange]:
        """The guessed changes of every publication, then those of evaluations that are not deferred."""
        changed = [
            publication for publication in publications if self.stored.change(publication.added, publication.removed)
        ]
        # Heuristics guess only new rows, so a deletion forces an evaluation of every channel.
        deleted = any(change.removed for change in changed)
        for name, channel in self.channels.items():
            channel.behind += [change.number for change in changed]
            for publication in changed:
                yield from self._guessed(name, channel, publication)
        for name, channel in self.channels.items():
            if channel.behind and (deleted or not self._waits(self._learned[name], now)):
                yield from self._evaluated(name, channel, changed, now)

    def evaluate(self, now: float) -> Iterator[AnswerChange]:
        """Do the deferred evaluations."""
        for name, channel in self.channels.items():
            if channel.behind:
                yield from self._evaluated(name, channel, (), now)

    def _guessed(self, name: str, channel: EvaluatedChannel, publication: Publication) -> Iterator[AnswerChange]:
        learned = self._learned[name]
        if learned.test is None or not publication.added:
            return
        tested = 0
        for row in dict.fromkeys(learned.heuristic.guess(publication.added)):
            if tested == self.settings.guesses:
                return
            # An unbound variable cannot be tested by an ASK that replaces variables by terms.
            if row in channel.shown or None in row:
                continue
            tested += 1
            if self.stored.holds(_question(learned.test, channel.form.variables, row)):
                channel.shown.add(row)
                learned.guessed.append(True)
                learned.heuristic.learn(publication.added, row)
                yield AnswerChange(name, (publication.number,), (row,))

    def _waits(self, learned: _Learned, now: float) -> bool:
        """Whether the evaluation is deferred: enough rows were guessed, and the interval has not passed."""
        known, settings = learned.guessed, self.settings
        # A worked example: of the last 40 rows 35 were guessed, which is more than 80%, so the evaluation waits. Of
        # the last 10 all were guessed: that is too few to rely on.
        often = len(known) >= settings.least and sum(known) > settings.share * len(known)
        return often and now - learned.evaluated < settings.interval

    def _evaluated(
        self, name: str, channel: EvaluatedChannel, changed: Sequence[Publication], now: float
    ) -> Iterator[AnswerChange]:
        learned, causes = self._learned[name], tuple(channel.behind)
        added, removed = self.differences(channel)
        learned.evaluated = now
        channel.behind = []
        learned.guessed.extend([False] * len(added))
        # With several causes it is unknown which of them a row is due to, so nothing can be learned from it.
        if len(causes) == 1:
            for publication in changed:
                for row in added[: self.settings.guesses] if publication.added else ():
                    learned.heuristic.learn(publication.added, row)
        if added or removed:
            yield AnswerChange(name, causes, added, removed)


def _testable(form: al.Select) -> al.Pattern | None:
    """The pattern of a query in which a row's terms can replace its variables; ``None`` if that changes its meaning."""
    if not all(isinstance(inner, _TESTABLE) for inner in every_pattern(form.pattern)):
        return None
    pattern = form.pattern
    while isinstance(pattern, al.Project | al.Distinct):
        pattern = pattern.pattern
    shown = frozenset(map(al.Var, form.variables))
    inside = tuple(every_pattern(pattern))
    if any(isinstance(operator, al.Project) for operator in inside) or not all(
        _keeps(operator, shown) for operator in inside
    ):
        return None
    return pattern


def _keeps(pattern: al.Pattern, shown: frozenset[al.Var]) -> bool:
    """Whether a pattern keeps its meaning if terms replace these variables.

    Its parts bind all of them that they use.
    """
    match pattern:
        # A worked example: `{ ?x a :A } UNION { ?y a :B }` with both variables shown. With the terms of a row (a, b)
        # in their places, the ASK holds if a is an :A, although no solution binds both.
        case al.Union(left=left, right=right):
            return shown.intersection(al.pattern_variables(left)) == shown.intersection(al.pattern_variables(right))
        case al.Filter(condition=condition, pattern=inner):
            bound = frozenset(al.pattern_variables(inner))
            return shown.intersection(written_variables(al.Filter(condition, al.BGP(())))) <= bound
        case _:
            return True


def _question(pattern: al.Pattern, variables: Sequence[str], row: Row) -> al.Ask:
    """The ASK query whether a row is in the answer."""
    terms = {al.Var(name): term for name, term in zip(variables, row, strict=True) if term is not None}
    return al.Ask(with_names(pattern, terms))
