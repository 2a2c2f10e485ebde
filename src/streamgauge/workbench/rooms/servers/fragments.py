"""The pages of a fragments server: its data sets, the facts of a pattern with their validity, past states."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlencode

import httpx
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from streamgauge.formats.streams.properties import PREFIXES
from streamgauge.model.algebra import Node, TriplePattern, Var
from streamgauge.model.fact import Fact
from streamgauge.model.terms import RDF_TYPE, Term, Triple, is_iri
from streamgauge.servers.fragments import ANYWHERE, Quad, QuadPattern, form_value
from streamgauge.servers.fragments.annotations import AnnotatedForm, method, methods, triple_nodes
from streamgauge.servers.fragments.client import Binding, LinkedDataError, read_quads
from streamgauge.servers.fragments.client.pages import PageResponse
from streamgauge.servers.fragments.client.sources import gather_all, match_bindings, open_source, restrictions
from streamgauge.servers.fragments.client.sources.fragments import FragmentsSource
from streamgauge.servers.fragments.labels import VOCABULARIES, Label, LabelError, Style
from streamgauge.servers.fragments.live_queries.fact_forms import facts_of
from streamgauge.servers.fragments.pages.dataset import read_time
from streamgauge.servers.fragments.pages.terms import TermError, read_graph, read_node
from streamgauge.servers.http.replies import clipped
from streamgauge.workbench.addresses import HostRefusedError
from streamgauge.workbench.pages import page
from streamgauge.workbench.rooms.servers.connections import NamedServer, NamedServers
from streamgauge.workbench.terms import shown_term, shown_time

SPAN_MS: Final = 3_600_000
"""How far the page steps back in time where no fact has a time."""

NEVER: Final = 2**62
"""The end (ms) of a fact that has none."""

NARROWED: Final = 60
"""Maximum requests for the times of a page's facts; servers without bindings need one per fact."""

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
    """Reads fragments of a data set, current or ``at`` an instant (Memento)."""

    source: FragmentsSource
    at: str = ""

    def address(self, reference: str) -> str:
        """The address of a reference, where links of the data set may lead; RefusedAddressError."""
        link_ = self.source.pages.reach.link(self.source.address, reference)
        return str(httpx.URL(link_).copy_set_param("at", self.at)) if self.at else link_

    async def leaf(self, reference: str) -> PageResponse:
        """Fetch one page; LinkedDataError."""
        return await self.source.pages.leaf(self.address(reference))

    async def joining(self, pattern: QuadPattern, seeds: Sequence[Binding]) -> tuple[Quad, ...]:
        """The quads of a pattern that join with one of the seeds, which are limited in number."""
        addresses, narrow = self.source.addresses, restrictions(pattern, seeds)
        if not addresses.has(pattern):
            return ()
        if narrow and all(narrow):
            references = addresses.narrowed(pattern, narrow)
        else:  # terms that a form takes, but not in bindings: triple terms
            references = [addresses.whole(pattern.bound(seed)) for seed in seeds]
        targets = [self.address(reference) for reference in dict.fromkeys(references[:NARROWED])]
        leaves = await gather_all(self.source.pages.all(address_) for address_ in targets)
        return tuple(quad for leaves_found in leaves for leaf in leaves_found for quad in self.quads(leaf))

    def quads(self, leaf: PageResponse) -> tuple[Quad, ...]:
        """The data of a page, the default graph by its own name."""
        default = self.source.addresses.default
        return tuple((*quad[:3], "") if quad[3] == default else quad for quad in leaf.page.data)


async def open_data_set(server: NamedServer, address: str) -> FragmentsSource:
    """The data set at an address of a server; LinkedDataError for another origin, or if it is not a fragment."""
    within = server.web.reach(server.address)
    source = await open_source(within.link(server.address, address), server.web)
    if not isinstance(source, FragmentsSource):
        raise LinkedDataError(
            address, "has no form that asks by subject, predicate and object: it is not data set of fragments"
        )
    return source


