"""Characteristics of channels that may make them slow or hard to guess: the query, its data and rules, P1 to P10.

Triple patterns of queries match facts, which may follow from rules.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import pairwise
from statistics import StatisticsError, correlation
from typing import Final, NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from streamgauge.model import algebra as al
from streamgauge.model.terms import RDF_TYPE, Row, Triple
from streamgauge.query.traversal import every_pattern
from streamgauge.reasoning import Rule, Rules
from streamgauge.servers.broker.strategies.graphss import main_subject
from streamgauge.servers.broker.strategies.stringrs import blocks, written
from streamgauge.spark.intervals import TRIPLE
from streamgauge.suites.sepbm import ABOUT, Configuration, ConfigurationError
from streamgauge.suites.sepbm.distributed import standing


def patterns_of(form: al.QueryForm) -> list[al.TriplePattern]:
    """The triple patterns of a query, with those in EXISTS; a path counts as one pattern per property in it."""
    groups = (part for part in every_pattern(form.pattern) if isinstance(part, al.BGP))
    return [part for group in groups for triple in group.patterns for part in _plain(triple)]


def matches(triple: al.TriplePattern) -> Column:
    """Whether a fact (subject, predicate, object) matches a triple pattern without a path."""
    nodes = _nodes(triple)
    tests = [fn.col(name) == node for name, node in zip(TRIPLE, nodes, strict=True) if isinstance(node, str)]
    for var in al.triple_variables(triple):
        places = [name for name, node in zip(TRIPLE, nodes, strict=True) if node == var]
        # A variable that occurs twice in a pattern needs the same term at both places.
        tests += [fn.col(one) == fn.col(two) for one, two in pairwise(places)]
    return reduce(Column.__and__, tests, fn.lit(True))


def involved(rules: Rules, wanted: Iterable[al.TriplePattern]) -> list[Rule]:
    """The rules from which facts that match may follow, in any number of steps."""
    reached: dict[Rule, None] = {}
    new = list(wanted)
    while new:
        pattern = new.pop()
        for rule in rules.rules:
            if rule not in reached and _meet(rule.head, pattern):
                # Each rule once, so that recursive rules end.
                reached[rule] = None
                new += rule.body
    return list(reached)


def _plain(triple: al.TriplePattern) -> Iterator[al.TriplePattern]:
    if isinstance(triple.predicate, al.Var | str):
        yield triple
        return
    for name in dict.fromkeys(_named(triple.predicate)):
        yield al.TriplePattern(al.Var("subject"), name, al.Var("object"))


def _named(path: al.Path) -> Iterator[al.Node]:
    """The properties of a path; a variable for a negated set."""
    match path:
        case str():
            yield path
        case al.Inverse(path=inner) | al.Repeat(path=inner):
            yield from _named(inner)
        case al.Sequence(steps=several) | al.Alternative(choices=several):
            for part in several:
                yield from _named(part)
        case al.NegatedSet():
            yield al.Var("predicate")


def _meet(one: al.TriplePattern, two: al.TriplePattern) -> bool:
    """Whether some fact matches both."""
    pairs = zip(_nodes(one), _nodes(two), strict=True)
    return all(isinstance(a, al.Var) or isinstance(b, al.Var) or a == b for a, b in pairs)


def _nodes(triple: al.TriplePattern) -> tuple[object, object, object]:
    return triple.subject, triple.predicate, triple.object


MEANING: Final = {
    "variables": "P2: variables of the query",
    "patterns": "triple patterns",
    "joins": "pairs of patterns that are joined: triple patterns less one in a group, and groups",
    "filters": "FILTERs",
    "unions": "UNIONs",
    "rules": "rules of the ontology from which facts that the query asks for may follow, in any number of steps",
    "input": "facts of the closure that some triple pattern matches",
    "input_share": "that, of all facts of the closure",
    "result": "rows of the answer on the full data",
    "selectivity": "rows for each fact of the input: low where few are selected",
    "recurring": "P1: publications that bring notifications",
    "contained": "P3: share of the notifications all of whose values stand in the publication",
    "notifications": "P4: notifications (rows that come)",
    "equal_size": "P5: share of the publications that bring some which have the commonest number of string blocks",
    "equal_graphs": "P6: share of string blocks that are the same in one such publication and the next",
    "equal_rows": "P7: share of string blocks that are the same in one notification and the next",
    "same_type": "P8: share of such publications whose main resource has the commonest types",
    "same_structure": "P9: share of such publications that have the commonest set of properties",
    "at_most_one": "P10: of publications that bring values which they do not contain, the share that bring one row",
}
"""The meaning of each characteristic; its value is ``None`` if it is unknown."""


Traits = dict[str, float | None]
"""Values by their names in ``MEANING``, shares from 0 to 1; ``None`` if it is unknown, as without any change."""


class ChannelCharacter(NamedTuple):
    """The properties of a channel's query, data and changes, in ``MEANING``'s order."""

    channel: str
    values: Traits


class RankedTrait(NamedTuple):
    """Spearman's rho (-1 to 1) of the channels' order by a property and by notification time."""

    strategy: str
    property: str
    rho: float
    channels: int


class DueChange(NamedTuple):
    """A publication that brought rows of a channel."""

    graph: tuple[Triple, ...]
    rows: tuple[Row, ...]


def characterise(spark: SparkSession, configuration: Configuration) -> list[ChannelCharacter]:
    """The channels of the queries, in their order, without derived channels."""
    rules = configuration.rules()
    graphs = {publication.number: publication.added for publication in configuration.sequence()}
    brought: dict[str, list[DueChange]] = {}
    for channel in configuration.due():
        if channel.added:
            brought.setdefault(channel.channel, []).append(DueChange(graphs[channel.publication], channel.added))
    forms = {
        channel.name: channel.form
        for channel in configuration.channels
        if channel.name not in configuration.about.alike
    }
    # Before Spark counts for a minute: a configuration that lacks them is refused at once.
    results = {name: _answers(configuration, name) for name in forms}
    total, inputs = _inputs(standing(spark, configuration).select(*TRIPLE).distinct(), forms)
    characters = []
    for name, form in forms.items():
        size, result = inputs[name], results[name]
        needed = len(involved(rules, patterns_of(form)))
        reads: Traits = {
            "rules": needed,
            "input": size,
            "input_share": size / total if total else 0.0,
            "result": result,
            "selectivity": result / size if size else None,
        }
        characters.append(ChannelCharacter(name, asks(form) | reads | brings(brought.get(name, ()))))
    return characters


def _answers(configuration: Configuration, name: str) -> int:
    """The number of rows of a query on the full data, counted at generation."""
    try:
        return int(configuration.about.made["queries"][name]["answers"])
    except (KeyError, TypeError, ValueError) as error:
        file = configuration.folder / ABOUT
        raise ConfigurationError(f"{file}: the number of rows of {name} is missing: generate it again") from error


def ranked(characters: Sequence[ChannelCharacter], times: Mapping[str, Mapping[str, float]]) -> list[RankedTrait]:
    """Each property against each strategy's mean notification time by channel, the closest first.

    Properties that are equal for all channels are left out, and channels with an unknown value.
    """
    traits = []
    for strategy, of in times.items():
        for name in MEANING:
            pairs = [
                (character.values[name], of[character.channel]) for character in characters if character.channel in of
            ]
            known = [(value, time) for value, time in pairs if value is not None]
            rho = spearman([value for value, _ in known], [time for _, time in known])
            if rho is not None:
                traits.append(RankedTrait(strategy, name, rho, len(known)))
    return sorted(traits, key=lambda one: (one.strategy, -abs(one.rho), one.property))


def spearman(one: Sequence[float], two: Sequence[float]) -> float | None:
    """Spearman's rank correlation, with mean ranks for ties; ``None`` if all values of one side are equal."""
    try:
        return correlation(_ranks(one), _ranks(two))
    except StatisticsError:
        return None


