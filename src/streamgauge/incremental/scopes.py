"""Variables of a pattern: in scope, bound, mentioned; and what OPTIONAL, MINUS and EXISTS take from the left side.

SPARQL 1.1, 18.6 substitutes the outer solution into the pattern of EXISTS. Where that is the same as joining with it
afterwards the pattern is ``closed``. Otherwise it is evaluated beside a ``Domain`` (``outer_joins``): every place that
matches triples is joined with the distinct values of the outer variables, and a key keeps the outer solutions apart up
to the end. A variable that has become a value is not shared by the sides of MINUS; a subquery has values put for the
variables that it projects only.

A row on the right side matters only where a row on the left agrees with it, and every row on the left meets the triple
patterns that are joined there (``firm``). These are joined to the right side too, and their variables are projected
away again (``semijoined``): the right side keeps a few rows where it kept all rows of a property.

A worked example: ``?s :memberOf :d1 OPTIONAL { ?s :telephone ?t }``. On the right stands every telephone of everybody.
Of these, ``SELECT DISTINCT ?s ?t { ?s :telephone ?t . ?s :memberOf :d1 }`` has those of the members of ``:d1``, each as
often as it was there, which is once. ``?s`` agrees with no row on the left for the others.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from streamgauge.incremental.conditions import reads_patterns
from streamgauge.model import algebra as al
from streamgauge.model.terms import RDF_TYPE
from streamgauge.query.traversal import every_expression, every_pattern, expressions

Names = frozenset[str]


@dataclass(frozen=True, slots=True)
class PatternLeaf:
    """Triple patterns over one graph, ``None`` for the default graph, or over each, by a variable for its name."""

    graph: al.Node | None
    bgp: al.BGP

    @property
    def repeated(self) -> al.Repeat | None:
        """The path of a leaf that is one property path with ``*``, ``+`` or ``?``."""
        path = self.bgp.patterns[0].predicate if len(self.bgp.patterns) == 1 else None
        return path if isinstance(path, al.Repeat) else None


def leaf(pattern: al.Pattern) -> PatternLeaf | None:
    """The triple patterns that a normal pattern consists of, ``None`` for any other."""
    if isinstance(pattern, al.BGP):
        return PatternLeaf(None, pattern)
    if isinstance(pattern, al.Graph) and isinstance(pattern.pattern, al.BGP):
        return PatternLeaf(pattern.name, pattern.pattern)
    return None


def operands(pattern: al.Pattern) -> tuple[al.Pattern, ...]:
    """The operands of a tree of joins, left to right."""
    if isinstance(pattern, al.Join):
        return operands(pattern.left) + operands(pattern.right)
    return (pattern,)


def reads(expression: al.Expression) -> Names:
    """The variables that an expression may read, those anywhere in a pattern of its EXISTS too."""
    found: set[str] = set()
    for part in every_expression(expression):
        if isinstance(part, al.Var):
            found.add(part.name)
        elif isinstance(part, al.Exists):
            found |= mentions(part.pattern)
    return frozenset(found)


def mentions(pattern: al.Pattern) -> Names:
    """The variables that occur anywhere in a pattern."""
    found: set[str] = set()
    for inner in every_pattern(pattern):
        found.update(names_of(al.pattern_variables(inner)))
        for tree in expressions(inner):
            found.update(part.name for part in every_expression(tree) if isinstance(part, al.Var))
    return frozenset(found)


def scope(pattern: al.Pattern) -> Names:
    """The variables in scope."""
    return frozenset(names_of(al.pattern_variables(pattern)))


def names_of(variables: Iterable[al.Var]) -> tuple[str, ...]:
    """Their names."""
    return tuple(variable.name for variable in variables)


def bound(pattern: al.Pattern) -> Names:
    """The variables that every solution of a pattern binds."""
    match pattern:
        case al.BGP():
            return scope(pattern)
        case al.Join(left=left, right=right):
            return bound(left) | bound(right)
        case al.Union(left=left, right=right):
            return bound(left) & bound(right)
        case al.Values(variables=variables, rows=rows):
            return frozenset(var.name for at, var in enumerate(variables) if all(row[at] is not None for row in rows))
        case al.Group(pattern=inner, keys=keys):
            return bound(inner) & frozenset(var.name for var, key in keys if var == key)
        case al.Project(pattern=inner, variables=variables):
            return bound(inner) & frozenset(names_of(variables))
        case al.LeftJoin(left=inner) | al.Minus(left=inner):
            return bound(inner)
        case al.Graph(name=al.Var() as name, pattern=inner):
            return bound(inner) | {name.name}
        case _:
            return bound(pattern.pattern)


def nullable(path: al.Path) -> bool:
    """Whether the path has length zero too."""
    match path:
        case al.Repeat(path=inner, modifier=modifier):
            return modifier in "*?" or nullable(inner)
        case al.Sequence(steps=steps):
            return all(map(nullable, steps))
        case al.Alternative(choices=choices):
            return any(map(nullable, choices))
        case al.Inverse(path=inner):
            return nullable(inner)
        case _:
            return False


def zero_ends(pattern: al.Pattern) -> Names:
    """The variables at the ends of a leaf that is a path of length zero too: a value from outside is in place there."""
    found = leaf(pattern)
    if found is None or found.repeated is None or not nullable(found.repeated):
        return frozenset()
    return scope(pattern)


def closed(pattern: al.Pattern, outer: Names) -> bool:
    """Whether substituting values of the outer variables is the same as joining with them afterwards."""
    match pattern:
        case al.BGP() | al.Graph():
            return not zero_ends(pattern) & outer
        case al.Values():
            return True
        case al.Join(left=left, right=right) | al.Union(left=left, right=right):
            return closed(left, outer) and closed(right, outer)
        case al.LeftJoin(left=left, right=right, condition=condition):
            taken = mentions(right) | (reads(condition) if condition is not None else frozenset())
            return closed(left, outer) and closed(right, outer) and taken & outer <= bound(left)
        case al.Minus(left=left, right=right):
            return closed(left, outer) and not mentions(right) & outer
        case al.Filter(condition=condition, pattern=inner):
            return closed(inner, outer) and reads(condition) & outer <= bound(inner)
        case al.Extend(pattern=inner, variable=variable, expression=value):
            known = reads(value) & outer <= bound(inner) and variable.name not in outer
            return known and closed(inner, outer)
        case al.Project(pattern=inner, variables=variables):
            return closed(inner, outer & frozenset(names_of(variables)))
        case al.Group(pattern=inner, keys=keys):
            kept = outer & scope(pattern)
            return kept <= {var.name for var, key in keys if var == key} & bound(inner) and closed(inner, kept)
        case _:
            return closed(pattern.pattern, outer)


MOST: Final = 8
"""The most triple patterns that the right side has afterwards: each is told of facts."""


def firm(pattern: al.Pattern) -> tuple[al.TriplePattern, ...]:
    """Triple patterns over the default graph that every solution of a normal pattern meets; not all of them."""
    match pattern:
        case al.BGP(patterns=patterns):
            return tuple(each for each in patterns if isinstance(each.predicate, al.Var | str))
        case al.Join(left=left, right=right):
            return firm(left) + firm(right)
        case al.LeftJoin(left=inner) | al.Minus(left=inner) | al.Filter(pattern=inner):
            return firm(inner)
        case _:
            return ()


def semijoined(right: al.Pattern, left: Sequence[al.TriplePattern]) -> al.Pattern:
    """The right side as far as it agrees with solutions that meet ``left``.

    The same pattern where that would not make it smaller: it is no basic graph pattern under simple filters, it names
    a term itself, or ``left`` names none that is connected with it.
    """
    block = _block(right)
    if block is None or any(map(_is_bound, block.patterns)):
        return right
    more = _connected(block, left)
    if not any(map(_is_bound, more)) or len(block.patterns) + len(more) > MOST:
        return right
    whole = _with_block(right, al.BGP((*block.patterns, *more)))
    return al.Distinct(al.Project(whole, al.pattern_variables(block)))


def _block(pattern: al.Pattern) -> al.BGP | None:
    match pattern:
        case al.BGP(patterns=patterns):
            plain = all(isinstance(each.predicate, al.Var | str) for each in patterns)
            return pattern if patterns and plain else None
        case al.Filter(condition=condition, pattern=inner) if not reads_patterns(condition):
            return _block(inner)
        case _:
            return None


def _with_block(pattern: al.Pattern, block: al.BGP) -> al.Pattern:
    return (
        al.Filter(pattern.condition, _with_block(pattern.pattern, block)) if isinstance(pattern, al.Filter) else block
    )


def _connected(block: al.BGP, left: Sequence[al.TriplePattern]) -> list[al.TriplePattern]:
    """The patterns that share a variable with the block, or with one that does."""
    known = set(al.pattern_variables(block))
    waiting, found = [each for each in dict.fromkeys(left) if each not in block.patterns], list[al.TriplePattern]()
    while chosen := next((each for each in waiting if known & set(al.triple_variables(each))), None):
        waiting.remove(chosen)
        found.append(chosen)
        known |= set(al.triple_variables(chosen))
    return found


def _is_bound(pattern: al.TriplePattern) -> bool:
    """Whether a term stands at an end; a class does not count."""
    is_class = pattern.predicate == RDF_TYPE
    return isinstance(pattern.subject, str) or (isinstance(pattern.object, str) and not is_class)