async def timed_facts(
    source: FragmentsSource, pattern: QuadPattern, style: Style | None, at: str = "", following: str = ""
) -> TimedFacts:
    """The facts on a page of a pattern's fragment, with their times: the page at ``following``, else the first."""
    reader = PastReader(source, at)
    first = await reader.leaf(following or source.addresses.whole(pattern))
    quads = reader.quads(first)
    facts = {quad[:3]: () for quad in quads} if style is None else await _with_times(reader, pattern, quads, style)
    return TimedFacts(facts, quads, first.page.count, first.page.following, style)


async def _with_times(
    reader: PastReader, pattern: QuadPattern, quads: tuple[Quad, ...], style: Style
) -> dict[Triple, tuple[tuple[int | None, int | None], ...]]:
    """The times of facts: of a page's quads, and of statements that annotate facts of the pattern."""
    form = method(style.method).form(TriplePattern(*pattern.nodes[:3]), 0, style)
    # Some methods keep the fact itself in the data, others only statements about it, which are another fragment.
    wanted, read = form.own[0].nodes[:3] == pattern.nodes[:3], list(quads)
    if not wanted:
        read += reader.quads(await reader.leaf(reader.source.addresses.whole(replace(form.own[0], graph=ANYWHERE))))
    read += await _annotations(reader, form, read)
    times: dict[Triple, list[tuple[int | None, int | None]]] = {}
    for fact in facts_of(dict.fromkeys(read), style):
        if _shown(fact, form, quads, pattern):
            times.setdefault(fact.triple, []).append((fact.initial, fact.final))
    return {triple: tuple(dict.fromkeys(time_)) for triple, time_ in times.items()}


def _shown(fact: Fact, form: AnnotatedForm, quads: Sequence[Quad], pattern: QuadPattern) -> bool:
    """Whether a fact belongs to the page or matches the pattern, and is not part of an annotation."""
    triple = fact.triple
    if any(quad[:3] == triple for quad in quads):
        return not (fact.static and _is_annotation(triple, form))
    plain = QuadPattern(*pattern.nodes[:3])
    return not fact.static and bool(match_bindings(plain, [(*triple, "")]))


def _is_annotation(triple: Triple, form: AnnotatedForm) -> bool:
    predicates = {
        pattern.predicate for pattern in (*form.own[1:], *form.label) if not isinstance(pattern.predicate, Var)
    }
    return triple[1] in predicates


async def _annotations(reader: PastReader, form: AnnotatedForm, quads: Sequence[Quad]) -> list[Quad]:
    """The quads of a form that join with those of a page, pattern by pattern."""
    rows, read = [dict(binding) for binding in match_bindings(form.own[0], quads)], list[Quad]()
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
    # A hash join: by the values of the shared variables, other rows are looked up rather than searched.
    shared = [name for name in (more[0] if more else ()) if all(name in row for row in rows)]
    table: dict[tuple[Term, ...], list[Binding]] = {}
    for other in more:
        table.setdefault(tuple(other[name] for name in shared), []).append(other)
    return [{**row, **other} for row in rows for other in table.get(tuple(row[name] for name in shared), ())]


async def found_style(source: FragmentsSource) -> Style | None:
    """How a data set writes the times of its facts, by the labels that are in it; ``None`` when it has none."""
    for vocabulary in VOCABULARIES.values():
        # Intervals first: their label implies an end as well, which alone would be taken for an expiration.
        flat = (Label.INTERVAL, vocabulary.interval or vocabulary.initial)
        for label, predicate in (flat, (Label.EXPIRATION, vocabulary.expiration), (Label.INSTANT, vocabulary.instant)):
            leaf = await PastReader(source).leaf(source.addresses.whole(QuadPattern(Var("s"), predicate, Var("o"))))
            named = [quad[0] for quad in leaf.page.data if quad[1] == predicate]
            if named:
                return Style(await _method(source, named[0], vocabulary.singleton), label, vocabulary)
    return None


