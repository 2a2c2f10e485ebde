"""Strategies that answer queries again: a SPARQL store with the closure in it, and the heuristics that put answers off.

``Guessing`` is the common part of both heuristics of SENS (Murth and Kuehn, ESWC 2009; Murth et al., SEP-BM, section
4.2). Similar publications lead to similar notifications: rows are guessed from what earlier publications led to, tested
one by one, and told at once; a full evaluation finds what was not guessed. A channel most of whose rows were guessed is
evaluated only at intervals. Which parameters are deduced is said in docs/broker-strategies.md.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from sys import getsizeof
from typing import Final, Protocol

import pyoxigraph as ox

from streamgauge.formats.canonical import parse_term
from streamgauge.incremental.drivers.landmark import ROW, fact_bytes, terms
from streamgauge.model import algebra as al
from streamgauge.model.terms import Row, Term, Triple
from streamgauge.query.printer import sparql
from streamgauge.query.traversal import every_pattern, with_names
from streamgauge.reasoning.closure import Closure
from streamgauge.reasoning.rules import Rules
from streamgauge.semantics.stored_query import StoredQuery, store_gap
from streamgauge.semantics.stored_terms import stored_literals
from streamgauge.servers.broker.contract import AnswerChange, HeldSizes, Publication, Strategy
from streamgauge.sparql.algebra import TRUE, answer
from streamgauge.sparql.bgp import Dataset, IndexedGraph


class StoredClosure:
    """Explicit facts with what rules derive of them, in a store of pyoxigraph's.

    The store keeps values, the closure terms. Where a stored form stands for two literals of the facts, or a query
    reads lexical forms, the query is evaluated over the closure's facts by ``streamgauge.sparql``.
    """

    def __init__(self, rules: Rules) -> None:
        self.closure = Closure(rules)
        self._store = ox.Store()
        self._literals: Counter[Term] = Counter()
        self._variants: dict[Term | None, set[Term]] = {}
        self._dataset: Dataset | None = None

    def load(self, triples: Iterable[Triple]) -> None:
        """Many facts, and what follows."""
        self.closure.load(triples)
        lines = (f"{s} {p} {o} ." for s, p, o in self.closure.facts.match(None, None, None))
        self._store.bulk_load("\n".join(lines).encode(), format=ox.RdfFormat.N_TRIPLES)
        self._literals = Counter(o for _, _, o in self.closure.facts.match(None, None, None) if _has_value(o))
        for term, known in stored_literals(self._literals.keys()).items():
            self._variants.setdefault(known.form, set()).add(term)
        self._dataset = None

    def change(self, added: Iterable[Triple], removed: Iterable[Triple]) -> bool:
        """Facts go, then come; whether that changed anything."""
        came, went = self.closure.change(added, removed)
        self._dataset = None
        for triple in went:
            if not _has_value(triple[2]) or self._leave(triple):
                self._store.remove(_quad(triple))
        for _, _, end in came:
            if _has_value(end):
                self._literals[end] += 1
                self._variants.setdefault(_form(end), set()).add(end)
        self._store.extend(map(_quad, came))
        return bool(came or went)

    def _leave(self, triple: Triple) -> bool:
        """Forget a literal's occurrence; whether none of its other forms is still said of the same subject."""
        subject, predicate, end = triple
        form = _form(end)
        variants = self._variants[form]
        self._literals[end] -= 1
        if not self._literals[end]:
            del self._literals[end]
            variants.discard(end)
        others = variants - {end}
        if not variants:
            del self._variants[form]
        return not any(next(self.closure.facts.match(subject, predicate, each), None) for each in others)

    def rows(self, query: StoredQuery) -> set[Row]:
        """The answer of a SELECT as a set of rows over its variables."""
        forms = query.forms(self._literals.keys())
        if forms is None:
            return set(answer(query.form, self._facts()))
        found = self._store.query(query.text)
        if not isinstance(found, ox.QuerySolutions):
            raise TypeError("a SELECT gives solutions")
        return set(query.rows(found, forms))

    def holds(self, form: al.Ask) -> bool:
        """The answer of an ASK."""
        text = sparql(form)
        if not self._literals and '"^^<' not in text and '"@' not in text:
            return bool(self._store.query(text))
        query = StoredQuery(form)
        if query.forms(self._literals.keys()) is None:
            return answer(form, self._facts()) == ((TRUE,),)
        return bool(self._store.query(query.text))

    def _facts(self) -> Dataset:
        if self._dataset is None:
            self._dataset = Dataset(IndexedGraph(self.closure.facts.match(None, None, None)))
        return self._dataset


