"""A SPARQL store with the closure in it, asked from scratch; what strategies that evaluate again have in common."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from sys import getsizeof

import pyoxigraph as ox

from streamgauge.formats.canonical import parse_term
from streamgauge.incremental.drivers.landmark import ROW, fact_bytes, terms
from streamgauge.model import algebra as al
from streamgauge.model.terms import Row, Term, Triple
from streamgauge.query.printer import sparql
from streamgauge.query.rebuild import every_pattern
from streamgauge.reasoning.closure import Closure
from streamgauge.reasoning.rules import Rules
from streamgauge.semantics.stored_query import StoredQuery
from streamgauge.semantics.stored_terms import stored_literals
from streamgauge.servers.broker.contract import Failures, HeldSizes, Turn
from streamgauge.sparql.algebra import TRUE, answer
from streamgauge.sparql.dataset import Dataset, IndexedGraph


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


class Evaluating:
    """Channels over a stored closure."""

    graphs = False

    def __init__(self, rules: Rules) -> None:
        self.stored = StoredClosure(rules)
        self.channels: dict[str, EvaluatedChannel] = {}

    def limit(self, effort: int, derived: int, change: int | None = None) -> None:
        """Nothing is bounded: what pyoxigraph evaluates cannot be stopped."""

    def failures(self) -> Failures:
        """None."""
        return Failures({}, {})

    def load(self, triples: Iterable[Triple]) -> None:
        """Many facts are there."""
        self.stored.load(triples)

    def prepare(self, form: al.QueryForm, turn: Turn, alone: Turn) -> object:
        """Nothing: it is evaluated when it is created."""

    def abandon(self, prepared: object) -> None:
        """There is nothing to let go of."""

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
