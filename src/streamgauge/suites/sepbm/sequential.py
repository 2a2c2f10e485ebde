"""What channels are due by the definition: publish one by one, then close and ask from scratch (section 3.2).

The closure is the fix point of SPARQL updates, one for each rule, and pyoxigraph answers the queries: nothing of what
is measured takes part, and nothing is optimised. For small data.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import pyoxigraph as ox

from streamgauge.incremental.facts.facts import HIDDEN
from streamgauge.model.algebra import BGP, Call, Expression, Filter, Node, Var
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.terms import RDF_TYPE, Row, Term, Triple
from streamgauge.query import parse_sparql
from streamgauge.query.printer import group
from streamgauge.reasoning import Rule, Rules
from streamgauge.reasoning.rules import SAME, instance, is_unnamed, passes, predicate_of
from streamgauge.semantics.evaluate import Snapshot
from streamgauge.suites.sepbm.contract import Channel, Configuration, Due
from streamgauge.suites.sepbm.states import in_order

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
    updates, size = [_update(rule) for rule in rules.rules if not rule.tests], -1
    tested = [rule for rule in rules.rules if rule.tests]
    while len(store) != size:
        size = len(store)
        for update in updates:
            store.update(update)
        for rule in tested:
            _insert(store, rule)
    for name in {str(rule.head.object) for rule in rules.rules if is_unnamed(str(rule.head.object))}:
        store.update(f"DELETE WHERE {{ ?x {RDF_TYPE} {_named(name)} }}")
    return store


def _update(rule: Rule) -> str:
    """A rule as an update; a literal is no subject, and that everything is itself is not said."""
    head = rule.head
    proper: Expression = Call("!", (Call("ISLITERAL", (head.subject,)),))
    if not isinstance(head.predicate, str) or head.predicate == SAME:
        same = Call("&&", (Call("=", (predicate_of(head), SAME)), Call("SAMETERM", (head.subject, head.object))))
        real = Call("ISIRI", (predicate_of(head),))
        proper = Call("&&", (proper, Call("&&", (real, Call("!", (same,))))))
    return _named(f"INSERT {group(BGP((head,)))} WHERE {group(Filter(proper, BGP(rule.body)))}")


def _insert(store: ox.Store, rule: Rule) -> None:
    """The heads of a rule that tests literals, which SPARQL has no words for."""
    found = store.query(_named(f"SELECT * WHERE {group(BGP(rule.body))}"))
    if not isinstance(found, ox.QuerySolutions):
        raise TypeError("a SELECT gives solutions")
    names = [variable.value for variable in found.variables]
    rows: list[dict[Node, Term]] = [{Var(name): str(row[name]) for name in names} for row in found]
    heads = [instance(rule.head, bound) for bound in rows if passes(rule, bound)]
    lines = [" ".join(head) + " ." for head in heads if head is not None]
    store.load(_named("\n".join(lines)).encode(), format=ox.RdfFormat.N_TRIPLES)


def _named(text: str) -> str:
    """A text in which hidden classes have names that SPARQL can read."""
    return text.replace(HIDDEN, "<urn:streamgauge:hidden:")


def _differences(number: int, before: Answers, now: Answers) -> Iterator[Due]:
    for channel, rows in now.items():
        if rows != before[channel]:
            yield Due(channel, number, tuple(rows - before[channel]), tuple(before[channel] - rows))