@dataclass
class EvaluatedChannel:
    """A channel's query, and its answer when it was last looked at."""

    form: al.Select
    query: StoredQuery
    shown: set[Row] = field(default_factory=set)
    behind: list[int] = field(default_factory=list)
    """Publications since then."""


class Evaluating(Strategy):
    """Channels over a stored closure. Nothing is bounded: what pyoxigraph evaluates cannot be stopped."""

    def __init__(self, rules: Rules) -> None:
        self.stored = StoredClosure(rules)
        self.channels: dict[str, EvaluatedChannel] = {}

    def load(self, triples: Iterable[Triple]) -> None:
        """Many facts are there."""
        self.stored.load(triples)

    def create(self, channel: str, form: al.QueryForm, prepared: object = None) -> tuple[str, ...]:  # noqa: ARG002
        """A channel begins; ValueError for what is no SELECT, and for LIMIT and GRAPH."""
        if not isinstance(form, al.Select):
            raise ValueError("only a SELECT is evaluated again: write one, or use the strategy incremental")
        if any(isinstance(each, al.Slice) for each in every_pattern(form.pattern)):
            raise ValueError(
                "LIMIT and OFFSET are not evaluated again: leave them out, or use the strategy incremental"
            )
        if any(isinstance(each, al.Graph) for each in every_pattern(form.pattern)):
            raise ValueError("GRAPH: facts have no graphs here, use the strategy incremental")
        asked = self.channels[channel] = EvaluatedChannel(form, StoredQuery(form))
        asked.shown = self.stored.rows(asked.query)
        return form.variables

    def drop(self, channel: str) -> None:
        """A channel ends."""
        del self.channels[channel]

    def held(self) -> HeldSizes:
        """How much is kept beside the store."""
        facts = self.stored.closure.facts
        answers = sum(getsizeof(each.shown) + ROW * len(each.shown) for each in list(self.channels.values()))
        return HeldSizes(terms(facts), fact_bytes(facts), answers)

    def rows(self, channel: str) -> Iterable[Row]:
        """The rows of a channel's answer when it was last looked at."""
        return self.channels[channel].shown.copy()

    def size(self, channel: str) -> int:
        """How many rows a channel's answer had when it was last looked at."""
        return len(self.channels[channel].shown)

    def facts(
        self, subject: Term | None = None, predicate: Term | None = None, end: Term | None = None
    ) -> Iterator[Triple]:
        """The closure, those with these terms."""
        return self.stored.closure.facts.match(subject, predicate, end)

    @property
    def explicit(self) -> int:
        """How many facts were published and not deleted."""
        return self.stored.closure.explicit

    def differences(self, asked: EvaluatedChannel) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
        """Look at a channel's answer again: the rows that came and that went."""
        now = self.stored.rows(asked.query)
        added, removed = tuple(now - asked.shown), tuple(asked.shown - now)
        asked.shown = now
        return added, removed


Graph = tuple[Triple, ...]
_TESTABLE: Final = (al.Project, al.Distinct, al.BGP, al.Filter, al.Union, al.Join)


@dataclass(frozen=True, slots=True)
class Settings:
    """``share`` of rows that must have been guessed for evaluations to wait for the ``interval`` (seconds); the share
    is over the last ``window`` rows, and needs ``least`` of them. At most ``guesses`` are tested a publication.
    """

    share: float = 0.8
    interval: float = 10.0
    window: int = 200
    least: int = 20
    guesses: int = 50


class Heuristic(Protocol):
    """The statistics of one channel."""

    def learn(self, graph: Graph, row: Row) -> None:
        """A publication led to a row."""

    def guess(self, graph: Graph) -> Iterable[Row]:
        """The rows that a publication may lead to, the likeliest first."""


@dataclass
class _Learned:
    """A channel's heuristic and how it has done: whether each of the last rows was guessed."""

    heuristic: Heuristic
    test: al.Pattern | None
    guessed: deque[bool]
    evaluated: float = 0.0


