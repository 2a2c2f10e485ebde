"""Triple patterns of queries: which facts they match, and which rules such facts may follow from."""

from collections.abc import Iterable, Iterator
from functools import reduce
from itertools import pairwise

from pyspark.sql import Column
from pyspark.sql import functions as fn

from streamgauge.model import algebra as al
from streamgauge.query.rebuild import every_pattern
from streamgauge.reasoning import Rule, Rules
from streamgauge.spark.intervals import TRIPLE


def patterns_of(form: al.QueryForm) -> list[al.TriplePattern]:
    """The triple patterns of a query, those in EXISTS too; a path is one for each property that it names."""
    groups = (part for part in every_pattern(form.pattern) if isinstance(part, al.BGP))
    return [each for group in groups for triple in group.patterns for each in _plain(triple)]


def matches(triple: al.TriplePattern) -> Column:
    """Whether a fact (subject, predicate, object) matches a triple pattern without a path."""
    nodes = _nodes(triple)
    tests = [fn.col(name) == node for name, node in zip(TRIPLE, nodes, strict=True) if isinstance(node, str)]
    for var in al.triple_variables(triple):
        places = [name for name, node in zip(TRIPLE, nodes, strict=True) if node == var]
        tests += [fn.col(one) == fn.col(two) for one, two in pairwise(places)]
    return reduce(Column.__and__, tests, fn.lit(True))


def involved(rules: Rules, wanted: Iterable[al.TriplePattern]) -> list[Rule]:
    """The rules from which facts that match may follow, in any number of steps."""
    found: dict[Rule, None] = {}
    new = list(wanted)
    while new:
        pattern = new.pop()
        for rule in rules.rules:
            if rule not in found and _meet(rule.head, pattern):
                found[rule] = None
                new += rule.body
    return list(found)


def _plain(triple: al.TriplePattern) -> Iterator[al.TriplePattern]:
    if isinstance(triple.predicate, al.Var | str):
        yield triple
        return
    for name in dict.fromkeys(_named(triple.predicate)):
        yield al.TriplePattern(al.Var("subject"), name, al.Var("object"))


def _named(path: al.Path) -> Iterator[al.Node]:
    """The properties of a path; a variable where it says which ones it is not."""
    match path:
        case str():
            yield path
        case al.Inverse(path=inner) | al.Repeat(path=inner):
            yield from _named(inner)
        case al.Sequence(steps=several) | al.Alternative(choices=several):
            for each in several:
                yield from _named(each)
        case al.NegatedSet():
            yield al.Var("predicate")


def _meet(one: al.TriplePattern, two: al.TriplePattern) -> bool:
    """Whether some fact matches both."""
    pairs = zip(_nodes(one), _nodes(two), strict=True)
    return all(isinstance(a, al.Var) or isinstance(b, al.Var) or a == b for a, b in pairs)


def _nodes(triple: al.TriplePattern) -> tuple[object, object, object]:
    return triple.subject, triple.predicate, triple.object