def _ranks(values: Sequence[float]) -> list[float]:
    counts = Counter(values)
    # Worked example: 10, 20, 20, 30 have the ranks 1, 2.5, 2.5 and 4.
    below, rank = 0, {}
    for value in sorted(counts):
        # Ties have the mean of the ranks from below + 1 to below + count.
        rank[value] = below + (counts[value] + 1) / 2
        below += counts[value]
    return [rank[value] for value in values]


def asks(form: al.Select) -> Traits:
    """The parts of a query."""
    parts = list(every_pattern(form.pattern))
    groups = [len(part.patterns) for part in parts if isinstance(part, al.BGP)]
    kinds = Counter(type(part) for part in parts)
    # Worked example: two groups of 3 and 2 patterns with one Join between them have 2 + 1 + 1 joins.
    joined = sum(max(0, size - 1) for size in groups) + kinds[al.Join] + kinds[al.LeftJoin] + kinds[al.Minus]
    variables = {var for triple in patterns_of(form) for var in al.triple_variables(triple)}
    return {
        "variables": len(variables),
        "patterns": sum(groups),
        "joins": joined,
        "filters": kinds[al.Filter],
        "unions": kinds[al.Union],
    }


def _inputs(closure: DataFrame, forms: Mapping[str, al.Select]) -> tuple[int, dict[str, int]]:
    """The number of facts, and of facts that each query reads, in one pass over the closure."""
    counted = [fn.count_if(_any(matches(triple) for triple in patterns_of(form))) for form in forms.values()]
    total, *counts = closure.agg(fn.count("*"), *counted).collect()[0]
    return total, dict(zip(forms, counts, strict=True))


