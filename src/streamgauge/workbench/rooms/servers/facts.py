"""The facts of a fragments server and when each holds, read from the annotations beside them."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import httpx

from streamgauge.formats.streams.observations import PREFIXES
from streamgauge.model.algebra import Node, TriplePattern, Var
from streamgauge.model.fact import Fact
from streamgauge.model.terms import Term, Triple, is_iri
from streamgauge.servers.fragments import ANYWHERE, Quad, QuadPattern
from streamgauge.servers.fragments.annotations import AnnotatedForm, method, triple_nodes
from streamgauge.servers.fragments.client import Binding, SourceError
from streamgauge.servers.fragments.client.pages import PageResponse
from streamgauge.servers.fragments.client.sources import gather_all, match_bindings, open_source, restrictions
from streamgauge.servers.fragments.client.sources.fragments import FragmentsSource
from streamgauge.servers.fragments.labels import VOCABULARIES, Label, Style
from streamgauge.servers.fragments.live_queries.fact_forms import facts_of
from streamgauge.workbench.rooms.servers.connections import NamedServer

NARROWED: Final = 60
"""Requests for the times of the facts of one page: a server without bindings is asked for each fact."""

ANY: Final = TriplePattern(Var("s"), Var("p"), Var("o"))
_STATEMENT_PARTS: Final = {
    "<http://www.w3.org/1999/02/22-rdf-syntax-ns#subject>": "reification",
    "<http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies>": "reifiers",
}
_SPACE: Final = re.compile(r"<([^<>]*[#/])([\w-]+)>")
_SEGMENT: Final = re.compile(r"([A-Za-z][A-Za-z0-9-]*)[#/]$")


@dataclass(frozen=True, slots=True)
class TimedFacts:
    """Facts with their times by triple (``None`` is no bound), the quads of the page, their count on all pages.

    ``following`` is the next page's reference, ``style`` how the times are written.
    """

    facts: Mapping[Triple, tuple[tuple[int | None, int | None], ...]]
    quads: tuple[Quad, ...]
    count: int | None
    following: str | None
    style: Style | None


@dataclass(frozen=True, slots=True)
class PastReader:
    """Reads fragments of a data set, as they are or as they were ``at`` an instant, which the server is told."""

    source: FragmentsSource
    at: str = ""

    def address(self, reference: str) -> str:
        """The address of a reference, where links of the data set may lead; RefusedAddressError."""
        found = self.source.pages.reach.link(self.source.address, reference)
        return str(httpx.URL(found).copy_set_param("at", self.at)) if self.at else found

    async def leaf(self, reference: str) -> PageResponse:
        """One page; SourceError."""
        return await self.source.pages.leaf(self.address(reference))

    async def joining(self, pattern: QuadPattern, seeds: Sequence[Binding]) -> tuple[Quad, ...]:
        """The quads of a pattern that join with one of the seeds, of as many as are asked for."""
        addresses, narrow = self.source.addresses, restrictions(pattern, seeds)
        if not addresses.has(pattern):
            return ()
        if narrow and all(narrow):
            references = addresses.narrowed(pattern, narrow)
        else:  # terms that a form takes, but not in bindings: triple terms
            references = [addresses.whole(pattern.bound(seed)) for seed in seeds]
        asked = [self.address(each) for each in dict.fromkeys(references[:NARROWED])]
        leaves = await gather_all(self.source.pages.all(each) for each in asked)
        return tuple(quad for found in leaves for leaf in found for quad in self.quads(leaf))

    def quads(self, leaf: PageResponse) -> tuple[Quad, ...]:
        """The data of a page, the default graph by its own name."""
        default = self.source.addresses.default
        return tuple((*quad[:3], "") if quad[3] == default else quad for quad in leaf.page.data)


async def open_data_set(server: NamedServer, address: str) -> FragmentsSource:
    """The data set at an address of a server; SourceError for another origin, or for what is no fragments."""
    within = server.web.reach(server.address)
    found = await open_source(within.link(server.address, address), server.web)
    if not isinstance(found, FragmentsSource):
        raise SourceError(
            address, "has no form that asks by subject, predicate and object: it is no data set of fragments"
        )
    return found


async def timed_facts(
    source: FragmentsSource, pattern: QuadPattern, style: Style | None, at: str = "", following: str = ""
) -> TimedFacts:
    """The facts of a page of a pattern's fragment, the first unless its address is ``following``, with their times."""
    reader = PastReader(source, at)
    first = await reader.leaf(following or source.addresses.whole(pattern))
    quads = reader.quads(first)
    found = {quad[:3]: () for quad in quads} if style is None else await _with_times(reader, pattern, quads, style)
    return TimedFacts(found, quads, first.page.count, first.page.following, style)


