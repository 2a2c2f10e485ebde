"""Fact forms: how the facts of a triple pattern are requested from a source, and the fragments received.

A form covers static facts, facts with times and their labels; also quads in the data's own named graphs, with the
labels that distinguish annotation graphs from these.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from typing import Final, TypeAlias

from streamgauge.model.algebra import Node, TriplePattern, Var
from streamgauge.model.fact import Fact
from streamgauge.model.terms import Term
from streamgauge.servers.fragments import ANYWHERE, DEFAULT, Quad, QuadPattern
from streamgauge.servers.fragments.annotations import AnnotatedForm, method, triple_nodes
from streamgauge.servers.fragments.client import FetchedChange, FetchedQuads, LinkedDataSource
from streamgauge.servers.fragments.client.sources import TermTuple, matching_terms, pattern_quads
from streamgauge.servers.fragments.labels import Style, read_labels
from streamgauge.servers.fragments.live_queries import PatternNeed

KnownValues: TypeAlias = Mapping[Var, frozenset[Term]]
"""By variable, all values that can matter."""


class FactGraphs(Enum):
    """Which graphs contain facts; in place of a style, all facts are static."""

    ANY = "all graphs: those with a label, and those whose triples hold always"
    DEFAULT = "the default graph"


@dataclass(frozen=True, slots=True)
class FormPlace:
    """A pattern of a form, and the pattern requested for it, which may match more."""

    pattern: QuadPattern
    request: QuadPattern


@dataclass(frozen=True, slots=True)
class FactForm:
    """The requests for a triple pattern: groups of patterns that belong together, and the one that is counted.

    With ``leads`` that one (``entry``) is fetched first in its group: its matches need not match the others.
    """

    form: AnnotatedForm
    groups: tuple[tuple[FormPlace, ...], ...]
    entry: QuadPattern
    leads: bool = False

    def next(self, waiting: Sequence[FormPlace]) -> Sequence[FormPlace]:
        """The candidates among the waiting places of a group to be fetched next."""
        first = [place for place in waiting if place.request == self.entry] if self.leads else []
        return first or waiting

    def computed(self, place: FormPlace, quads: Iterable[Quad]) -> dict[Var, frozenset[Term]]:
        """The values of variables that are computed from the quads fetched for a place."""
        return {
            link.variable: frozenset(link.term(quad[:3]) for quad in quads)
            for link in self.form.links
            if place.pattern.nodes[:3] == triple_nodes(link.pattern)
        }


def fact_graphs(style: Style | FactGraphs) -> FactGraphs:
    """Which graphs contain the facts of a style."""
    if isinstance(style, FactGraphs):
        return style
    # Any pattern shows how a method annotates; the method itself has no field for it.
    triple = TriplePattern(Var("s"), Var("p"), Var("o"))
    in_graph = any(isinstance(pattern_.graph, Var) for pattern_ in method(style.method).form(triple, 0, style).own)
    return FactGraphs.ANY if in_graph else FactGraphs.DEFAULT


def fact_form(wanted: PatternNeed, style: Style | FactGraphs) -> FactForm:
    """The requests for a pattern's facts; a single one if one pattern over all graphs covers them.

    Without a style only static facts are requested.
    """
    pattern = wanted.pattern
    if wanted.graph is not None:
        return _in_graph(pattern, wanted.graph, style)
    plain = QuadPattern(*triple_nodes(pattern))
    if isinstance(style, FactGraphs):
        requested = QuadPattern(*triple_nodes(pattern), ANYWHERE) if style is FactGraphs.ANY else plain
        return FactForm(AnnotatedForm((plain,), (), None, None), ((FormPlace(plain, requested),),), requested)
    form = method(style.method).form(pattern, 0, style)
    in_graph = [
        pattern for pattern in form.patterns if pattern.nodes[:3] == plain.nodes[:3] and isinstance(pattern.graph, Var)
    ]
    if in_graph:
        # One request over all graphs instead of two: facts with a label are in a graph of their own, those without one
        # in the default graph, and a server matches both by one selector.
        anywhere = QuadPattern(*triple_nodes(pattern), ANYWHERE)
        group = tuple(FormPlace(pattern, anywhere if pattern in in_graph else pattern) for pattern in form.patterns)
        return FactForm(form, (group,), anywhere)
    group = tuple(FormPlace(pattern, pattern) for pattern in form.patterns)
    if plain in form.patterns:
        return FactForm(form, (group,), plain)
    return FactForm(form, ((FormPlace(plain, plain),), group), plain)


def _in_graph(pattern: TriplePattern, graph: Node, style: Style | FactGraphs) -> FactForm:
    """The requests for a pattern's quads in a named graph, with the graph's label if graphs may have labels."""
    plain = QuadPattern(*triple_nodes(pattern), graph)
    if isinstance(style, FactGraphs) or fact_graphs(style) is FactGraphs.DEFAULT:
        return FactForm(AnnotatedForm((plain,), (), None, None), ((FormPlace(plain, plain),),), plain)
    form = method(style.method).form(pattern, 0, style)
    own = form.own[0].graph
    requested = [QuadPattern(*(graph if node == own else node for node in pattern.nodes)) for pattern in form.patterns]
    return FactForm(form, (tuple(FormPlace(pattern_, pattern_) for pattern_ in requested),), plain, leads=True)


def facts_of(quads: Iterable[Quad], style: Style | FactGraphs) -> list[Fact]:
    """The facts that quads represent; without a style, their triples as static facts."""
    having = quads if fact_graphs(style) is FactGraphs.ANY else [quad for quad in quads if quad[3] == DEFAULT]
    if isinstance(style, FactGraphs):
        return [Fact(triple) for triple in dict.fromkeys(quad[:3] for quad in having)]
    return method(style.method).facts(having, style)


def named_of(quads: Iterable[Quad], style: Style | FactGraphs) -> list[Quad]:
    """The quads of the data's own named graphs; if annotations use graphs, those are the graphs without a label."""
    if isinstance(style, FactGraphs) or fact_graphs(style) is FactGraphs.DEFAULT:
        return [quad for quad in quads if quad[3] != DEFAULT]
    read = read_labels(quads, style)
    return [quad for quad in read.others if quad[3] != DEFAULT and not read.of(quad[3])]


