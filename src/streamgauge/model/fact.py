"""Facts: triples with the time in which they hold, and the encoding of named graphs in triples.

A fact of a named graph has the graph's name and a space before its subject: ``("<urn:g> <urn:s>", "<urn:p>", '"1"')``
is ``<urn:s> <urn:p> "1"`` in the graph ``<urn:g>``. No other triple looks like that, because an IRI or a blank node
contains no space. So publications, journals and limits need only one kind of fact.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Final

from streamgauge.model.terms import Term, Triple

NOT_HERE: Final[Triple] = ("", "", "")
"""Placeholder that a lookup gives for each graph without the fact, so that lookups can be counted."""

_BETWEEN: Final = "> "
_SUBJECT: Final = itemgetter(0)
_ANY: Final = "<> "
"""In a lookup: any graph."""


def in_graph(name: Term, triple: Triple) -> Triple:
    """A triple in the graph of this name, an IRI."""
    return f"{name} {triple[0]}", triple[1], triple[2]


def is_named(subject: Term) -> bool:
    """Whether a subject carries the name of a graph."""
    # A subject that begins with << is a triple term, whose parts are separated by spaces as well.
    return _BETWEEN in subject and subject[1] != "<"


def apart(fact: Triple) -> tuple[Term, Triple]:
    """Split a fact into the name of its graph and its triple."""
    # At the first space: the name of a graph is an IRI, which has none, whatever the subject is.
    name, _, subject = fact[0].partition(" ")
    return name, (subject, fact[1], fact[2])


def parted(facts: tuple[Triple, ...]) -> tuple[tuple[Triple, ...], tuple[tuple[Term, Triple], ...]]:
    """Facts of the default graph, and those of named graphs, in order."""
    # One search over all subjects, as named graphs are rare; a triple term among them only costs the slower way.
    return _parted(facts) if facts and _BETWEEN in "".join(map(_SUBJECT, facts)) else (facts, ())


def _parted(facts: tuple[Triple, ...]) -> tuple[tuple[Triple, ...], tuple[tuple[Term, Triple], ...]]:
    named = tuple(apart(fact) for fact in facts if is_named(fact[0]))
    return tuple(fact for fact in facts if not is_named(fact[0])), named


def default_only(facts: Iterable[Triple], named: list[tuple[Term, Triple]]) -> Iterator[Triple]:
    """Yield facts of the default graph; those of named graphs are appended to ``named``."""
    for fact in facts:
        if _BETWEEN in fact[0] and is_named(fact[0]):
            named.append(apart(fact))
        else:
            yield fact


def question(name: Term | None, subject: Term | None) -> Term:
    """Encode graph and subject of a lookup as one subject; ``None`` is any."""
    return f"{name or _ANY[:-1]} {subject or ''}"


def asked(subject: Term) -> tuple[Term | None, Term | None]:
    """Decode the graph and the subject of a lookup."""
    name, _, own = subject.partition(" ")
    return None if name == _ANY[:-1] else name, own or None


@dataclass(frozen=True, slots=True)
class Fact:
    """A triple that holds in [initial, final), ms; ``None`` is no bound (Taelman et al., ESWC 2016, section 4)."""

    triple: Triple
    initial: int | None = None
    final: int | None = None

    @property
    def static(self) -> bool:
        """Whether it holds always."""
        return self.initial is None and self.final is None

    def holds(self, at: int) -> bool:
        """Whether it holds at an instant (ms)."""
        return (self.initial is None or self.initial <= at) and (self.final is None or at < self.final)
