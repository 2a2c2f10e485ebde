"""The effect of an update: the solutions of WHERE over the facts that it needs, and the triples of its templates."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import count

from streamgauge.model import algebra as al
from streamgauge.model.algebra import Var, graph_of, triple_variables
from streamgauge.model.fact import apart, asked, in_graph, is_named
from streamgauge.model.terms import Term, Triple, is_blank
from streamgauge.query.updates import UpdateOperation
from streamgauge.sparql.algebra import answer, constructed
from streamgauge.sparql.bgp import IndexedGraph
from streamgauge.sparql.blocks import Solution
from streamgauge.sparql.needs import Facts, Looks, Needs, TooManySolutionsError, is_plain


def change(operation: UpdateOperation, facts: Facts, limit: int, looks: Looks) -> tuple[list[Triple], list[Triple]]:
    """The triples that one operation deletes, and those that it inserts after them (SPARQL 1.1 Update, 3.1.3).

    Raises TooManySolutionsError for more than ``limit`` solutions, and if the facts read by WHERE and the triples of
    the templates exceed ``looks``; UnsupportedFunctionError and UndefinedError for queries that cannot be evaluated.
    """
    if operation.where is None:
        return list(operation.removed), list(operation.added)
    solutions = _solutions(operation, facts, limit, looks)
    # Before the templates are filled, so that a refused update never makes these triples.
    looks.spend(len(solutions) * (len(operation.delete) + len(operation.insert)))
    numbers = count()

    def new() -> Term:
        return operation.fresh(f"{next(numbers)} {id(operation)}")

    deleted, inserted = (constructed(template, solutions, new) for template in (operation.delete, operation.insert))
    return list(dict.fromkeys(deleted)), list(dict.fromkeys(inserted))


def _solutions(operation: UpdateOperation, facts: Facts, limit: int, looks: Looks) -> Sequence[Solution]:
    """The distinct solutions of WHERE over the variables of the templates."""
    where = operation.where
    assert where is not None
    needs = Needs(facts, operation.graphs, limit, looks)
    known = needs.of(where)
    if is_plain(where):
        return known
    patterns = (*operation.delete, *operation.insert)
    nodes = dict.fromkeys(node for pattern in patterns for node in (*triple_variables(pattern), graph_of(pattern)))
    names = tuple(node.name for node in nodes if isinstance(node, Var) and not node.name.startswith("_:"))
    dataset = needs.dataset()
    rows = answer(al.Select(al.Project(where, tuple(map(Var, names))), names), dataset)
    if len(rows) > limit:
        raise TooManySolutionsError(f"WHERE has more than {limit} solutions: use more constants in its patterns")
    old = dataset.default.nodes.union(*(graph.nodes for graph in dataset.named.values()))
    return [
        {name: _kept(term, old, operation) for name, term in zip(names, row, strict=True) if term is not None}
        for row in rows
    ]


def _kept(term: Term, old: frozenset[Term], operation: UpdateOperation) -> Term:
    """A term of a solution; blank nodes made by BNODE are renamed apart from those of other operations."""
    return operation.fresh(f"{id(operation)} {term}") if is_blank(term) and term not in old else term


def together(
    operations: Sequence[UpdateOperation], facts: Facts, limit: int, looks: int
) -> tuple[tuple[Triple, ...], tuple[Triple, ...]]:
    """The triples added and removed by a sequence of operations, each over the result of those before it.

    Facts that rules derive from an operation are not visible to the next one. Raises TooManySolutionsError for more
    than ``limit`` solutions or triples, and if WHERE reads more than ``looks`` facts.
    """
    counted = Looks(looks)
    added, removed = dict[Triple, None](), dict[Triple, None]()
    for operation in operations:
        seen = _Changed(facts, added, removed) if operation.where is not None and (added or removed) else facts
        deleted, inserted = change(operation, seen, limit, counted)
        # Deletions first (SPARQL 1.1 Update, 3.1.3): a triple that an operation deletes and inserts is in the result.
        for triple in deleted:
            # An earlier operation of the same request may have inserted it.
            added.pop(triple, None)
            removed[triple] = None
        added |= dict.fromkeys(inserted)
    if len(added) + len(removed) > limit:
        raise TooManySolutionsError(f"the update changes more than {limit} triples: split it into several updates")
    return tuple(added), tuple(removed)


class _Changed:
    """A view of facts after some were removed and others added."""

    def __init__(self, facts: Facts, added: Mapping[Triple, None], removed: Mapping[Triple, None]) -> None:
        self._facts, self._gone = facts, removed.keys() | added.keys()
        self._default = IndexedGraph(triple for triple in added if not is_named(triple[0]))
        named: dict[Term, list[Triple]] = {}
        for fact in added:
            if is_named(fact[0]):
                name, triple = apart(fact)
                named.setdefault(name, []).append(triple)
        self._named = {name: IndexedGraph(triples) for name, triples in named.items()}

    def __call__(self, subject: Term | None, predicate: Term | None, end: Term | None) -> Iterator[Triple]:
        """The facts with these terms, the older ones first."""
        yield from (triple for triple in self._facts(subject, predicate, end) if triple not in self._gone)
        if subject is None or " " not in subject or subject.startswith("<<"):
            yield from _matching(self._default, subject, predicate, end)
            return
        name, own = asked(subject)
        for known in self._named if name is None else [name] * (name in self._named):
            yield from (in_graph(known, triple) for triple in _matching(self._named[known], own, predicate, end))


def _matching(graph: IndexedGraph, *pattern: Term | None) -> Sequence[Triple]:
    known = [(place, term) for place, term in enumerate(pattern) if term is not None]
    terms = tuple(term for _, term in known)
    return graph.at(tuple(place for place, _ in known), terms[0] if len(terms) == 1 else terms)