async def _method(source: FragmentsSource, subject: Term, singleton: Term) -> str:
    """The annotation method by which a labelled subject represents facts."""
    if await source.count(QuadPattern(Var("s"), Var("p"), Var("o"), subject)):
        return "graphs"
    about = await source.fetch(QuadPattern(subject, Var("p"), Var("o")))
    methods = {**_STATEMENT_PARTS, singleton: "singleton"}
    return next((methods[quad[1]] for quad in about.quads if quad[1] in methods), "implicit")


def short_prefixes(terms: Iterable[Term]) -> dict[str, str]:
    """Prefixes for the IRIs of a page: well-known ones in use, and generated ones for namespaces that occur twice."""
    spaces = Counter(match[1] for term in terms if is_iri(term) and (match := _SPACE.fullmatch(term)))
    # Reversed, so that of several prefixes for one namespace the first is used.
    known = {space: prefix for prefix, space in reversed(PREFIXES.items())}
    used = {known[space]: space for space in spaces if space in known}
    for space, uses in spaces.most_common():
        if space not in known and uses > 1:
            # The last part of the namespace that is a word: http://example.org/train# gets the prefix train.
            segment = _SEGMENT.search(space)
            name = segment[1].lower() if segment else "n"
            used[
                next(
                    candidate for candidate in (name, *(f"{name}{n}" for n in range(2, 1000))) if candidate not in used
                )
            ] = space
    return dict(sorted(used.items()))


PLACES: Final = ("subject", "predicate", "object", "graph")
_VOID: Final = "<http://rdfs.org/ns/void#Dataset>"
_SEARCH: Final = "<http://www.w3.org/ns/hydra/core#search>"
_REFUSED: Final = (LinkedDataError, HostRefusedError, LabelError)


@dataclass(frozen=True, slots=True)
class FactCell:
    """A term of a fact: in short, in full, and the facts that have the same term there."""

    place: str
    short: str
    full: str
    link: str


@dataclass(frozen=True, slots=True)
class FactBar:
    """An interval on a lane in parts of a thousand; ``words`` say the interval, open ends go over the lane's end."""

    left: int
    width: int
    words: str


