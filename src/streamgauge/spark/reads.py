"""What a pattern reads: the triple patterns of each graph, and the variables whose numeric values are wanted."""

from collections.abc import Iterator, Mapping

from streamgauge.model import algebra as al
from streamgauge.model.terms import Term
from streamgauge.query.rebuild import children, every_expression, every_pattern, expressions

ANY = al.TriplePattern(al.Var("s"), al.Var("p"), al.Var("o"))

Patterns = dict[Term | None, dict[al.TriplePattern, None]]


def reads(pattern: al.Pattern) -> Mapping[Term | None, tuple[al.TriplePattern, ...]]:
    """The plain triple patterns that each graph is asked for, by its name (``None``: the default graph, always there).

    A property path asks for its steps, and for every triple where it is of length zero or a negated set.
    """
    found: Patterns = {None: {}}
    _collect(pattern, None, found)
    return {graph: tuple(patterns) for graph, patterns in found.items()}


def numeric_variables(pattern: al.Pattern) -> frozenset[str]:
    """The variables that some expression or aggregate reads: their values are worth having as numbers."""
    trees = (tree for part in every_pattern(pattern) for tree in expressions(part))
    return frozenset(part.name for tree in trees for part in every_expression(tree) if isinstance(part, al.Var))


def _collect(pattern: al.Pattern, graph: Term | None, found: Patterns) -> None:
    match pattern:
        case al.Graph(name=str() as name, pattern=inner):
            found.setdefault(name, {})
            _collect(inner, name, found)
            return
        case al.BGP(patterns=patterns):
            for triple in patterns:
                found[graph].update(dict.fromkeys(_steps(triple)))
    for child in children(pattern):
        _collect(child, graph, found)
    for part in (part for tree in expressions(pattern) for part in every_expression(tree)):
        if isinstance(part, al.Exists):
            _collect(part.pattern, None, found)


def _steps(triple: al.TriplePattern) -> Iterator[al.TriplePattern]:
    """The plain triple patterns that a triple pattern, its path included, is matched with."""
    if isinstance(triple.predicate, al.Var | str):
        yield triple
    else:
        yield from _path_steps(triple.predicate, isinstance(triple.subject, str), isinstance(triple.object, str))


def _path_steps(path: al.Path, first: bool, last: bool) -> Iterator[al.TriplePattern]:
    """The steps of a path; ``first`` and ``last`` say whether that end is a constant."""
    match path:
        case str():
            yield al.TriplePattern(ANY.subject, path, ANY.object)
        case al.Inverse(path=inner):
            yield from _path_steps(inner, last, first)
        case al.Sequence(steps=steps):
            for index, step in enumerate(steps):
                yield from _path_steps(step, first and index == 0, last and index == len(steps) - 1)
        case al.Alternative(choices=choices):
            for choice in choices:
                yield from _path_steps(choice, first, last)
        case al.Repeat(path=inner, modifier=modifier):
            yield from _path_steps(inner, False, False)
            if modifier != "+" and not (first or last):
                yield ANY
        case al.NegatedSet():
            yield ANY
