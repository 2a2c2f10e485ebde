"""The pages of a fragments server: its data sets, facts of a pattern, when each holds, how it was at an instant."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from streamgauge.formats.streams.observations import PREFIXES
from streamgauge.model.algebra import Node, Var
from streamgauge.model.terms import RDF_TYPE, Term, Triple
from streamgauge.servers.fragments import ANYWHERE, QuadPattern, form_value
from streamgauge.servers.fragments.annotations import methods
from streamgauge.servers.fragments.client import SourceError, read_quads
from streamgauge.servers.fragments.client.sources.fragments import FragmentsSource
from streamgauge.servers.fragments.labels import VOCABULARIES, Label, LabelError, Style
from streamgauge.servers.fragments.pages import TermError, read_graph, read_node
from streamgauge.servers.http.replies import clipped
from streamgauge.workbench.addresses import HostRefusedError
from streamgauge.workbench.pages import page
from streamgauge.workbench.rooms.servers.connections import NamedServer, NamedServers
from streamgauge.workbench.rooms.servers.facts import (
    TimedFacts,
    found_style,
    open_data_set,
    short_prefixes,
    timed_facts,
)
from streamgauge.workbench.terms import shown_term, shown_time

PLACES: Final = ("subject", "predicate", "object", "graph")
_VOID: Final = "<http://rdfs.org/ns/void#Dataset>"
_SEARCH: Final = "<http://www.w3.org/ns/hydra/core#search>"
_REFUSED: Final = (SourceError, HostRefusedError, LabelError)


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
    """A fact and when it holds; without bars it always does."""

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
        server, error, found = self._servers.of(request, "fragments"), "", list[str]()
        try:
            found = await data_sets(server)
        except _REFUSED as refused:
            error = clipped(str(refused))
        return page(request, "servers_fragments.html.j2", "Fragments", server=server, found=found, error=error)

    async def facts(self, request: Request) -> Response:
        """The facts of a pattern, and when each holds."""
        server, given = self._servers.of(request, "fragments"), dict(request.query_params)
        address = given.get("set", server.address)
        values: dict[str, object] = {"error": "", "timeline": None, "prefixes": {}, "found": None, "next": ""}
        try:
            source = await open_data_set(server, address)
            style = await _style(server, source, given)
            now = server.web.time(server.address)
            pattern, at = read_pattern(given), given.get("at", "").strip()
            found = await timed_facts(source, pattern, style, at, given.get("page", ""))
            values |= _values(server, given, found, now)
        except (*_REFUSED, TermError) as refused:
            values["error"] = clipped(str(refused))
        choices = {"methods": methods(), "labels": [each.value for each in Label], "vocabularies": list(VOCABULARIES)}
        values |= {"server": server, "given": given, "address": address, "places": PLACES, **choices}
        return page(request, "servers_facts.html.j2", "Facts", 400 if values["error"] else 200, **values)


def _values(server: NamedServer, given: Mapping[str, str], found: TimedFacts, now: int) -> dict[str, object]:
    """The variables of a page of facts."""
    prefixes = short_prefixes(term for triple in found.facts for term in triple)
    named = tuple(prefixes.items())
    link = _Linked(server, given, named)
    timeline_ = timeline(found, now, link)
    following = "" if found.following is None else link.page(found.following)
    return {"timeline": timeline_, "prefixes": prefixes, "found": found, "next": following, "shown_time": shown_time}


async def data_sets(server: NamedServer) -> list[str]:
    """The addresses of a server's data sets, sorted: those that its first page names, or that page itself."""
    within = server.web.reach(server.address)
    response = await server.web.get(server.address, within)
    quads = read_quads(response, server.web.limits.quads)
    named = {s[1:-1] for s, p, o, _ in quads if p == _SEARCH or (p == RDF_TYPE and o == _VOID)}
    found = set[str]()
    for each in named:
        try:
            found.add(within.link(server.address, each))
        except SourceError:
            continue  # of another origin, which is not asked
    return sorted(found)


async def _style(server: NamedServer, source: FragmentsSource, given: Mapping[str, str]) -> Style | None:
    """How times are written: as was chosen, else as was found in the data set, which is looked for once."""
    if source.address not in server.styles:
        server.styles[source.address] = await found_style(source)
    style = server.styles[source.address]
    method, label, vocabulary = (given.get(name, "") for name in ("method", "label", "vocabulary"))
    if not (method or label or vocabulary):
        return style
    style = style or Style()
    if method not in ("", *methods()) or label not in ("", *Label) or vocabulary not in ("", *VOCABULARIES):
        raise SourceError(source.address, "is asked in a way that is not known: choose one of the method's names")
    return replace(
        style,
        method=method or style.method,
        label=Label(label) if label else style.label,
        vocabulary=VOCABULARIES[vocabulary] if vocabulary else style.vocabulary,
    )


