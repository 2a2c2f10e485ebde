"""RDF that states its times by a property: the elements of a graph of observations, or of named graphs.

Each element is the description of the node that has the time (docs/own-data.md):

- of a named graph whose name is the subject of the property: the whole graph;
- of a named graph in which all times are equal: the whole graph too;
- of any other subject with a time: its triples in its graph, with those of the blank nodes and of the objects of
  ``parts`` that are reachable from it.

Subjects of a file that belong to no element are static data, and a note lists them. In a message such triples belong
to every element.

Worked example, ``sosa:resultTime`` in one graph: of ``:o1 sosa:resultTime "2026-03-01T08:00:01Z" ; sosa:hasResult
[ :free 12 ]`` the element is the three triples, at 1772352001000 ms.

Properties are named by IRIs, or by prefixed names with the well-known prefixes or a query's own.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from typing import Final, NamedTuple

import pyoxigraph as ox

from streamgauge.formats.documents import Document, FormatError
from streamgauge.formats.instants import InstantError, Instants
from streamgauge.formats.streams.format import Item, Note, Read, Reading, Refuse, Relabel, Whole, number
from streamgauge.formats.streams.sorted_runs import in_order
from streamgauge.formats.syntaxes import BY_ENDING, parse_texts
from streamgauge.model.element import StreamElement
from streamgauge.model.phrases import counted
from streamgauge.model.terms import (
    REIFIES,
    XSD,
    Term,
    Triple,
    blank_nodes,
    datatype,
    is_iri,
    is_literal,
    is_triple,
    triple_parts,
)

PREFIXES: Final[dict[str, str]] = {
    "as": "https://www.w3.org/ns/activitystreams#",
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
    "dct": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "geo": "http://www.w3.org/2003/01/geo/wgs84_pos#",
    "om-owl": "http://knoesis.wright.edu/ssw/ont/sensor-observation.owl#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "prov": "http://www.w3.org/ns/prov#",
    "qudt": "http://qudt.org/schema/qudt/",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "saref": "https://saref.etsi.org/core/",
    "schema": "http://schema.org/",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "sosa": "http://www.w3.org/ns/sosa/",
    "ssn": "http://www.w3.org/ns/ssn/",
    "time": "http://www.w3.org/2006/time#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
"""Prefixes that need no declaration: those of W3C's initial context for RDFa, and vocabularies of observations."""

_ABSOLUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]*")
# Without "//" an IRI looks like a prefixed name; of these schemes it is taken for an IRI all the same.
_SCHEMES: Final = ("urn", "tag", "mailto", "file", "did")


def property_iri(name: str, prefixes: Mapping[str, str]) -> Term:
    """The IRI, in angle brackets, of ``<IRI>``, a plain IRI or a prefixed name; ValueError explains the fault."""
    text = name.strip()
    if text.startswith("<") and text.endswith(">"):
        text = text[1:-1]
        if _ABSOLUTE.fullmatch(text):
            return f"<{text}>"
        raise ValueError(f"{name} is not an absolute IRI")
    prefix, colon, local = text.partition(":")
    space = prefixes.get(prefix, PREFIXES.get(prefix))
    if colon and space is not None:
        return property_iri(f"<{space}{local}>", {})
    if _ABSOLUTE.fullmatch(text) and (local.startswith("//") or prefix in _SCHEMES):
        return f"<{text}>"
    raise ValueError(_unknown(name, prefix if colon else None, prefixes))


def property_path(text: str, prefixes: Mapping[str, str]) -> tuple[Term, ...]:
    """The IRIs of properties joined by ``/``, as ``sosa:phenomenonTime/time:inXSDDateTimeStamp``; ValueError.

    In a path of several, IRIs that contain ``/`` need angle brackets.
    """
    steps = re.findall(r"<[^>]*>|[^/<]+", text) if "<" in text or not _iri(text, prefixes) else [text]
    return tuple(property_iri(step, prefixes) for step in steps)


