"""Triples and property paths of rdflib's tree (https://www.w3.org/TR/sparql11-query/#sparqlTranslatePathExpressions)."""

from collections.abc import Iterator, Sequence
from typing import Any

from rdflib.term import BNode, URIRef, Variable

from streamgauge.model.algebra import Alternative, Inverse, NegatedSet, Node, Path, Repeat, TriplePattern
from streamgauge.model.algebra import Sequence as Steps
from streamgauge.query.expressions import Nodes
from streamgauge.query.shape import is_inverse


def triples(nodes: Nodes, flat: Sequence[Any]) -> Iterator[TriplePattern]:
    """The triple patterns of a flat list s, p, o, s, p, o ...; ``p/q`` and ``^p`` become plain patterns."""
    for index in range(0, len(flat), 3):
        subject, predicate, item = flat[index : index + 3]
        if isinstance(predicate, Variable):
            yield TriplePattern(nodes.node(subject), nodes.node(predicate), nodes.node(item))
        else:
            yield from _expand(nodes, subject, path(nodes, predicate), item)


def _expand(nodes: Nodes, subject: Any, way: Path, item: Any) -> Iterator[TriplePattern]:
    match way:
        case Inverse(path=inner):
            yield from _expand(nodes, item, inner, subject)
        case Steps(steps=(first, *rest)):
            middle = BNode() if rest else item
            yield from _expand(nodes, subject, first, middle)
            if rest:
                yield from _expand(nodes, middle, Steps(tuple(rest)), item)
        case _:
            start: Node = nodes.node(subject)
            yield TriplePattern(start, way, nodes.node(item))


def path(nodes: Nodes, tree: Any) -> Path:
    """The algebra of a path tree; a path of one step is that step."""
    if isinstance(tree, URIRef):
        return nodes.term(tree)
    parts = tree.part if isinstance(tree.part, list) else [tree.part]
    match str(tree.name):
        case "PathAlternative" if len(parts) > 1:
            return Alternative(tuple(path(nodes, part) for part in parts))
        case "PathSequence" if len(parts) > 1:
            return Steps(tuple(path(nodes, part) for part in parts))
        case "PathElt" if tree.mod:
            return Repeat(path(nodes, parts[0]), str(tree.mod))
        case "PathEltOrInverse":
            return Inverse(path(nodes, parts[0]))
        case "PathNegatedPropertySet":
            return _negated(nodes, [part for part in parts if part is not None])
        case _:
            return path(nodes, parts[0])


def _negated(nodes: Nodes, parts: Sequence[Any]) -> NegatedSet:
    forward = tuple(nodes.term(part) for part in parts if not is_inverse(part))
    return NegatedSet(forward, tuple(nodes.term(part) for part in parts if is_inverse(part)))
