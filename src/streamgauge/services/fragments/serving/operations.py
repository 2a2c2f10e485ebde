"""What a write asks for, as data: each operation is applied to a draft, all of a request's to one."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from streamgauge.model.algebra import Node, TriplePattern, Var
from streamgauge.model.fact import Fact
from streamgauge.model.terms import Term, Triple, is_iri, is_literal
from streamgauge.services.fragments.serving.dataset import TooManyError
from streamgauge.services.fragments.serving.locating import Wanted
from streamgauge.services.fragments.serving.writing import MOST, Draft


class Operation(Protocol):
    """One change."""

    def apply(self, draft: Draft) -> None:
        """Make it in a draft."""
        ...


@dataclass(frozen=True, slots=True)
class Add:
    """These hold, too."""

    facts: Sequence[Fact]

    def apply(self, draft: Draft) -> None:
        """Make it in a draft."""
        draft.add(self.facts)


@dataclass(frozen=True, slots=True)
class Remove:
    """Wanted triples never held."""

    wanted: Sequence[Wanted]

    def apply(self, draft: Draft) -> None:
        """Make it in a draft."""
        for each in self.wanted:
            draft.remove(each)


@dataclass(frozen=True, slots=True)
class Replace:
    """Of the wanted triples these hold from now on, and no others."""

    wanted: Wanted
    facts: Sequence[Fact]

    def apply(self, draft: Draft) -> None:
        """Make it in a draft."""
        draft.replace(self.wanted, self.facts)


@dataclass(frozen=True, slots=True)
class Expire:
    """Wanted triples hold no longer from ``at`` (ms) on."""

    wanted: Sequence[Wanted]
    at: int

    def apply(self, draft: Draft) -> None:
        """Make it in a draft."""
        for each in self.wanted:
            draft.expire(each, self.at)


@dataclass(frozen=True, slots=True)
class Modify:
    """SPARQL's DELETE and INSERT with WHERE over the triples that hold now (SPARQL 1.1 Update, 3.1.3)."""

    where: Sequence[TriplePattern]
    delete: Sequence[TriplePattern]
    insert: Sequence[TriplePattern]
    at: int
    initial: int | None
    final: int | None

    def apply(self, draft: Draft) -> None:
        """Make it in a draft; TooManyError when more solutions are looked at than a request may touch facts."""
        rows: list[dict[Var, Term]] = [{}]
        for pattern in self.where:
            rows = [found for row in rows for found in _extended(draft, pattern, row)]
            if len(rows) > MOST:
                raise TooManyError(f"more than {MOST} solutions: name more terms in WHERE")
        for triple in _made(self.delete, rows):
            draft.expire(triple, self.at)
        draft.add(Fact(triple, self.initial, self.final) for triple in _made(self.insert, rows))


def _extended(draft: Draft, pattern: TriplePattern, row: dict[Var, Term]) -> Iterable[dict[Var, Term]]:
    nodes = [_value(node, row) for node in _nodes(pattern)]
    subject, predicate, object_ = (None if isinstance(node, Var) else node for node in nodes)
    for triple in draft.holding((subject, predicate, object_)):
        found = dict(row)
        fits = (not isinstance(n, Var) or found.setdefault(n, t) == t for n, t in zip(nodes, triple, strict=True))
        if all(fits):
            yield found


def _made(patterns: Sequence[TriplePattern], rows: Iterable[dict[Var, Term]]) -> list[Triple]:
    """The triples of a template that are triples: no literal as a subject (SPARQL 1.1 Update, 3.1.3)."""
    made = dict[Triple, None]()
    for row in rows:
        for pattern in patterns:
            subject, predicate, object_ = (_value(node, row) for node in _nodes(pattern))
            if isinstance(subject, str) and isinstance(predicate, str) and isinstance(object_, str):
                made[subject, predicate, object_] = None
    return [triple for triple in made if not is_literal(triple[0]) and is_iri(triple[1])]


def _nodes(pattern: TriplePattern) -> tuple[Node, Node, Node]:
    assert isinstance(pattern.predicate, Var | str)
    return pattern.subject, pattern.predicate, pattern.object


def _value(node: Node, row: dict[Var, Term]) -> Node:
    return row.get(node, node) if isinstance(node, Var) else node