def read_pattern(given: Mapping[str, str]) -> QuadPattern:
    """The pattern of a form's fields; an empty one stands for any term. TermError names the one that is none."""
    nodes: list[Node] = [Var("s"), Var("p"), Var("o"), ANYWHERE]
    for place, name in enumerate(PLACES):
        text = expanded(given.get(name, "").strip())
        found = read_graph(text) if name == "graph" else read_node(text)
        if found is not None and not isinstance(found, Var):
            nodes[place] = found
    return QuadPattern(*nodes)


def expanded(text: str) -> str:
    """A prefixed name with a well-known prefix as its IRI; any other text as it is."""
    prefix, _, local = text.partition(":")
    return f"{PREFIXES[prefix]}{local}" if prefix in PREFIXES and not local.startswith("//") else text


class _Linked:
    """Links within a page of facts: the same choices with another pattern or page."""

    def __init__(self, server: NamedServer, given: Mapping[str, str], prefixes: tuple[tuple[str, str], ...]) -> None:
        self._path = f"/servers/fragments/{server.key}/facts"
        self._kept = {name: given[name] for name in ("set", "at", "method", "label", "vocabulary") if given.get(name)}
        self._given, self._prefixes = given, prefixes

    def cell(self, place: str, term: Term) -> FactCell:
        """A term with the facts that have the same term there."""
        full = form_value(term)
        link = f"{self._path}?{urlencode({**self._kept, place: full})}"
        return FactCell(place, shown_term(term, self._prefixes), full, link)

    def page(self, address: str) -> str:
        """The page of the same choices at an address of the fragment."""
        pattern = {name: self._given[name] for name in PLACES if self._given.get(name)}
        return f"{self._path}?{urlencode({**self._kept, **pattern, 'page': address})}"


def timeline(found: TimedFacts, now: int, link: _Linked) -> Timeline:
    """The facts as lanes over all times that they name, sorted by subject, predicate and time."""
    times = [each for spans in found.facts.values() for span in spans for each in span if each is not None]
    begin, end = _span(times, now)
    lanes = []
    for triple, spans in sorted(found.facts.items(), key=_lane_order):
        cells = tuple(link.cell(place, term) for place, term in zip(PLACES, triple, strict=False))
        timed = [span for span in spans if span != (None, None)]
        lanes.append(FactLane(cells, tuple(_bars(timed, begin, end)) if times else ()))
    at = _place(now, begin, end)
    return Timeline(tuple(lanes), begin if times else None, end if times else None, at if 0 <= at <= 1000 else None)


def _lane_order(fact: tuple[Triple, Sequence[tuple[int | None, int | None]]]) -> tuple[Term, Term, list[int], Term]:
    triple, spans = fact
    return triple[0], triple[1], sorted(final or initial or 0 for initial, final in spans), triple[2]


def _span(times: Sequence[int], now: int) -> tuple[int, int]:
    """The times that a timeline shows: those of its facts, and now where that is not far from them."""
    if not times:
        return now, now + 1
    low, high = min(times), max(times)
    span = max(high - low, 1000)
    near = [now] if low - span <= now <= high + span else []
    low, high = min(low, *near, low), max(high, *near, high)
    margin = max((high - low) // 20, 500)
    return low - margin, high + margin


def _bars(spans: Sequence[tuple[int | None, int | None]], begin: int, end: int) -> Iterator[FactBar]:
    for initial, final in sorted(spans, key=lambda each: (each[0] or begin, each[1] or end)):
        left = 0 if initial is None else _place(initial, begin, end)
        right = 1000 if final is None else _place(final, begin, end)
        yield FactBar(left, max(4, right - left), _words(initial, final))


def _place(time: int, begin: int, end: int) -> int:
    return round(1000 * (time - begin) / (end - begin))


def _words(initial: int | None, final: int | None) -> str:
    said = [] if initial is None else [f"from {shown_time(initial)}"]
    return " ".join([*said, *([] if final is None else [f"until {shown_time(final)}"])])