@dataclass(frozen=True, slots=True)
class FactLane:
    """A fact and its validity; without bars it is always valid."""

    cells: tuple[FactCell, ...]
    bars: tuple[FactBar, ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    """The lanes of facts between two times (ms; ``None`` where no time is known); ``now`` in parts of a thousand."""

    lanes: tuple[FactLane, ...]
    begin: int | None
    end: int | None
    now: int | None


class FragmentHandlers:
    """The handlers, one per route."""

    def __init__(self, servers: NamedServers) -> None:
        self._servers = servers

    @property
    def routes(self) -> list[BaseRoute]:
        """The routes, below the room's name."""
        return [
            Route("/fragments/{key}/", self.data_sets, methods=["GET"]),
            Route("/fragments/{key}/facts", self.facts, methods=["GET"]),
        ]

    async def data_sets(self, request: Request) -> Response:
        """The data sets of a server."""
        server, error, addresses = self._servers.of(request, "fragments"), "", list[str]()
        try:
            addresses = await data_sets(server)
        except _REFUSED as refused:
            error = clipped(str(refused))
        return page(request, "servers_fragments.html.j2", "Fragments", server=server, found=addresses, error=error)

    async def facts(self, request: Request) -> Response:
        """The facts of a pattern, with their validity."""
        server, parameters = self._servers.of(request, "fragments"), dict(request.query_params)
        address = parameters.get("set", server.address)
        values: dict[str, object] = {
            "error": "",
            "timeline": None,
            "prefixes": {},
            "found": None,
            "next": "",
            "turns": (),
        }
        try:
            source = await open_data_set(server, address)
            style = await _style(server, source, parameters)
            now = server.web.time(server.address)
            pattern, at = read_pattern(parameters), parameters.get("at", "").strip()
            facts_ = await timed_facts(source, pattern, style, at, parameters.get("page", ""))
            values |= _values(server, parameters, facts_, now)
        except (*_REFUSED, TermError) as refused:
            values["error"] = clipped(str(refused))
        choices = {"methods": methods(), "labels": [label.value for label in Label], "vocabularies": list(VOCABULARIES)}
        values |= {"server": server, "given": parameters, "address": address, "places": PLACES, **choices}
        return page(request, "servers_facts.html.j2", "Facts", 400 if values["error"] else 200, **values)


def _values(server: NamedServer, parameters: Mapping[str, str], timed_facts: TimedFacts, now: int) -> dict[str, object]:
    """The variables of a page of facts."""
    prefixes = short_prefixes(term for triple in timed_facts.facts for term in triple)
    named = tuple(prefixes.items())
    link = _Linked(server, parameters, named)
    timeline_ = timeline(timed_facts, now, link)
    following = "" if timed_facts.following is None else link.page(timed_facts.following)
    at = read_time(parameters["at"].strip(), now) if parameters.get("at", "").strip() else None
    turns = _turns(timeline_, now, at, link)
    return {
        "timeline": timeline_,
        "prefixes": prefixes,
        "found": timed_facts,
        "next": following,
        "turns": turns,
        "shown_time": shown_time,
    }


def _turns(shown: Timeline, now: int, at: int | None, link: "_Linked") -> list[tuple[str, str]]:
    """Links to earlier and later states, by half of the displayed period, and to the present."""
    span = SPAN_MS if shown.begin is None or shown.end is None else max(1000, (shown.end - shown.begin) // 2)
    here = now if at is None else at
    turns = [(f"Earlier: {shown_time(here - span)}", link.instant(here - span))]
    if at is not None:
        turns += [(f"Later: {shown_time(at + span)}", link.instant(at + span))] if at + span < now else []
        turns.append(("Now", link.instant(None)))
    return turns


async def data_sets(server: NamedServer) -> list[str]:
    """The sorted addresses of a server's data sets: those on its first page, or that page itself."""
    within = server.web.reach(server.address)
    response = await server.web.get(server.address, within)
    quads = read_quads(response, server.web.limits.quads)
    named = {s[1:-1] for s, p, o, _ in quads if p == _SEARCH or (p == RDF_TYPE and o == _VOID)}
    addresses = set[str]()
    for name in named:
        try:
            addresses.add(within.link(server.address, name))
        except LinkedDataError:
            continue  # of another origin, which is not asked
    return sorted(addresses)


async def _style(server: NamedServer, source: FragmentsSource, parameters: Mapping[str, str]) -> Style | None:
    """The style of time annotations: the chosen one, else that of the data set, which is detected once."""
    if source.address not in server.styles:
        server.styles[source.address] = await found_style(source)
    style = server.styles[source.address]
    method, label, vocabulary = (parameters.get(name, "") for name in ("method", "label", "vocabulary"))
    if not (method or label or vocabulary):
        return style
    style = style or Style()
    if method not in ("", *methods()) or label not in ("", *Label) or vocabulary not in ("", *VOCABULARIES):
        raise LinkedDataError(source.address, "is asked in a way that is not known: choose one of the method's names")
    return replace(
        style,
        method=method or style.method,
        label=Label(label) if label else style.label,
        vocabulary=VOCABULARIES[vocabulary] if vocabulary else style.vocabulary,
    )


def read_pattern(parameters: Mapping[str, str]) -> QuadPattern:
    """The pattern in a form's fields; an empty field matches any term. TermError names an invalid field."""
    nodes: list[Node] = [Var("s"), Var("p"), Var("o"), ANYWHERE]
    for place, name in enumerate(PLACES):
        text = expanded(parameters.get(name, "").strip())
        node = read_graph(text) if name == "graph" else read_node(text)
        if node is not None and not isinstance(node, Var):
            nodes[place] = node
    return QuadPattern(*nodes)


def expanded(text: str) -> str:
    """A prefixed name with a well-known prefix as an IRI; any other text unchanged."""
    # `http://example.org/` has the form of a prefixed name, and is none.
    prefix, _, local = text.partition(":")
    return f"{PREFIXES[prefix]}{local}" if prefix in PREFIXES and not local.startswith("//") else text


class _Linked:
    """Links within a page of facts: the same choices with another pattern or page."""

    def __init__(self, server: NamedServer, settings: Mapping[str, str], prefixes: tuple[tuple[str, str], ...]) -> None:
        self._path = f"/servers/fragments/{server.key}/facts"
        self._kept = {
            name: settings[name] for name in ("set", "at", "method", "label", "vocabulary") if settings.get(name)
        }
        self._given, self._prefixes = settings, prefixes

    def cell(self, place: str, term: Term) -> FactCell:
        """A term with the facts that have the same term there."""
        full = form_value(term)
        link = f"{self._path}?{urlencode({**self._kept, place: full})}"
        return FactCell(place, shown_term(term, self._prefixes), full, link)

    def page(self, address: str) -> str:
        """The page of the same choices at an address of the fragment."""
        return f"{self._path}?{urlencode({**self._kept, **self._pattern(), 'page': address})}"

    def instant(self, at: int | None) -> str:
        """The same choices as they were at an instant (ms), or are now."""
        kept = {name: value for name, value in self._kept.items() if name != "at"}
        return f"{self._path}?{urlencode({**kept, **self._pattern(), **({} if at is None else {'at': at})})}"

    def _pattern(self) -> dict[str, str]:
        return {name: self._given[name] for name in PLACES if self._given.get(name)}


def timeline(timed_facts: TimedFacts, now: int, link: _Linked) -> Timeline:
    """The facts as lanes over all times that they name, in the order of their times."""
    times = [time for spans in timed_facts.facts.values() for span in spans for time in span if time is not None]
    begin, end = _span(times, now)
    lanes = []
    for triple, spans in sorted(timed_facts.facts.items(), key=_lane_order):
        cells = tuple(link.cell(place, term) for place, term in zip(PLACES, triple, strict=False))
        timed = [span for span in spans if span != (None, None)]
        lanes.append(FactLane(cells, tuple(_bars(timed, begin, end)) if times else ()))
    at = _place(now, begin, end)
    return Timeline(tuple(lanes), begin if times else None, end if times else None, at if 0 <= at <= 1000 else None)


def _lane_order(
    fact: tuple[Triple, Sequence[tuple[int | None, int | None]]],
) -> tuple[bool, list[tuple[int, int]], Triple]:
    """The sort key of facts: begin and end, always valid ones last, then terms."""
    triple, spans = fact
    timed = sorted((initial or 0, final or NEVER) for initial, final in spans if (initial, final) != (None, None))
    # False sorts before True: facts that are always valid come last.
    return not timed, timed, triple


def _span(times: Sequence[int], now: int) -> tuple[int, int]:
    """The times that a timeline shows: those of its facts, and now where that is not far from them."""
    if not times:
        return now, now + 1
    low, high = min(times), max(times)
    span = max(high - low, 1000)
    # Now is shown if it is no farther from the facts than they are apart: else they would be a speck at one end.
    near = [now] if low - span <= now <= high + span else []
    low, high = min(low, *near, low), max(high, *near, high)
    # A worked example: facts from 100 to 160 s, and now is 190 s. Now is at most 60 s from them, so the page shows 100
    # to 190 s and a margin of 4.5 s on both sides.
    margin = max((high - low) // 20, 500)
    return low - margin, high + margin


def _bars(spans: Sequence[tuple[int | None, int | None]], begin: int, end: int) -> Iterator[FactBar]:
    for initial, final in sorted(spans, key=lambda span: (span[0] or begin, span[1] or end)):
        left = 0 if initial is None else _place(initial, begin, end)
        right = 1000 if final is None else _place(final, begin, end)
        # At least 4 of 1,000 wide, so that a moment is seen.
        yield FactBar(left, max(4, right - left), _words(initial, final))


def _place(time: int, begin: int, end: int) -> int:
    return round(1000 * (time - begin) / (end - begin))


def _words(initial: int | None, final: int | None) -> str:
    words = [] if initial is None else [f"from {shown_time(initial)}"]
    return " ".join([*words, *([] if final is None else [f"until {shown_time(final)}"])])