async def _with_times(
    reader: PastReader, pattern: QuadPattern, quads: tuple[Quad, ...], style: Style
) -> dict[Triple, tuple[tuple[int | None, int | None], ...]]:
    """The times of facts: of the quads of a page, and of the statements that stand for facts of the pattern."""
    form = method(style.method).form(TriplePattern(*pattern.nodes[:3]), 0, style)
    wanted, read = form.own[0].nodes[:3] == pattern.nodes[:3], list(quads)
    if not wanted:
        read += reader.quads(await reader.leaf(reader.source.addresses.whole(replace(form.own[0], graph=ANYWHERE))))
    read += await _annotations(reader, form, read)
    times: dict[Triple, list[tuple[int | None, int | None]]] = {}
    for fact in facts_of(dict.fromkeys(read), style):
        if _shown(fact, form, quads, pattern):
            times.setdefault(fact.triple, []).append((fact.initial, fact.final))
    return {triple: tuple(dict.fromkeys(found)) for triple, found in times.items()}


def _shown(fact: Fact, form: AnnotatedForm, quads: Sequence[Quad], pattern: QuadPattern) -> bool:
    """Whether a fact is of the page, or stands for what the pattern asks: no part of an annotation."""
    triple = fact.triple
    if any(each[:3] == triple for each in quads):
        return not (fact.static and _is_annotation(triple, form))
    plain = QuadPattern(*pattern.nodes[:3])
    return not fact.static and bool(match_bindings(plain, [(*triple, "")]))


def _is_annotation(triple: Triple, form: AnnotatedForm) -> bool:
    predicates = {each.predicate for each in (*form.own[1:], *form.label) if not isinstance(each.predicate, Var)}
    return triple[1] in predicates


async def _annotations(reader: PastReader, form: AnnotatedForm, quads: Sequence[Quad]) -> list[Quad]:
    """The quads of a form that join with those of a page, pattern by pattern."""
    rows, read = [dict(each) for each in match_bindings(form.own[0], quads)], list[Quad]()
    for link in form.links:
        for row in rows:
            subject, predicate, item = (_term(node, row) for node in triple_nodes(link.pattern))
            row[link.variable] = link.term((subject, predicate, item))
    for pattern in (*form.own[1:], *form.label):
        came = await reader.joining(pattern, rows)
        read += came
        rows = _extended(rows, match_bindings(pattern, came))
    return read


def _term(node: Node, row: Binding) -> Term:
    return row[node] if isinstance(node, Var) else node


def _extended(rows: list[Binding], more: Sequence[Binding]) -> list[Binding]:
    """The rows with what agrees with them; rows with which nothing agrees have no annotation."""
    shared = [name for name in (more[0] if more else ()) if all(name in row for row in rows)]
    table: dict[tuple[Term, ...], list[Binding]] = {}
    for other in more:
        table.setdefault(tuple(other[name] for name in shared), []).append(other)
    return [{**row, **other} for row in rows for other in table.get(tuple(row[name] for name in shared), ())]


async def found_style(source: FragmentsSource) -> Style | None:
    """How a data set writes the times of its facts, by the labels that are in it; ``None`` when it has none."""
    for vocabulary in VOCABULARIES.values():
        flat = (Label.INTERVAL, vocabulary.interval or vocabulary.initial)
        for label, predicate in (flat, (Label.EXPIRATION, vocabulary.expiration), (Label.INSTANT, vocabulary.instant)):
            leaf = await PastReader(source).leaf(source.addresses.whole(QuadPattern(Var("s"), predicate, Var("o"))))
            named = [quad[0] for quad in leaf.page.data if quad[1] == predicate]
            if named:
                return Style(await _method(source, named[0], vocabulary.singleton), label, vocabulary)
    return None


async def _method(source: FragmentsSource, subject: Term, singleton: Term) -> str:
    """The annotation method by which a subject of labels stands for facts."""
    if await source.count(QuadPattern(Var("s"), Var("p"), Var("o"), subject)):
        return "graphs"
    about = await source.fetch(QuadPattern(subject, Var("p"), Var("o")))
    methods = {**_STATEMENT_PARTS, singleton: "singleton"}
    return next((methods[quad[1]] for quad in about.quads if quad[1] in methods), "implicit")


def short_prefixes(terms: Iterable[Term]) -> dict[str, str]:
    """Prefixes for IRIs of a page: those that are well known and used, and names of ours for spaces that come twice."""
    spaces = Counter(found[1] for term in terms if is_iri(term) and (found := _SPACE.fullmatch(term)))
    known = {space: prefix for prefix, space in reversed(PREFIXES.items())}
    used = {known[space]: space for space in spaces if space in known}
    for space, uses in spaces.most_common():
        if space not in known and uses > 1:
            segment = _SEGMENT.search(space)
            name = segment[1].lower() if segment else "n"
            used[next(each for each in (name, *(f"{name}{n}" for n in range(2, 1000))) if each not in used)] = space
    return dict(sorted(used.items()))