def shortened(iri: Term, prefixes: Mapping[str, str]) -> str:
    """The prefixed name of an IRI in angle brackets if a prefix is known, else the IRI unchanged."""
    for prefix, space in (*prefixes.items(), *PREFIXES.items()):
        local = iri[1:-1].removeprefix(space)
        if local != iri[1:-1] and re.fullmatch(r"[\w-]+", local):
            return f"{prefix}:{local}"
    return iri


def _iri(text: str, prefixes: Mapping[str, str]) -> bool:
    """Whether a text with ``/`` in it is one IRI or one prefixed name."""
    prefix, _, local = text.partition(":")
    return "/" not in text or (local.startswith("//") and prefix not in prefixes and prefix not in PREFIXES)


def _unknown(name: str, prefix: str | None, prefixes: Mapping[str, str]) -> str:
    if prefix is None:
        return f"{name!r} is not a property: write an IRI or a prefixed name, as sosa:resultTime"
    known = sorted({*prefixes, *PREFIXES})
    close = get_close_matches(prefix, known, 1)
    hint = f"did you mean {close[0]}:?" if close else f"write the IRI in full, or one of {', '.join(known)}"
    return f"unknown prefix {prefix}: in {name}: {hint}"


INSTANT: Final = tuple(f"<{PREFIXES['time']}{name}>" for name in ("inXSDDateTimeStamp", "inXSDDateTime", "inXSDDate"))
"""The properties of a time:Instant (OWL-Time) that give its time; the first one present counts."""

_MOMENTS: Final = (XSD + "dateTime", XSD + "dateTimeStamp", XSD + "date")

Node = tuple[Term, Term]
"""(graph, subject); the graph is empty for the default graph."""


@dataclass(frozen=True, slots=True)
class TimeProperty:
    """The property ``path`` to a time, the ``parts`` whose objects belong to the element, and the reader of times."""

    path: tuple[Term, ...]
    parts: frozenset[Term]
    instants: Instants
    shown: str

    def owners(self, triples: Sequence[Triple]) -> dict[Term, list[Term]]:
        """The subjects with a time, each with the terms at the end of its path."""
        owners = _values(triples, self.path[0])
        for step in self.path[1:]:
            values = _values(triples, step)
            # One step along the path: the objects of the step take the place of the nodes reached before.
            owners = {subject: [o for node in nodes for o in values.get(node, ())] for subject, nodes in owners.items()}
        # The usual case, without instants of OWL-Time, needs no further look-ups.
        if all(is_literal(term) for terms in owners.values() for term in terms):
            return {subject: terms for subject, terms in owners.items() if terms}
        steps = [_values(triples, step) for step in INSTANT]
        instants = {
            subject: [o for term in terms for o in _of_instant(term, [values.get(term, []) for values in steps])]
            for subject, terms in owners.items()
        }
        return {subject: terms for subject, terms in instants.items() if terms}


def _values(triples: Sequence[Triple], step: Term) -> dict[Term, list[Term]]:
    """The objects of a property, by subject."""
    values: dict[Term, list[Term]] = {}
    for subject, predicate, item in triples:
        if predicate == step:
            values.setdefault(subject, []).append(item)
    return values


def _of_instant(term: Term, times: Iterable[list[Term]]) -> list[Term]:
    """The times of an instant by the first of ``INSTANT`` that has any; any other term is its own time."""
    return [term] if is_literal(term) else next(filter(None, times), [term])


def time_property(reading: Reading, *, strict: bool = True) -> TimeProperty | None:
    """The time property of a reading, ``None`` if it names none; FormatError for an invalid name."""
    if reading.time_property is None:
        return None
    try:
        parts = [property_iri(part, reading.prefixes) for part in (reading.parts or "").split(",") if part.strip()]
        path = property_path(reading.time_property, reading.prefixes)
    except ValueError as error:
        raise FormatError(f"time_property, parts: {error}") from error
    return TimeProperty(path, frozenset(parts), instants(reading, strict=strict), reading.time_property)


def instants(reading: Reading, *, strict: bool = True) -> Instants:
    """The reader of a source's times; FormatError for an unknown unit or zone."""
    try:
        return Instants(reading.time_in, reading.time_zone, reading.note, strict, reading.fold)
    except InstantError as error:
        raise FormatError(str(error)) from error