@dataclass
class Guessing(Evaluating):
    """Channels over a stored closure, each with a heuristic that ``make`` makes for its width."""

    rules: Rules
    make: Callable[[int], Heuristic]
    settings: Settings = field(default_factory=Settings)
    complete: bool = False

    def __post_init__(self) -> None:
        super().__init__(self.rules)
        self._learned: dict[str, _Learned] = {}

    def create(self, channel: str, form: al.QueryForm, prepared: object = None) -> tuple[str, ...]:
        """A channel begins; ValueError for what is no SELECT."""
        variables = super().create(channel, form, prepared)
        guessed: deque[bool] = deque(maxlen=self.settings.window)
        self._learned[channel] = _Learned(self.make(len(variables)), _testable(form), guessed)
        return variables

    def drop(self, channel: str) -> None:
        """A channel ends."""
        super().drop(channel)
        del self._learned[channel]

    def publish(self, publications: Sequence[Publication], now: float) -> Iterator[AnswerChange]:
        """The guessed changes of every publication, then those of evaluations that do not wait."""
        changed = [each for each in publications if self.stored.change(each.added, each.removed)]
        deleted = any(each.removed for each in changed)
        for name, asked in self.channels.items():
            asked.behind += [each.number for each in changed]
            for each in changed:
                yield from self._guessed(name, asked, each)
        for name, asked in self.channels.items():
            if asked.behind and (deleted or not self._waits(self._learned[name], now)):
                yield from self._evaluated(name, asked, changed, now)

    def evaluate(self, now: float) -> Iterator[AnswerChange]:
        """Evaluate the channels that wait."""
        for name, asked in self.channels.items():
            if asked.behind:
                yield from self._evaluated(name, asked, (), now)

    def _guessed(self, name: str, asked: EvaluatedChannel, publication: Publication) -> Iterator[AnswerChange]:
        learned = self._learned[name]
        if learned.test is None or not publication.added:
            return
        tested = 0
        for row in dict.fromkeys(learned.heuristic.guess(publication.added)):
            if tested == self.settings.guesses:
                return
            if row in asked.shown or None in row:
                continue
            tested += 1
            if self.stored.holds(_question(learned.test, asked.form.variables, row)):
                asked.shown.add(row)
                learned.guessed.append(True)
                learned.heuristic.learn(publication.added, row)
                yield AnswerChange(name, (publication.number,), (row,))

    def _waits(self, learned: _Learned, now: float) -> bool:
        """Whether the share of guessed rows is high enough for the evaluation to wait, and the interval is not over."""
        known, settings = learned.guessed, self.settings
        often = len(known) >= settings.least and sum(known) > settings.share * len(known)
        return often and now - learned.evaluated < settings.interval

    def _evaluated(
        self, name: str, asked: EvaluatedChannel, changed: Sequence[Publication], now: float
    ) -> Iterator[AnswerChange]:
        learned, causes = self._learned[name], tuple(asked.behind)
        added, removed = self.differences(asked)
        learned.evaluated = now
        asked.behind = []
        learned.guessed.extend([False] * len(added))
        if len(causes) == 1:
            for publication in changed:
                for row in added[: self.settings.guesses]:
                    learned.heuristic.learn(publication.added, row)
        if added or removed:
            yield AnswerChange(name, causes, added, removed)


def _testable(form: al.QueryForm) -> al.Pattern | None:
    """The pattern of a query in which the terms of a row can stand for its variables; ``None`` where they cannot.

    Nor where pyoxigraph is not known to answer as SPARQL does.
    """
    if store_gap(form) is not None:
        return None
    if not all(isinstance(each, _TESTABLE) for each in every_pattern(form.pattern)):
        return None
    pattern = form.pattern
    while isinstance(pattern, al.Project | al.Distinct):
        pattern = pattern.pattern
    inner = [each for each in every_pattern(pattern) if isinstance(each, al.Project)]
    return None if inner else pattern


def _question(pattern: al.Pattern, variables: Sequence[str], row: Row) -> al.Ask:
    """Whether a row is in the answer."""
    terms = {al.Var(name): term for name, term in zip(variables, row, strict=True) if term is not None}
    return al.Ask(with_names(pattern, terms))


def _quad(triple: Triple) -> ox.Quad:
    subject, predicate, end = map(parse_term, triple)
    if isinstance(subject, ox.Literal) or not isinstance(predicate, ox.NamedNode):
        raise TypeError("a triple has no literal for a subject and an IRI for a predicate")
    return ox.Quad(subject, predicate, end)


def _has_value(term: Term) -> bool:
    """Whether a term is a literal that a store may keep in another form: one with a datatype or a language."""
    return term[0] == '"' and term[-1] != '"'


def _form(literal: Term) -> Term | None:
    return stored_literals((literal,))[literal].form
