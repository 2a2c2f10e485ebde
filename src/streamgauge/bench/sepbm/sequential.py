"""What channels are due by the definition: publish one by one, then close and ask from scratch (section 3.2).

The closure is the fix point of SPARQL updates, one for each rule, and pyoxigraph answers the queries: nothing of what
is measured takes part, and nothing is optimised. For small data.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import pyoxigraph as ox

from streamgauge.bench.sepbm.contract import Channel, Configuration, Due
from streamgauge.bench.sepbm.histories import in_order
from streamgauge.compute.reasoning import Rule, Rules
from streamgauge.model.algebra import BGP, Call, Filter
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.terms import Row, Triple
from streamgauge.query import parse_sparql
from streamgauge.query.printer import group
from streamgauge.semantics.evaluate import Snapshot

Answers = Mapping[str, frozenset[Row]]
Tell = Callable[[int, int], None]
"""Told after each publication: how many are done, and how many there are."""


def sequential(
    configuration: Configuration, order: Sequence[int] = (), tell: Tell = lambda _done, _of: None
) -> Iterator[Due]:
    """What the channels are due, publication by publication, in the order in which they took effect.

    ``order`` are all publications by number, that of the sequence unless given.
    """
    rules, queries = configuration.rules(), asked(configuration.channels)
    facts = dict.fromkeys(configuration.base())
    publications = in_order(configuration.sequence(), order)
    before = answers(rules, facts, queries)
    for done, each in enumerate(publications, 1):
        for triple in each.removed:
            facts.pop(triple, None)
        facts.update(dict.fromkeys(each.added))
        now = answers(rules, facts, queries)
        yield from _differences(each.number, before, now)
        before = now
        tell(done, len(publications))


def asked(channels: Iterable[Channel]) -> dict[str, Snapshot]:
    """The channels' queries, to be answered by the definition's evaluator."""
    return {each.name: Snapshot(ContinuousQuery(parse_sparql(each.query), ())) for each in channels}


def answers(rules: Rules, facts: Iterable[Triple], queries: Mapping[str, Snapshot]) -> Answers:
    """The answer of each query over the closure of facts, a set of rows."""
    store = closed(rules, facts)
    return {name: frozenset(query.rows_of(store)) for name, query in queries.items()}


def closed(rules: Rules, facts: Iterable[Triple]) -> ox.Store:
    """A store with all that follows from facts: every rule on everything, again and again, until nothing is new."""
    store = ox.Store()
    store.bulk_load("".join(f"{' '.join(fact)} .\n" for fact in facts).encode(), format=ox.RdfFormat.N_TRIPLES)
    updates, size = list(map(_update, rules.rules)), -1
    while len(store) != size:
        size = len(store)
        for update in updates:
            store.update(update)
    return store


def _update(rule: Rule) -> str:
    """A rule as an update; a literal is no subject."""
    proper = Call("!", (Call("ISLITERAL", (rule.head.subject,)),))
    return f"INSERT {group(BGP((rule.head,)))} WHERE {group(Filter(proper, BGP(rule.body)))}"


def _differences(number: int, before: Answers, now: Answers) -> Iterator[Due]:
    for channel, rows in now.items():
        if rows != before[channel]:
            yield Due(channel, number, tuple(rows - before[channel]), tuple(before[channel] - rows))