def timed_as(syntax: ox.RdfFormat | None) -> Read:
    """A reader of files by a time property; ``syntax`` is the default for unknown endings."""

    def timed(whole: Whole, reading: Reading, refuse: Refuse) -> Iterator[StreamElement]:
        """The elements of a file, or of several; FormatError names file and subject."""
        stated = time_property(reading)
        if stated is None:
            raise FormatError(f"{whole.place}: {untimed(whole, reading, syntax)}")
        items: list[Item] = []
        for count, document in enumerate(whole.with_endings(tuple(BY_ENDING))):
            observations = Observations(document.place, document_quads(document, count, reading, syntax), stated)
            items.extend(observations.items(refuse))
            observations.note_static(reading.note)
        return number(in_order(items, whole.place, reading), reading)

    return timed


def untimed(whole: Whole, reading: Reading, syntax: ox.RdfFormat | None = None) -> str:
    """The advice for a file whose time property is not named: the properties in it that look like times."""
    seen: dict[Term, None] = {}
    try:
        for document in whole.with_endings(tuple(BY_ENDING))[:1]:
            for triple, _ in document_quads(document, 0, reading, syntax):
                if datatype(triple[2]) in _MOMENTS:
                    seen[triple[1]] = None
    except FormatError as error:
        return str(error)
    names = [shortened(name, reading.prefixes) for name in islice(seen, 3)]
    hint = f": --time-property {' or '.join(names)}" if names else ", as by --time-property sosa:resultTime"
    return f"its elements have no times: name the property that states them{hint} (docs/own-data.md)"


def moment_property(triples: Iterable[Triple]) -> str | None:
    """The name of the first property with a date or dateTime as its object, if any."""
    moment = next((p for _, p, o in triples if o[0] == '"' and o[-1] == ">" and datatype(o) in _MOMENTS), None)
    return None if moment is None else shortened(moment, {})


class NodePlace(NamedTuple):
    """A subject in a document, formatted only when an error names it."""

    document: str
    node: Node
    first: Triple

    @property
    def named(self) -> str:
        """Its IRI, or the first triple of a blank node."""
        _, predicate, item = self.first
        return self.node[1] if is_iri(self.node[1]) else f"the blank node with {shortened(predicate, {})} {item[:80]}"

    def __str__(self) -> str:
        graph = self.node[0]
        return f"{self.document}{f', graph {graph}' if graph else ''}, {self.named}"


