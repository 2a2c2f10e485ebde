"""The effect of an update: the solutions of WHERE over the facts that it needs, and the triples of its templates."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from streamgauge.model import algebra as al
from streamgauge.model.algebra import Node, TriplePattern, Var
from streamgauge.model.fact import apart, asked, in_graph, is_named
from streamgauge.model.terms import Term, Triple, is_blank, is_iri, is_literal
from streamgauge.query.updates import UpdateOperation, graph_of
from streamgauge.sparql.algebra import answer
from streamgauge.sparql.bgp import IndexedGraph
from streamgauge.sparql.needs import Facts, Looks, Needs, TooManySolutionsError, is_plain

_Row: TypeAlias = Sequence[Term | None]


def change(operation: UpdateOperation, facts: Facts, limit: int, looks: Looks) -> tuple[list[Triple], list[Triple]]:
    """The triples that one operation deletes, and those that it inserts after them (SPARQL 1.1 Update, 3.1.3).

    Raises TooManySolutionsError for more than ``limit`` solutions, and if the facts read by WHERE and the triples of
    the templates exceed ``looks``; UnsupportedFunctionError and UndefinedError for queries that cannot be evaluated.
    """
    if operation.where is None:
        return list(operation.removed), list(operation.added)
    names, rows = _solutions(operation, facts, limit, looks)
    looks.spend(len(rows) * (len(operation.delete) + len(operation.insert)))
    slots = {name: place for place, name in enumerate(names)}
    inserted = _Template(operation.insert, slots, operation)
    return _instances(_Template(operation.delete, slots, operation), rows), _instances(inserted, rows)


def _solutions(
    operation: UpdateOperation, facts: Facts, limit: int, looks: Looks
) -> tuple[Sequence[str], Sequence[_Row]]:
    """The distinct solutions of WHERE over the variables of the templates."""
    where = operation.where
    assert where is not None
    needs = Needs(facts, operation.graphs, limit, looks)
    known = needs.of(where)
    if is_plain(where):
        return (known[0].names, known[0].rows) if known else ((), ())
    nodes = (node for pattern in (*operation.delete, *operation.insert) for node in nodes_of(pattern))
    names = tuple(dict.fromkeys(node.name for node in nodes if isinstance(node, Var) and not _is_label(node)))
    dataset = needs.dataset()
    rows = answer(al.Select(al.Project(where, tuple(map(Var, names))), names), dataset)
    if len(rows) > limit:
        raise TooManySolutionsError(f"WHERE has more than {limit} solutions: use more constants in its patterns")
    old = dataset.default.nodes.union(*(graph.nodes for graph in dataset.named.values()))
    return names, [tuple(_kept(term, old, operation) for term in row) for row in rows]


def _kept(term: Term | None, old: frozenset[Term], operation: UpdateOperation) -> Term | None:
    """A term of a solution; blank nodes made by BNODE are renamed apart from those of other operations."""
    if term is not None and is_blank(term) and term not in old:
        return operation.fresh(f"{id(operation)} {term}")
    return term


class _Template:
    """Triple patterns to instantiate with solutions (terms at ``slots``); blank nodes are new in each solution."""

    def __init__(self, patterns: Sequence[TriplePattern], slots: Mapping[str, int], operation: UpdateOperation) -> None:
        self._operation, self._labels = operation, set[str]()
        self.patterns = [tuple(self._place(node, slots) for node in nodes_of(pattern)) for pattern in patterns]

    def _place(self, node: Node, slots: Mapping[str, int]) -> int | str | Var:
        if isinstance(node, Var):
            self._labels |= {node.name} if _is_label(node) else set()
            return slots.get(node.name, node)
        return node

    def filled(self, number: int, row: _Row) -> Iterator[tuple[Term | None, ...]]:
        """The terms of each pattern for a solution; ``None`` for an unbound variable."""
        own = {name: self._operation.fresh(f"{name} {number} {id(self._operation)}") for name in self._labels}
        for nodes in self.patterns:
            yield tuple(
                row[node] if isinstance(node, int) else own.get(node.name) if isinstance(node, Var) else node
                for node in nodes
            )


def _instances(template: _Template, rows: Iterable[_Row]) -> list[Triple]:
    """The well-formed triples of a template over all solutions (SPARQL 1.1 Update, 3.1.3)."""
    triples = dict[Triple, None]()
    for number, row in enumerate(rows):
        for subject, predicate, end, *graph in template.filled(number, row):
            if subject is None or predicate is None or end is None or is_literal(subject) or not is_iri(predicate):
                continue
            triple = subject, predicate, end
            if not graph:
                triples[triple] = None
            elif graph[0] is not None and is_iri(graph[0]):
                triples[in_graph(graph[0], triple)] = None
    return list(triples)


def _is_label(node: Var) -> bool:
    """Whether a variable stands for a blank node of the template."""
    return node.name.startswith("_:")


def nodes_of(pattern: TriplePattern) -> tuple[Node, ...]:
    """Subject, predicate and object of a pattern, and its graph if it has one."""
    assert isinstance(pattern.predicate, Var | str)
    graph = graph_of(pattern)
    return (pattern.subject, pattern.predicate, pattern.object, *(() if graph is None else (graph,)))


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