def terms_at(nodes: tuple[Node, ...], variable: Var, terms: Iterable[TermTuple]) -> frozenset[Term]:
    """The terms of a variable in the triples or quads that match nodes."""
    place = nodes.index(variable)
    return frozenset(term[place] for term in matching_terms(nodes, terms))


def bound_terms(pattern: QuadPattern, quads: Iterable[Quad]) -> dict[Var, frozenset[Term]]:
    """The terms of a pattern's variables in the quads that match it."""
    nodes, quads_ = pattern.nodes, pattern_quads(pattern, quads)
    places_of = {variable: nodes.index(variable) for variable in pattern.variables}
    return {variable: frozenset(quad[place] for quad in quads_) for variable, place in places_of.items()}


MAX_SEEDS: Final = 1000
"""Values up to which a pattern is restricted; with more it is fetched whole."""

ALL: Final = QuadPattern(Var("s"), Var("p"), Var("o"), ANYWHERE)
"""The pattern of all quads of a data set."""

FragmentKey: TypeAlias = tuple[QuadPattern, Var | None]
"""The key of a fragment: its pattern, and the variable whose values restrict it."""


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """The facts read from one source, its time (ms) in the last response, and until when all of them are fresh.

    ``until`` is ``None`` if not stated; ``named`` are quads of the data's own named graphs.
    """

    facts: tuple[Fact, ...]
    at: int
    until: int | None
    named: tuple[Quad, ...] = ()


@dataclass(frozen=True, slots=True)
class HeldFragment:
    """Quads of a pattern, only those with ``terms`` for the key's variable, if any; ``parts`` are the responses."""

    key: FragmentKey
    terms: frozenset[Term]
    quads: frozenset[Quad]
    parts: tuple[FetchedQuads, ...]
    _by: dict[Term, list[Quad]] = field(default_factory=dict, compare=False, repr=False)
    """The quads by predicate, filled when first needed."""

    def of(self, pattern: QuadPattern) -> list[Quad]:
        """The quads of the fragment that match a pattern."""
        if isinstance(pattern.predicate, Var) or self.key[0].predicate == pattern.predicate:
            return pattern_quads(pattern, self.quads)
        # A fragment of all quads is asked once for each pattern of the query.
        if not self._by:
            for quad in self.quads:
                self._by.setdefault(quad[1], []).append(quad)
        return pattern_quads(pattern, self._by.get(pattern.predicate, ()))

    def moved(self, changed: FetchedChange) -> "HeldFragment":
        """The fragment after a change of the data set."""
        added, removed = (frozenset(self.having(quads)) for quads in (changed.added, changed.removed))
        # One response in place of all earlier ones: the fragment as a whole is of the change's version now.
        part = FetchedQuads((), changed.at, changed.until, None, changed.version)
        if not added and not removed:
            return replace(self, parts=(part,))
        # Removed first: a quad that is in both sets was removed and added again (`HeardChanges.since`).
        return replace(self, quads=self.quads - removed | added, parts=(part,), _by={})

    def having(self, quads: Iterable[Quad]) -> list[Quad]:
        """Those of some quads that belong to the fragment."""
        pattern, variable = self.key
        quads_ = pattern_quads(pattern, quads)
        if variable is None:
            return quads_
        place = pattern.nodes.index(variable)
        return [quad for quad in quads_ if quad[place] in self.terms]