class Observations:
    """The triples of a document or graph by graph and subject, and the elements that they describe."""

    def __init__(self, place: str, quads: Iterable[tuple[Triple, Term]], stated: TimeProperty) -> None:
        self._at, self._stated = place, stated
        self._nodes: dict[Node, list[Triple]] = {}
        self._graphs: dict[Term, list[Triple]] = {}
        self._static: list[Node] = []
        reified: set[tuple[Term, Triple]] = set()
        node: Node | None = None
        for triple, graph in quads:
            if node is None or triple[0] != node[1] or graph != node[0]:  # a subject's triples mostly come together
                node = graph, triple[0]
                triples, in_graph = self._nodes.setdefault(node, []), self._graphs.setdefault(graph, [])
            triples.append(triple)
            in_graph.append(triple)
            if triple[1] == REIFIES and is_triple(triple[2]):
                reified.add((graph, triple_parts(triple[2])))
        subjects = {(graph, triple[0]) for graph, triple in reified}
        self._annotated = reified & {(node[0], triple) for node in subjects for triple in self._nodes.get(node, ())}
        self._taken: set[tuple[Term, Triple]] = set()

    def items(self, refuse: Refuse) -> Iterator[Item]:
        """The elements in order of appearance; subjects that belong to none are remembered as static."""
        times = self._times(refuse)
        if not times:
            refuse(FormatError(f"{self._at}: nothing in it has {self._stated.shown}{self._hint()}"))
            return
        whole = self._whole(times, refuse)
        used: set[Node] = set()
        yielded: set[Term] = set()
        for graph, subject in self._nodes:
            if graph in whole:
                if graph not in yielded:
                    yielded.add(graph)
                    yield f"{self._at}, graph {graph}", whole[graph], tuple(dict.fromkeys(self._graphs[graph]))
            # A subject that is the name of a graph dates that graph, which is an element of its own.
            elif (graph, subject) in times and subject not in self._graphs:
                nodes = self._description((graph, subject))
                used.update(nodes)
                if self._annotated:
                    self._taken.update((graph, triple) for node in nodes for triple in self._annotated_by(node))
                yield self._place((graph, subject)), times[graph, subject], self._triples(nodes)
        # Descriptions of named graphs, such as their provenance, are neither elements nor static data.
        about = {part for node in self._nodes if node[1] in self._graphs for part in self._description(node)}
        left = (node for node in self._nodes if node[0] not in whole and node not in used and node not in about)
        self._static = [node for node in left if self._left(node)]

    def shared_items(self) -> list[Item]:
        """The elements of a message by time, each with the triples that belong to no element; FormatError."""
        items = sorted(self.items(_raise), key=lambda item: item[1])
        shared = [triple for node in self._static for triple in self._left(node)]
        return [(place, time, tuple(dict.fromkeys((*triples, *shared)))) for place, time, triples in items]

    def note_static(self, note: Note) -> None:
        """Note the subjects that belong to no element, and the ``parts`` that would include them."""
        if not self._static:
            return
        left = {node for node in self._static if is_iri(node[1])}
        lead = {p: None for graph, triples in self._graphs.items() for _, p, o in triples if (graph, o) in left}
        within = {(node[0], o) for node in self._static for _, _, o in self._nodes[node]}
        # Of static data that hang together only the top is named, not each node below it.
        roots = [node for node in self._static if node in left or node not in within]
        names = ", ".join(self._place(node).named for node in roots[:3]) + (", ..." if len(roots) > 3 else "")
        parts = ",".join(shortened(name, {}) for name in lead)
        hint = f"; --parts {parts} includes those that an element refers to" if parts else ""
        what = f"{self._at}: {counted(len(roots), 'subject')} without {self._stated.shown} ({names})"
        note(f"{what}: static data, which is not part of the stream{hint}")

    def _triples(self, nodes: Sequence[Node]) -> tuple[Triple, ...]:
        if len(nodes) == 1:
            return tuple(dict.fromkeys(self._of(nodes[0])))
        return tuple(dict.fromkeys(triple for node in nodes for triple in self._of(node)))

    def _of(self, node: Node) -> list[Triple]:
        """The triples of a node and the asserted triples that it reifies (annotations of RDF 1.2)."""
        own = self._nodes[node]
        return [*own, *self._annotated_by(node)] if self._annotated else own

    def _annotated_by(self, node: Node) -> Iterator[Triple]:
        for _, predicate, item in self._nodes[node]:
            if predicate == REIFIES and is_triple(item) and (node[0], triple := triple_parts(item)) in self._annotated:
                yield triple

    def _left(self, node: Node) -> list[Triple]:
        """The triples of a node that no element annotates."""
        return [triple for triple in self._nodes[node] if (node[0], triple) not in self._taken]

    def _times(self, refuse: Refuse) -> dict[Node, int]:
        """The time of each node that has one; a node with two times, or a malformed one, is refused."""
        times: dict[Node, int] = {}
        for node in self._nodes:
            terms = self._values(node)
            if not terms:
                continue
            place = self._place(node)
            try:
                stated = {self._stated.instants.of_term(term, place): term for term in terms}
            except InstantError as error:
                refuse(FormatError(f"{place}: {error}"))
                continue
            # Equal instants written differently are one time; the dict is keyed by the instant.
            if len(stated) > 1:
                named = " and ".join(list(stated.values())[:2])
                refuse(FormatError(f"{place}: two times by {self._stated.shown}, {named}: an element has one"))
            else:
                times[node] = next(iter(stated))
        return times

    def _values(self, node: Node) -> list[Term]:
        """The terms at the end of the time property's path from a node."""
        graph, at = node[0], [node[1]]
        for step in self._stated.path:
            at = [o for subject in at for o in self._objects((graph, subject), step)]
        if all(map(is_literal, at)):
            return at
        return [o for term in at for o in _of_instant(term, (self._objects((graph, term), step) for step in INSTANT))]

    def _objects(self, node: Node, step: Term) -> list[Term]:
        return [o for _, p, o in self._nodes.get(node, ()) if p == step]

    def _whole(self, times: dict[Node, int], refuse: Refuse) -> dict[Term, int]:
        """The time of each named graph that is one element as a whole."""
        within: dict[Term, set[int]] = {}
        named: dict[Term, int] = {}
        for (graph, subject), time in times.items():
            if subject not in self._graphs:
                within.setdefault(graph, set()).add(time)
            elif named.setdefault(subject, time) != time:
                refuse(FormatError(f"{self._at}, graph {subject}: two times of this graph: an element has one"))
        # The default graph is never one element as a whole: it has no name that says so.
        alike = {graph: next(iter(moments)) for graph, moments in within.items() if graph and len(moments) == 1}
        return {**alike, **named}

    def _description(self, node: Node) -> list[Node]:
        """The node, with the blank nodes and parts reachable from it in its graph."""
        graph, reached, open_nodes = node[0], {node: None}, [node]
        while open_nodes:
            for _, predicate, item in self._of(open_nodes.pop()):
                if is_literal(item):
                    continue
                for other in ((graph, part) for part in self._parts(predicate, item)):
                    # Blank nodes may form cycles.
                    if other not in reached and other in self._nodes:
                        reached[other] = None
                        open_nodes.append(other)
        return list(reached)

    def _parts(self, predicate: Term, item: Term) -> list[Term]:
        """The nodes that continue a description: blank nodes, also in a triple term, and objects of part properties."""
        return [*blank_nodes(item), *([item] if predicate in self._stated.parts else ())]

    def _hint(self) -> str:
        """A suggestion of the properties of this document that look like times."""
        seen = {p: None for triples in self._nodes.values() for _, p, o in triples if datatype(o) in _MOMENTS}
        return f": did you mean {' or '.join(shortened(p, {}) for p in islice(seen, 3))}?" if seen else ""

    def _place(self, node: Node) -> "NodePlace":
        return NodePlace(self._at, node, self._nodes[node][0])


