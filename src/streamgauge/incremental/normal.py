"""The algebra put into the shape that the evaluator runs: one BGP for the joined patterns of a graph, plain paths."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import count

from streamgauge.model import algebra as al
from streamgauge.model.terms import Term

MOST_PATTERNS = 16
"""The most triple patterns that one generated join has: Python nests at most 20 loops."""


class UnsupportedError(ValueError):
    """A query that the incremental evaluator does not answer; the message is a sentence that names what."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """Triple patterns over one graph, ``None`` for the default graph, or over each, by a variable for its name."""

    graph: al.Node | None
    bgp: al.BGP

    @property
    def repeated(self) -> al.Repeat | None:
        """The path of a leaf that is one property path with ``*``, ``+`` or ``?``."""
        path = self.bgp.patterns[0].predicate if len(self.bgp.patterns) == 1 else None
        return path if isinstance(path, al.Repeat) else None


def leaf(pattern: al.Pattern) -> Leaf | None:
    """The triple patterns that a normal pattern consists of, ``None`` for any other."""
    if isinstance(pattern, al.BGP):
        return Leaf(None, pattern)
    if isinstance(pattern, al.Graph) and isinstance(pattern.pattern, al.BGP):
        return Leaf(pattern.name, pattern.pattern)
    return None


def operands(pattern: al.Pattern) -> tuple[al.Pattern, ...]:
    """What a tree of joins joins, left to right."""
    if isinstance(pattern, al.Join):
        return operands(pattern.left) + operands(pattern.right)
    return (pattern,)


@dataclass
class Normaliser:
    """Rewrites patterns one after the other; the variables that it makes, ``_:path0``, ``_:path1`` ..., stay apart."""

    _fresh: Iterator[int] = field(default_factory=count)

    def pattern(self, pattern: al.Pattern) -> al.Pattern:
        """The same pattern, BGPs merged, simple property paths rewritten; UnsupportedError names what cannot be."""
        match pattern:
            case al.BGP(patterns=patterns):
                return _joined(self._bgp(patterns, None))
            case al.Graph(name=name, pattern=al.BGP(patterns=patterns)):
                return _joined(self._bgp(patterns, name))
            case al.Join():
                return _joined(part for each in operands(pattern) for part in operands(self.pattern(each)))
            case al.LeftJoin() | al.Union() | al.Minus():
                return replace(pattern, left=self.pattern(pattern.left), right=self.pattern(pattern.right))
            case al.Values():
                return pattern
            case al.Slice():
                raise UnsupportedError("LIMIT and OFFSET: they depend on an order that changes with every fact")
            case al.OrderBy(pattern=inner) | al.Reduced(pattern=inner):
                return self.pattern(inner)
            case _:
                return replace(pattern, pattern=self.pattern(pattern.pattern))

    def _bgp(self, patterns: tuple[al.TriplePattern, ...], graph: al.Node | None) -> Iterator[al.Pattern]:
        plain = tuple(triple for triple in patterns if isinstance(triple.predicate, al.Var | str))
        if plain or not patterns:
            yield _over(graph, plain)
        for triple in patterns:
            if triple not in plain:
                yield from operands(self.path(triple.subject, triple.predicate, triple.object, graph))

    def path(self, subject: al.Node, path: al.Path | al.Var, end: al.Node, graph: al.Node | None) -> al.Pattern:
        """A property path as a pattern; one with ``*``, ``+`` or ``?`` stays, as a leaf of its own."""
        match path:
            case al.Inverse(path=inner):
                return self.path(end, inner, subject, graph)
            case al.Sequence(steps=steps):
                return _joined(self._steps(subject, steps, end, graph))
            case al.Alternative(choices=choices):
                return reduce(al.Union, [self.path(subject, choice, end, graph) for choice in choices])
            case al.NegatedSet():
                return reduce(al.Union, self._negated(subject, path, end, graph))
            case _:
                return _over(graph, (al.TriplePattern(subject, path, end),))

    def _steps(
        self, subject: al.Node, steps: tuple[al.Path, ...], end: al.Node, graph: al.Node | None
    ) -> Iterator[al.Pattern]:
        here = subject
        for step in steps[:-1]:
            there = self.variable()
            yield from operands(self.path(here, step, there, graph))
            here = there
        yield from operands(self.path(here, steps[-1], end, graph))

    def _negated(
        self, subject: al.Node, path: al.NegatedSet, end: al.Node, graph: al.Node | None
    ) -> Iterator[al.Pattern]:
        if path.forward or not path.backward:
            yield self._other_than(subject, path.forward, end, graph)
        if path.backward:
            yield self._other_than(end, path.backward, subject, graph)

    def _other_than(
        self, subject: al.Node, excluded: tuple[Term, ...], end: al.Node, graph: al.Node | None
    ) -> al.Pattern:
        predicate = self.variable()
        pattern = _over(graph, (al.TriplePattern(subject, predicate, end),))
        for iri in excluded:
            pattern = al.Filter(al.Call("!=", (predicate, iri)), pattern)
        return pattern

    def variable(self) -> al.Var:
        """A variable that no query has."""
        return al.Var(f"_:path{next(self._fresh)}")


def _over(graph: al.Node | None, patterns: tuple[al.TriplePattern, ...]) -> al.Pattern:
    """These triple patterns over a graph; none is the BGP that matches once, over each graph what gives its name."""
    bgp = al.BGP(patterns)
    return bgp if graph is None or (isinstance(graph, str) and not patterns) else al.Graph(graph, bgp)


def _joined(parts: Iterable[al.Pattern]) -> al.Pattern:
    """The join of the parts: plain triple patterns first, merged a graph; repeated paths last."""
    blocks: dict[al.Node | None, tuple[al.TriplePattern, ...]] = {}
    others: list[al.Pattern] = []
    paths: list[al.Pattern] = []
    for part in parts:
        found = leaf(part)
        if found is None:
            others.append(part)
        elif found.repeated is not None:
            paths.append(part)
        else:
            blocks[found.graph] = blocks.get(found.graph, ()) + found.bgp.patterns
    merged = [
        _over(graph, some)
        for graph, patterns in blocks.items()
        for some in (_portions(patterns) if patterns or not isinstance(graph, al.Var) else [()])
    ]
    return _chained([*merged, *others, *paths] or [al.BGP(())])


def _portions(patterns: tuple[al.TriplePattern, ...]) -> Iterator[tuple[al.TriplePattern, ...]]:
    """The patterns in portions that one generated join can have, connected where they can be."""
    if 0 < len(patterns) <= MOST_PATTERNS:
        yield patterns
        return
    waiting, known, ordered = list(dict.fromkeys(patterns)), frozenset[al.Var](), list[al.TriplePattern]()
    while waiting:
        chosen = next((triple for triple in waiting if known & set(al.triple_variables(triple))), waiting[0])
        waiting.remove(chosen)
        ordered.append(chosen)
        known |= set(al.triple_variables(chosen))
    for start in range(0, len(ordered), MOST_PATTERNS):
        yield tuple(ordered[start : start + MOST_PATTERNS])


def _chained(parts: list[al.Pattern]) -> al.Pattern:
    """Joined so that each part shares a variable with those before it where that can be."""
    chain, waiting = parts[0], parts[1:]
    while waiting:
        known = set(al.pattern_variables(chain))
        chosen = next((part for part in waiting if known & set(al.pattern_variables(part))), waiting[0])
        waiting.remove(chosen)
        chain = al.Join(chain, chosen)
    return chain
