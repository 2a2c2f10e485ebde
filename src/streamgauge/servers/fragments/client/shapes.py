"""The quads that belong to a member by ``tree:shape``: along the paths of its property shapes (TREE; SHACL, 2.1).

Without a shape a member has its own quads and those of blank nodes that it leads to. A property shape adds the triples
along its path and, if it names a shape of its own (``sh:node``), the quads of the nodes at its end by that shape:

    <shape> sh:property [ sh:path ex:by ; sh:node [ sh:property [ sh:path ex:name ] ] ] .
    <m> ex:by <p> .  <p> ex:name "Ada" .            the member <m> has both triples
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from streamgauge.model.terms import Term, is_blank, is_literal
from streamgauge.servers.fragments import DEFAULT, Quad

_SHACL: Final = "<http://www.w3.org/ns/shacl#"
_PROPERTY, _PATH, _NODE = (f"{_SHACL}{name}>" for name in ("property", "path", "node"))
_ALSO: Final = tuple(f"{_SHACL}{name}>" for name in ("and", "or", "xone"))
_INVERSE, _ALTERNATIVE = f"{_SHACL}inversePath>", f"{_SHACL}alternativePath>"
_REPEATED: Final = tuple(f"{_SHACL}{name}Path>" for name in ("zeroOrMore", "oneOrMore", "zeroOrOne"))
_FIRST, _REST = (f"<http://www.w3.org/1999/02/22-rdf-syntax-ns#{name}>" for name in ("first", "rest"))
MAX_DEPTH: Final = 50
"""Maximum nesting of paths and shapes, and length of lists: shapes may refer to themselves."""


@dataclass(frozen=True, slots=True)
class ShapeGraph:
    """Quads indexed by subject (or graph, for members in named graphs) and by object."""

    about: dict[Term, list[Quad]] = field(default_factory=dict)
    to: dict[Term, list[Quad]] = field(default_factory=dict)

    @classmethod
    def of(cls, quads: Iterable[Quad]) -> "ShapeGraph":
        """Build the indexes of quads."""
        graph = cls()
        for quad in quads:
            graph.about.setdefault(quad[3] if quad[3] != DEFAULT else quad[0], []).append(quad)
            graph.to.setdefault(quad[2], []).append(quad)
        return graph

    def objects(self, subject: Term, *predicates: Term) -> list[Term]:
        """The objects of a subject for any of the predicates."""
        return [quad[2] for quad in self.about.get(subject, ()) if quad[1] in predicates]

    def items(self, head: Term) -> Iterator[Term]:
        """The items of an RDF list, ``MAX_DEPTH`` at most."""
        for _ in range(MAX_DEPTH):
            yield from self.objects(head, _FIRST)[:1]
            following = self.objects(head, _REST)
            if not following:
                return
            head = following[0]


@dataclass(frozen=True, slots=True)
class PathWalk:
    """The quads along a path from a node, and the nodes at its end."""

    quads: tuple[Quad, ...]
    ends: tuple[Term, ...]


def described(member: Term, graph: ShapeGraph, shapes: Sequence[Term]) -> Iterator[Quad]:
    """The quads of a member by its shapes; the same quad may be yielded several times."""
    waiting = [(member, tuple(shapes))]
    seen = set(waiting)
    while waiting:
        node, its_shapes = waiting.pop()
        yield from _own(node, graph)
        for path, inner in (link for shape in its_shapes for link in _links(shape, graph, MAX_DEPTH)):
            walk = _walk(path, node, graph, MAX_DEPTH)
            yield from (_plain(quad) for quad in walk.quads)
            # A named node without a shape of its own is only mentioned: its quads belong to other members.
            following = [(end, inner) for end in walk.ends if (inner or is_blank(end)) and not is_literal(end)]
            waiting += [shape for shape in following if shape not in seen]
            seen.update(following)


def _plain(quad: Quad) -> Quad:
    return (*quad[:3], DEFAULT)


def _own(node: Term, graph: ShapeGraph) -> Iterator[Quad]:
    """The quads of a node, and of blank nodes that they lead to."""
    seen, reached = {node}, [node]
    while reached:
        for quad in graph.about.get(reached.pop(), ()):
            yield _plain(quad)
            if is_blank(quad[2]) and quad[2] not in seen:
                seen.add(quad[2])
                reached.append(quad[2])


def _links(shape: Term, graph: ShapeGraph, depth: int) -> Iterator[tuple[Term, tuple[Term, ...]]]:
    """The paths of a shape and of those it refers to, each with the shapes of the nodes at its end."""
    if not depth:
        return
    for part in graph.objects(shape, _PROPERTY):
        # SHACL allows one path; of more the first, so that a broken shape still gives what it can.
        for path in graph.objects(part, _PATH)[:1]:
            yield path, tuple(graph.objects(part, _NODE))
    shapes = [*graph.objects(shape, _NODE), *(i for head in graph.objects(shape, *_ALSO) for i in graph.items(head))]
    for inner_shape in shapes:
        yield from _links(inner_shape, graph, depth - 1)


def _walk(path: Term, start: Term, graph: ShapeGraph, depth: int) -> PathWalk:
    """Follow a property path of SHACL (2.3.1) from a node."""
    if not depth:
        return PathWalk((), ())
    inner = graph.about.get(path, ())
    below: Callable[[Term, Term], PathWalk] = lambda step, node: _walk(step, node, graph, depth - 1)  # noqa: E731
    if not is_blank(path):
        quads = tuple(quad for quad in graph.about.get(start, ()) if quad[1] == path and quad[0] == start)
        return PathWalk(quads, tuple(quad[2] for quad in quads))
    if graph.objects(path, _FIRST):
        return _sequence(tuple(graph.items(path)), start, below)
    for _, predicate, step, _ in inner:
        if predicate == _INVERSE:
            quads = tuple(quad for quad in graph.to.get(start, ()) if quad[1] == step)
            return PathWalk(quads, tuple(quad[0] for quad in quads))
        if predicate == _ALTERNATIVE:
            walks = [below(choice, start) for choice in graph.items(step)]
            return PathWalk(
                tuple(q for walk in walks for q in walk.quads), tuple(e for walk in walks for e in walk.ends)
            )
        if predicate in _REPEATED:
            return _repeated(step, start, below)
    return PathWalk((), ())


def _sequence(steps: Sequence[Term], start: Term, below: Callable[[Term, Term], PathWalk]) -> PathWalk:
    quads: list[Quad] = []
    ends: tuple[Term, ...] = (start,)
    for step in steps:
        walks = [below(step, end) for end in ends]
        quads += (quad for walk in walks for quad in walk.quads)
        ends = tuple(dict.fromkeys(end for walk in walks for end in walk.ends))
    return PathWalk(tuple(quads), ends)


def _repeated(step: Term, start: Term, below: Callable[[Term, Term], PathWalk]) -> PathWalk:
    quads: list[Quad] = []
    seen, waiting = {start: None}, [start]
    while waiting:
        walk = below(step, waiting.pop())
        quads += walk.quads
        fresh = [end for end in walk.ends if end not in seen]
        seen.update(dict.fromkeys(fresh))
        waiting += fresh
    return PathWalk(tuple(quads), tuple(seen))