@dataclass(slots=True)
class SourceReading:
    """One reading of a source: ``fragments`` are not fetched again, ``came`` are the responses of this reading.

    ``lost``: the server no longer has the changes since the version of the known fragments.
    """

    source: LinkedDataSource
    fragments: dict[FragmentKey, HeldFragment] = field(default_factory=dict)
    came: list[FetchedQuads] = field(default_factory=list)
    lost: bool = False

    async def cover(self, asking: FactForm, values: KnownValues) -> dict[FragmentKey, HeldFragment]:
        """Fetch fragments with a pattern's facts and labels, at least those of facts with the known values."""
        fragments: dict[FragmentKey, HeldFragment] = {}
        for group in asking.groups:
            known: dict[Var, frozenset[Term]] = dict(values)
            waiting = list(group)
            while waiting:
                # Chosen anew after each response, as its terms may make another pattern the cheapest one.
                place = min(asking.next(waiting), key=partial(self._rank, known))
                waiting.remove(place)
                fragment = await self._fetch(place.request, known)
                quads = [] if fragment is None else fragment.of(place.request)
                if fragment is not None:
                    fragments[fragment.key] = fragment
                for variable, terms in (bound_terms(place.pattern, quads) | asking.computed(place, quads)).items():
                    # Only intersections: a value has to occur in every pattern of the group.
                    known[variable] = known.get(variable, terms) & terms
        return fragments

    async def take_all(self, predicates: frozenset[Term]) -> None:
        """Fetch all that has one of these predicates; without any, everything."""
        variable = Var("p") if predicates else None
        await self._more((ALL, variable), predicates)

    async def _fetch(self, pattern: QuadPattern, known: KnownValues) -> HeldFragment | None:
        """The fragment of a pattern, restricted by known values; ``None`` if none can match."""
        if (fragment := self._there(pattern)) is not None:
            return fragment
        variable = _narrowest(pattern, known)
        # With so many values the requests cost more than reading everything.
        if variable is None or len(known[variable]) > MAX_SEEDS:
            return await self._more((pattern, None), frozenset())
        return await self._more((pattern, variable), known[variable]) if known[variable] else None

    def _there(self, pattern: QuadPattern) -> HeldFragment | None:
        """The fragment that already has all quads of a pattern; ``None`` without one."""
        for key in ((pattern, None), (ALL, None)):
            if key in self.fragments:
                return self.fragments[key]
        some = self.fragments.get((ALL, Var("p")))
        return some if some is not None and pattern.predicate in some.terms else None

    async def _more(self, key: FragmentKey, terms: frozenset[Term]) -> HeldFragment:
        """The fragment of a key; missing parts are fetched."""
        pattern, variable = key
        fragment = self.fragments.get(key) or HeldFragment(key, frozenset(), frozenset(), ())
        # Sorted, so that equal polls make equal addresses, which caches between here and the server can answer.
        missing = sorted(terms - fragment.terms)
        if missing or not fragment.parts:
            # Only terms that are new: the quads of the others are there already.
            seeds = [] if variable is None else [{variable: term} for term in missing]
            fetched = await self.source.fetch(pattern, seeds)
            self.came.append(fetched)
            read = HeldFragment(
                key, fragment.terms | terms, fragment.quads.union(fetched.quads), (*fragment.parts, fetched)
            )
            self.fragments[key] = read
        return self.fragments[key]

    def _rank(self, known: KnownValues, place: FormPlace) -> int:
        """The sort key of a place: known fragments first, then few values, then few variables."""
        if self._there(place.request) is not None:
            return 0
        variable = _narrowest(place.request, known)
        return MAX_SEEDS * (1 + len(place.request.variables)) if variable is None else len(known[variable])


def _narrowest(pattern: QuadPattern, known: KnownValues) -> Var | None:
    """The pattern's variable with the fewest known values."""
    variables = [variable for variable in pattern.variables if variable in known]
    return min(variables, key=lambda variable: len(known[variable]), default=None)


def quads_of(fragments: Iterable[HeldFragment]) -> dict[Quad, None]:
    """All quads of fragments, each once."""
    return {quad: None for fragment in fragments for quad in fragment.quads}


def parts_of(fragments: Iterable[HeldFragment]) -> Iterator[FetchedQuads]:
    """The responses that fragments consist of."""
    return (part for fragment in fragments for part in fragment.parts)


def versions(parts: Iterable[FetchedQuads]) -> frozenset[str]:
    """The stated versions of the data set in responses."""
    return frozenset(part.version for part in parts if part.version is not None)


def predicates_of(forms: Sequence[FactForm]) -> frozenset[Term]:
    """The predicates of all requested patterns; empty if one of them is a variable."""
    predicates = {place.request.predicate for form in forms for group in form.groups for place in group}
    return (
        frozenset() if any(isinstance(predicate, Var) for predicate in predicates) else frozenset(map(str, predicates))
    )
