"""The right side of OPTIONAL, MINUS and EXISTS without the rows that no row on the left can meet.

A row of a basic graph pattern on the right matters only where a row on the left agrees with it, and every row on the
left meets the triple patterns that are joined there. So these are joined to the right side too, and what they bind is
left out again: the right side keeps a few rows where it kept all rows of a property.

A worked example: ``?s :memberOf :d1 OPTIONAL { ?s :telephone ?t }``. On the right stands every telephone of everybody.
Of these, ``SELECT DISTINCT ?s ?t { ?s :telephone ?t . ?s :memberOf :d1 }`` has those of the members of ``:d1``, each as
often as it was there, which is once. ``?s`` agrees with no row on the left for the others.
"""

from collections.abc import Sequence
from typing import Final

from streamgauge.incremental.conditions import reads_patterns
from streamgauge.model import algebra as al
from streamgauge.model.terms import RDF_TYPE

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