def _raise(error: FormatError) -> None:
    raise error


def described(
    place: str, triples: Sequence[Triple], stated: TimeProperty, *, named: bool
) -> list[tuple[int, tuple[Triple, ...]]]:
    """(time in ms, triples) of the elements of one graph; a ``named`` graph is one element if its times agree.

    Empty if no subject has the time property. FormatError.
    """
    owners = stated.owners(triples)
    if not owners:
        return []
    try:
        times = {stated.instants.of_term(term, place) for terms in owners.values() for term in terms}
    except InstantError as error:
        raise FormatError(f"{place}: {error}") from error
    if len(times) == 1 and (named or len(owners) == 1):
        return [(times.pop(), tuple(triples))]
    # Any name, which only tells a named graph from the default one.
    graph = "<urn:graph>" if named else ""
    observations = Observations(place, ((triple, graph) for triple in triples), stated)
    return [item[1:] for item in observations.shared_items()]


def document_quads(
    document: Document, count: int, reading: Reading, otherwise: ox.RdfFormat | None = None
) -> Iterator[tuple[Triple, Term]]:
    """(triple, graph) of a document, the graph empty for the default graph; ``count`` labels its blank nodes."""
    syntax = BY_ENDING.get(document.ending, otherwise)
    if syntax is None:
        raise FormatError(
            f"{document.place}: the ending {document.ending or 'none'} does not tell its RDF syntax: name the "
            f"format, as by ?form=turtle or ?form=jsonld, or rename it to one of {', '.join(BY_ENDING)}"
        )
    name = Relabel(f"f{count}").text
    with document.open() as opened:
        for triple, graph in parse_texts(opened, document.place, syntax, reading.base, reading.contexts()):
            named = graph and name(graph)
            yield (name(triple[0]), triple[1], name(triple[2])), named
