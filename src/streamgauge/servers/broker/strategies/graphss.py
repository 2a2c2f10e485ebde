"""GraphSS, reconstructed: publications of the same structure are similar; values are copied from the same places.

The key of a publication consists of the types of its main subject and its set of predicates (P8, P9). For each row the
heuristic learns where the value of each variable stands in the publication: as the main subject, as an object of a
predicate, or nowhere (a constant). For example, from ``:a a :Reading; :value 3`` and the row (:a, 3) it learns the
template (main, object of :value), which gives the row (:b, 5) for ``:b a :Reading; :value 5``.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice, product
from typing import Final, TypeAlias

from streamgauge.model.terms import RDF_TYPE, Row, Term
from streamgauge.reasoning.rules import Rules
from streamgauge.servers.broker.evaluation import Graph, Guessing

SIGHTINGS: Final = 2
"""How often a template must have been learned before it is used for guesses."""
MAX_TEMPLATE_ROWS: Final = 50
"""Rows that one template generates from a publication."""

Place: TypeAlias = tuple[str, Term]
Template: TypeAlias = tuple[Place, ...]
Key: TypeAlias = tuple[frozenset[Term], frozenset[Term]]


def start(rules: Rules) -> Guessing:
    """The strategy without facts and channels."""
    return Guessing(rules, GraphSS)


class GraphSS:
    """Templates by the key of the publications that they were learned from."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._templates: dict[Key, Counter[Template]] = {}

    def learn(self, graph: Graph, row: Row) -> None:
        """Learn the template of a row: where its values stand in the publication."""
        main = main_subject(graph)
        template = tuple(_place(value or "", graph, main) for value in row)
        self._templates.setdefault(_key(graph, main), Counter())[template] += 1

    def guess(self, graph: Graph) -> Iterable[Row]:
        """Rows by all templates for this structure, the most frequent template first."""
        main = main_subject(graph)
        for template, seen in self._templates.get(_key(graph, main), Counter[Template]()).most_common():
            if seen >= SIGHTINGS:
                values = [list(_values(place, graph, main)) for place in template]
                # The product of places with several values grows with their powers; most of it would be refuted one by
                # one.
                yield from islice(product(*values), MAX_TEMPLATE_ROWS)


def main_subject(graph: Graph) -> Term:
    """The subject of most triples, of several the first."""
    counts = Counter(subject for subject, _, _ in graph)
    return counts.most_common(1)[0][0]


def _key(graph: Graph, main: Term) -> Key:
    types = frozenset(end for subject, predicate, end in graph if subject == main and predicate == RDF_TYPE)
    return types, frozenset(predicate for _, predicate, _ in graph)


def _place(value: Term, graph: Graph, main: Term) -> Place:
    if value == main:
        return "main", ""
    predicates = (predicate for _, predicate, end in graph if end == value)
    return next((("object", predicate) for predicate in predicates), ("constant", value))


def _values(place: Place, graph: Graph, main: Term) -> Iterator[Term]:
    kind, term = place
    if kind == "object":
        yield from (end for _, predicate, end in graph if predicate == term)
    else:
        yield main if kind == "main" else term
