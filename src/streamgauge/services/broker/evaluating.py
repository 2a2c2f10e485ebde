"""A SPARQL store with the closure in it, asked from scratch; what strategies that evaluate again have in common."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pyoxigraph as ox

from streamgauge.compute.reasoning.closure import Closure
from streamgauge.compute.reasoning.rules import Rules
from streamgauge.model import algebra as al
from streamgauge.model.terms import Row, Term, Triple
from streamgauge.query.printer import sparql
from streamgauge.services.broker.contract import Failures
from streamgauge.wire.canonical import parse_term


class StoredClosure:
    """Explicit facts with what rules derive of them, in a store of pyoxigraph's."""

    def __init__(self, rules: Rules) -> None:
        self.closure = Closure(rules)
        self._store = ox.Store()

    def load(self, triples: Iterable[Triple]) -> None:
        """Many facts, and what follows."""
        self.closure.load(triples)
        lines = (f"{s} {p} {o} ." for s, p, o in self.closure.facts.match(None, None, None))
        self._store.bulk_load("\n".join(lines).encode(), format=ox.RdfFormat.N_TRIPLES)

    def change(self, added: Iterable[Triple], removed: Iterable[Triple]) -> bool:
        """Facts go, then come; whether that changed anything."""
        came, went = self.closure.change(added, removed)
        for triple in went:
            self._store.remove(_quad(triple))
        self._store.extend(map(_quad, came))
        return bool(came or went)

    def rows(self, query: str, variables: tuple[str, ...]) -> set[Row]:
        """The answer of a SELECT as a set of rows over ``variables``."""
        found = self._store.query(query)
        if not isinstance(found, ox.QuerySolutions):
            raise TypeError("a SELECT gives solutions")
        names = [each.value for each in found.variables]
        order = [names.index(name) for name in variables]
        return {tuple([_text(solution[at]) for at in order]) for solution in found}

    def holds(self, query: str) -> bool:
        """The answer of an ASK."""
        return bool(self._store.query(query))


@dataclass
class Asked:
    """A channel's query as text, and its answer when it was last looked at."""

    form: al.Select
    query: str
    shown: set[Row] = field(default_factory=set)
    behind: list[int] = field(default_factory=list)
    """Publications since then."""


class Evaluating:
    """Channels over a stored closure."""

    def __init__(self, rules: Rules) -> None:
        self.stored = StoredClosure(rules)
        self.channels: dict[str, Asked] = {}

    def limit(self, effort: int, derived: int) -> None:
        """Nothing is bounded: what pyoxigraph evaluates cannot be stopped."""

    def failures(self) -> Failures:
        """None."""
        return Failures({}, {})

    def load(self, triples: Iterable[Triple]) -> None:
        """Many facts are there."""
        self.stored.load(triples)

    def create(self, channel: str, form: al.QueryForm) -> tuple[str, ...]:
        """A channel begins; ValueError for what is no SELECT."""
        if not isinstance(form, al.Select):
            raise ValueError("only a SELECT is evaluated again: write one, or use the strategy incremental")
        asked = self.channels[channel] = Asked(form, sparql(form))
        asked.shown = self.stored.rows(asked.query, form.variables)
        return form.variables

    def drop(self, channel: str) -> None:
        """A channel ends."""
        del self.channels[channel]

    def rows(self, channel: str) -> Iterable[Row]:
        """The rows of a channel's answer when it was last looked at."""
        return self.channels[channel].shown

    def facts(
        self, subject: Term | None = None, predicate: Term | None = None, end: Term | None = None
    ) -> Iterator[Triple]:
        """The closure, those with these terms."""
        return self.stored.closure.facts.match(subject, predicate, end)

    @property
    def explicit(self) -> int:
        """How many facts were published and not deleted."""
        return self.stored.closure.explicit

    def differences(self, asked: Asked) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
        """Look at a channel's answer again: the rows that came and that went."""
        now = self.stored.rows(asked.query, asked.form.variables)
        added, removed = tuple(now - asked.shown), tuple(asked.shown - now)
        asked.shown = now
        return added, removed


def _quad(triple: Triple) -> ox.Quad:
    subject, predicate, end = map(parse_term, triple)
    if isinstance(subject, ox.Literal) or not isinstance(predicate, ox.NamedNode):
        raise TypeError("a triple has no literal for a subject and an IRI for a predicate")
    return ox.Quad(subject, predicate, end)


def _text(term: object) -> str | None:
    return None if term is None else str(term)