def _any(conditions: Iterable[Column]) -> Column:
    return reduce(Column.__or__, conditions, fn.lit(False))


def brings(brought: Sequence[DueChange]) -> Traits:
    """P1 and P3 to P10 of a channel, from the publications that brought rows of it, in order."""
    graphs = [change.graph for change in brought]
    rows = [row for change in brought for row in change.rows]
    inside = [[_contains(change.graph, row) for row in change.rows] for change in brought]
    texts = [blocks(written(graph)) for graph in graphs]
    row_texts = [blocks("\n".join(cell or "" for cell in row)) for row in rows]
    return {
        "recurring": len(brought),
        "contained": _mean([flag for flags in inside for flag in flags]),
        "notifications": len(rows),
        "equal_size": _commonest(map(len, texts)),
        "equal_graphs": _mean([_equal(*pair) for pair in pairwise(texts)]),
        "equal_rows": _mean([_equal(*pair) for pair in pairwise(row_texts)]),
        "same_type": _commonest(map(_types, graphs)),
        "same_structure": _commonest(frozenset(predicate for _, predicate, _ in graph) for graph in graphs),
        "at_most_one": _mean([len(flags) == 1 for flags in inside if not all(flags)]),
    }


def _contains(graph: Sequence[Triple], row: Row) -> bool:
    terms = {term for triple in graph for term in triple}
    return all(cell is None or cell in terms for cell in row)


def _types(graph: Sequence[Triple]) -> frozenset[str]:
    main = main_subject(tuple(graph))
    return frozenset(end for subject, predicate, end in graph if subject == main and predicate == RDF_TYPE)


def _equal(one: Sequence[str], two: Sequence[str]) -> float:
    """The share of positions with equal blocks, of the positions of the longer sequence."""
    return sum(a == b for a, b in zip(one, two, strict=False)) / max(len(one), len(two))


def _commonest(values: Iterable[Hashable]) -> float | None:
    counts = Counter(values)
    return max(counts.values()) / counts.total() if counts else None


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
