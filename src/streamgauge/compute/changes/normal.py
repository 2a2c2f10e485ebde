"""The algebra put into the shape that the evaluator runs: joined triple patterns in one BGP, paths spelt out."""

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from itertools import count

from streamgauge.model import algebra as al

TRUE_ROW: al.Values = al.Values((), ((),))


class UnsupportedError(ValueError):
    """A query that the incremental evaluator does not answer; the message is a sentence that names what."""


def normal(pattern: al.Pattern) -> al.Pattern:
    """The same pattern with BGPs merged and simple property paths rewritten; UnsupportedError names the others."""
    return _Normal().pattern(pattern)


class _Normal:
    """Numbers the variables that it makes, ``_:path0``, ``_:path1`` ..."""

    def __init__(self) -> None:
        self._fresh = count()

    def pattern(self, pattern: al.Pattern) -> al.Pattern:
        """One node and what is below it."""
        match pattern:
            case al.BGP(patterns=patterns):
                return self._bgp(patterns)
            case al.Join(left=left, right=right):
                return _joined(self.pattern(left), self.pattern(right))
            case al.LeftJoin() | al.Union() | al.Minus():
                return replace(pattern, left=self.pattern(pattern.left), right=self.pattern(pattern.right))
            case al.Values():
                return pattern
            case al.Graph():
                raise UnsupportedError("GRAPH: the content of a window is one default graph")
            case al.Slice():
                raise UnsupportedError("LIMIT and OFFSET: they depend on an order that changes with every fact")
            case al.OrderBy(pattern=inner) | al.Reduced(pattern=inner):
                return self.pattern(inner)
            case _:
                return replace(pattern, pattern=self.pattern(pattern.pattern))

    def _bgp(self, patterns: tuple[al.TriplePattern, ...]) -> al.Pattern:
        plain = tuple(triple for triple in patterns if isinstance(triple.predicate, al.Var | str))
        parts: list[al.Pattern] = [al.BGP(plain)] if plain or not patterns else []
        paths = (triple for triple in patterns if triple not in plain)
        parts.extend(self._path(triple.subject, triple.predicate, triple.object) for triple in paths)
        return reduce(_joined, parts)

    def _path(self, subject: al.Node, path: al.Path | al.Var, end: al.Node) -> al.Pattern:
        match path:
            case al.Inverse(path=inner):
                return self._path(end, inner, subject)
            case al.Sequence(steps=steps):
                return reduce(_joined, self._steps(subject, steps, end))
            case al.Alternative(choices=choices):
                return reduce(al.Union, [self._path(subject, choice, end) for choice in choices])
            case al.NegatedSet(forward=forward, backward=backward):
                return self._negated(subject, forward, backward, end)
            case al.Repeat(modifier=modifier):
                raise UnsupportedError(f"property paths with {modifier}: their answers are not kept incrementally")
            case _:
                return al.BGP((al.TriplePattern(subject, path, end),))

    def _steps(self, subject: al.Node, steps: tuple[al.Path, ...], end: al.Node) -> Iterator[al.Pattern]:
        here = subject
        for step in steps[:-1]:
            there = self._variable()
            yield self._path(here, step, there)
            here = there
        yield self._path(here, steps[-1], end)

    def _negated(
        self, subject: al.Node, forward: tuple[str, ...], backward: tuple[str, ...], end: al.Node
    ) -> al.Pattern:
        sides = []
        if forward or not backward:
            sides.append(self._other_than(subject, forward, end))
        if backward:
            sides.append(self._other_than(end, backward, subject))
        return reduce(al.Union, sides)

    def _other_than(self, subject: al.Node, excluded: tuple[str, ...], end: al.Node) -> al.Pattern:
        predicate = self._variable()
        pattern: al.Pattern = al.BGP((al.TriplePattern(subject, predicate, end),))
        for iri in excluded:
            pattern = al.Filter(al.Call("!=", (predicate, iri)), pattern)
        return pattern

    def _variable(self) -> al.Var:
        return al.Var(f"_:path{next(self._fresh)}")


def _joined(left: al.Pattern, right: al.Pattern) -> al.Pattern:
    if isinstance(left, al.BGP) and isinstance(right, al.BGP):
        return al.BGP(left.patterns + right.patterns)
    if isinstance(left, al.Join) and isinstance(left.left, al.BGP) and isinstance(right, al.BGP):
        return al.Join(al.BGP(left.left.patterns + right.patterns), left.right)
    if isinstance(right, al.BGP):
        return al.Join(right, left)
    return al.Join(left, right)
