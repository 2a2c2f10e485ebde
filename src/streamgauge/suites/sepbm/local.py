"""A configuration's data in memory, and the rows due to its channels, computed in two independent ways.

``due_in_memory`` handles all publications at once, a bit each: the closure is ``reasoning.lifetimes``, queries are
answered by the definition's algebra over all facts of any state, and a solution holds in the states in which all of
its facts hold. ``sequential`` publishes one by one and evaluates from scratch (section 3.2): the closure is the
fixpoint of the rules, and the definition answers the queries.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain
from operator import and_
from pathlib import Path
from typing import Final

from streamgauge.model import algebra as al
from streamgauge.model.algebra import BGP, Node, Var
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.terms import RDF_TYPE, Row, Term, Triple
from streamgauge.query import parse_sparql
from streamgauge.query.traversal import every_expression, expressions
from streamgauge.reasoning import Rule, Rules
from streamgauge.reasoning.lifetimes import Masks, closure_of_states
from streamgauge.reasoning.rules import instance, is_unnamed, passes
from streamgauge.semantics.evaluate import Snapshot
from streamgauge.semantics.refusal import volatile
from streamgauge.sparql.algebra import answer
from streamgauge.sparql.bgp import Dataset, IndexedGraph
from streamgauge.sparql.blocks import Block
from streamgauge.suites.sepbm import (
    Configuration,
    DueRows,
    SepbmChannel,
    in_order,
    spans,
    triples_text,
)
from streamgauge.suites.sepbm.selection import ChannelShape, SelectionRule, shapes
from streamgauge.workloads.draws import text_bits

LOCAL_STATEMENTS: Final = 300_000
"""Approximate number of statements up to which a configuration is generated in this process, without Spark."""


class LocalData:
    """Facts and their closure in memory."""

    def __init__(self, facts: Sequence[Triple], rules: Rules) -> None:
        self._facts = tuple(dict.fromkeys(facts))
        # With a single state: the closure by states is the plain closure where every fact has the same bit.
        closed = closure_of_states(rules, dict.fromkeys(self._facts, 1), 1)
        self._dataset = _dataset(closed)
        self.explicit, self.closure = len(self._facts), len(closed)
        # Published later, a blank node would be another one than in the base load.
        blank = {subject for subject, _, end in self._facts if end.startswith("_:")}
        self._described = {subject for subject, _, _ in self._facts} - blank

    def answer(self, form: al.Select) -> "LocalRows":
        """The distinct rows of a query; ValueError for a query whose answer is not determined."""
        if reason := volatile(form):
            raise ValueError(reason)
        return LocalRows(tuple(dict.fromkeys(answer(form, self._dataset))), self._described)

    def descriptions(self, resources: Sequence[Term]) -> dict[Term, tuple[Triple, ...]]:
        """The statements about each resource, sorted."""
        triples_by_subject: dict[Term, list[Triple]] = {term: [] for term in resources}
        for triple in sorted(triple for triple in self._facts if triple[0] in triples_by_subject):
            triples_by_subject[triple[0]].append(triple)
        return {term: tuple(triples) for term, triples in triples_by_subject.items()}

    def write_base(self, without: Sequence[Term], file: Path) -> None:
        """Write the facts about none of these resources as N-Triples, sorted by bytes."""
        left = set(without)
        lines = sorted(triples_text([triple]) for triple in self._facts if triple[0] not in left)
        file.write_text("".join(lines), encoding="utf-8", newline="\n")

    def close(self) -> None:
        """Do nothing: there are no resources to release."""


@dataclass(frozen=True, slots=True)
class LocalRows:
    """The distinct rows of a query; ``described`` are the subjects without blank nodes in their statements."""

    rows: tuple[Row, ...]
    described: set[Term]

    def count(self) -> int:
        """The number of rows."""
        return len(self.rows)

    def resources(self, rule: SelectionRule, seed: int, name: str, limit: int) -> list[Term]:
        """The first ``limit`` IRIs with statements, in an order drawn for the query."""
        named = chain.from_iterable(row if rule is SelectionRule.ANY else row[:1] for row in self.rows)
        resources = {term for term in named if term is not None and term.startswith("<") and not term.startswith("<<")}
        return _drawn(resources & self.described, seed, name, limit)

    def values(self, other_than: Term | None, seed: int, name: str, limit: int) -> list[Term]:
        """The first ``limit`` terms of the last column, in an order drawn by seed and name."""
        values = {term for row in self.rows if (term := row[-1]) is not None}
        return _drawn(values - {other_than}, seed, name, limit)


def _drawn(terms: set[Term], seed: int, name: str, limit: int) -> list[Term]:
    # Sorted first, as the order of a set differs from process to process, and bits are drawn for the list.
    listed = sorted(terms)
    drawn = zip(text_bits(seed, f"sepbm {name}", listed).tolist(), listed, strict=True)
    return [term for _, term in sorted(drawn)[:limit]]


def due_in_memory(configuration: Configuration, order: Sequence[int] = ()) -> list[DueRows]:
    """The due rows, in the order in which publications took effect; equal to those of ``distributed.due``."""
    publications = in_order(configuration.sequence(), order)
    numbers = [0, *(publication.number for publication in publications)]
    base, last = dict.fromkeys(configuration.base()), len(publications)
    touched = {triple for publication in publications for triple in (*publication.added, *publication.removed)}
    # Facts that no publication touches hold in all states, and need no spans.
    facts = dict.fromkeys((triple for triple in base if triple not in touched), _mask(0, last))
    for triple, listed in spans(publications, [triple for triple in base if triple in touched]).items():
        facts[triple] = sum(_mask(*span) for span in listed)
    states = _States(closure_of_states(configuration.rules(), facts, last + 1), last)
    rows_by_change: dict[tuple[int, str], tuple[list[Row], list[Row]]] = defaultdict(lambda: ([], []))
    for shape in shapes(configuration):
        for row, mask in states.rows(shape.form).items():
            for channel, channel_row in _channel_rows(shape, row):
                for state, gone in _flips(mask, last):
                    rows_by_change[state, channel][gone].append(channel_row)
    return [
        DueRows(channel, numbers[state], tuple(added), tuple(removed))
        for (state, channel), (added, removed) in sorted(rows_by_change.items())
    ]


def _mask(first: int, last: int) -> int:
    """A bit for each state from ``first`` to ``last``, both included; ``_mask(1, 3)`` is ``0b1110``."""
    return ((1 << (last - first + 1)) - 1) << first


def _flips(mask: int, last: int) -> Iterator[tuple[int, bool]]:
    """The states from 1 on in which a row is added or removed, and whether it is removed.

    A bit of ``mask ^ (mask << 1)`` is set where a state differs from the one before it.
    """
    # Worked example: a row in the states 2 and 3 of 0 to 5 is 0b001100. Shifted it is 0b011000, their difference
    # 0b010100: added in state 2 and removed in state 4.
    changed = (mask ^ (mask << 1)) & _mask(1, last) if last else 0
    while changed:
        state = (changed & -changed).bit_length() - 1
        yield state, not mask >> state & 1
        # Clears the lowest set bit.
        changed &= changed - 1


def _channel_rows(shape: ChannelShape, row: Row) -> Iterator[tuple[str, Row]]:
    """The channels of a shape to which a row belongs, and the row that they receive."""
    if shape.value is None:
        yield shape.channels[""][0], row
    elif row[-1] is not None:
        yield from ((channel, row[:-1]) for channel in shape.channels.get(row[-1], ()))


@dataclass(frozen=True, slots=True)
class _Branch:
    """Triple patterns that all hold, and conditions on them."""

    patterns: tuple[al.TriplePattern, ...] = ()
    conditions: tuple[al.Expression, ...] = ()


class _States:
    """Facts with the states in which they hold, and queries over all states at once."""

    def __init__(self, masks: Masks, last: int) -> None:
        self._masks, self._last = masks, last
        self._dataset = _dataset(masks)

    def rows(self, form: al.Select) -> Mapping[Row, int]:
        """The rows of a query with the states that have them; evaluated state by state unless it is a plain join."""
        if reason := volatile(form):
            raise ValueError(reason)
        body = form.pattern
        while isinstance(body, al.Distinct | al.Reduced):
            body = body.pattern
        branches = _branches(body.pattern) if isinstance(body, al.Project) else None
        if branches is None:
            return self._one_by_one(form)
        masks: dict[Row, int] = {}
        for branch in branches:
            for row, mask in self._solutions(branch, form.variables):
                masks[row] = masks.get(row, 0) | mask
        return masks

    def _solutions(self, branch: _Branch, names: Sequence[str]) -> Iterator[tuple[Row, int]]:
        patterns = tuple(map(_visible, branch.patterns))
        variables = tuple(dict.fromkeys(var for pattern in patterns for var in al.triple_variables(pattern)))
        body: al.Pattern = al.BGP(patterns)
        for condition in branch.conditions:
            body = al.Filter(condition, body)
        every = al.Select(al.Project(body, variables), tuple(var.name for var in variables))
        for solution in answer(every, self._dataset):
            bound = dict(zip(every.variables, solution, strict=True))
            facts = (tuple(_term(node, bound) for node in al.nodes_of(pattern)) for pattern in patterns)
            # A solution exists in the states in which all of its facts do.
            mask = reduce(and_, (self._masks[fact] for fact in facts), _mask(0, self._last))  # type: ignore[index]
            if mask:
                yield tuple(map(bound.get, names)), mask

    def _one_by_one(self, form: al.Select) -> Mapping[Row, int]:
        masks: dict[Row, int] = {}
        for state in range(self._last + 1):
            present = {fact: mask for fact, mask in self._masks.items() if mask >> state & 1}
            for row in answer(form, _dataset(present)):
                masks[row] = masks.get(row, 0) | 1 << state
        return masks


def _dataset(facts: Masks) -> Dataset:
    return Dataset(IndexedGraph(facts), {})


def _visible(triple: al.TriplePattern) -> al.TriplePattern:
    """The pattern with variables for blank nodes, which are not part of solutions."""

    def named(node: al.Node) -> al.Node:
        return al.Var(f"blank {node.name[2:]}") if isinstance(node, al.Var) and node.name.startswith("_:") else node

    return replace(triple, subject=named(triple.subject), object=named(triple.object))


def _term(node: al.Node, bound: Mapping[str, Term | None]) -> Term | None:
    return node if isinstance(node, str) else bound[node.name]


def _branches(pattern: al.Pattern) -> list[_Branch] | None:
    """The pattern as a union of joins of triple patterns with conditions; ``None`` if it is not of that form."""
    match pattern:
        case al.BGP(patterns=patterns):
            plain = all(isinstance(pattern.predicate, al.Var | str) for pattern in patterns)
            return [_Branch(patterns)] if plain else None
        case al.Join(left=left, right=right):
            first, second = _branches(left), _branches(right)
            if first is None or second is None:
                return None
            return [_Branch(a.patterns + b.patterns, a.conditions + b.conditions) for a in first for b in second]
        case al.Union(left=left, right=right):
            first, second = _branches(left), _branches(right)
            return None if first is None or second is None else first + second
        case al.Filter(pattern=inner):
            return _filtered(pattern, _branches(inner))
        case _:
            return None


def _filtered(pattern: al.Filter, inner: list[_Branch] | None) -> list[_Branch] | None:
    """The branches with a condition on their own variables only, so that later joins do not change its value."""
    (condition,) = expressions(pattern)
    parts = list(every_expression(condition))
    if inner is None or any(isinstance(part, al.Exists) for part in parts):
        return None
    about = {part for part in parts if isinstance(part, al.Var)}
    bound = ({var for pattern in branch.patterns for var in al.triple_variables(pattern)} for branch in inner)
    if not all(about <= variables for variables in bound):
        return None
    return [replace(branch, conditions=(*branch.conditions, condition)) for branch in inner]


Answers = Mapping[str, frozenset[Row]]
Tell = Callable[[int, int], None]
"""Called after each publication with the number of those done and of all."""


def sequential(
    configuration: Configuration, order: Sequence[int] = (), tell: Tell = lambda _done, _of: None
) -> Iterator[DueRows]:
    """The rows due, publication by publication, in the order in which they took effect.

    ``order`` are all publications by number, that of the sequence unless given.
    """
    rules, queries = configuration.rules(), snapshots(configuration.channels)
    facts = dict.fromkeys(configuration.base())
    publications = in_order(configuration.sequence(), order)
    before = answers(rules, facts, queries)
    for done, publication in enumerate(publications, 1):
        for triple in publication.removed:
            facts.pop(triple, None)
        facts.update(dict.fromkeys(publication.added))
        now = answers(rules, facts, queries)
        yield from _differences(publication.number, before, now)
        before = now
        tell(done, len(publications))


def snapshots(channels: Iterable[SepbmChannel]) -> dict[str, Snapshot]:
    """The channels' queries, for the definition's evaluator."""
    return {channel.name: Snapshot(ContinuousQuery(parse_sparql(channel.query), ())) for channel in channels}


def answers(rules: Rules, facts: Iterable[Triple], queries: Mapping[str, Snapshot]) -> Answers:
    """The answer of each query over the closure of facts, a set of rows."""
    dataset = Dataset(closed(rules, facts))
    return {name: frozenset(query.rows_over(dataset)) for name, query in queries.items()}


def closed(rules: Rules, facts: Iterable[Triple]) -> IndexedGraph:
    """The closure of facts as a graph, naively: all rules on all facts until the fixpoint."""
    graph, size = IndexedGraph(facts), -1
    # Until a round adds nothing; each fact is in the graph once, so the size shows every addition.
    while len(graph.triples) != size:
        size = len(graph.triples)
        for rule in rules.rules:
            graph.extend(list(_heads(rule, graph)))
    # Classes that only exist within the ontology's expressions, whose members are not facts.
    unnamed = {rule.head.object for rule in rules.rules if is_unnamed(str(rule.head.object))}
    graph.discard([fact for fact in graph.triples if fact[1] == RDF_TYPE and fact[2] in unnamed])
    return graph


def _heads(rule: Rule, graph: IndexedGraph) -> Iterator[Triple]:
    for solution in Block(BGP(rule.body), graph, {}).solutions({}):
        bound: dict[Node, Term] = {Var(name): term for name, term in solution.items()}
        head = instance(rule.head, bound) if passes(rule, bound) else None
        if head is not None:
            yield head


def _differences(number: int, before: Answers, now: Answers) -> Iterator[DueRows]:
    for channel, rows in now.items():
        if rows != before[channel]:
            yield DueRows(channel, number, tuple(rows - before[channel]), tuple(before[channel] - rows))
