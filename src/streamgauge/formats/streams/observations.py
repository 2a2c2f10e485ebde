"""RDF as people have it, whose times are a property: the elements of a graph of observations, or of named graphs.

Each element is the description of what has the time (docs/own-data.md):

- of a named graph, where the property is stated of its name: the whole graph;
- of a named graph in which all times are the same: the whole graph too;
- of any other subject with the time: its triples in its graph, with those of the blank nodes, and of the objects of
  ``parts``, that it leads to.

Worked example, ``sosa:resultTime`` in one graph: of ``:o1 sosa:resultTime "2026-03-01T08:00:01Z" ; sosa:hasResult
[ :free 12 ]`` the element is the three triples, at 1772352001000 ms.

Properties are named by IRIs, or by prefixed names with the well-known prefixes or a query's own.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Final

import pyoxigraph as ox

from streamgauge.formats.instants import InstantError, Instants
from streamgauge.formats.streams.format import (
    Format,
    FormatError,
    Item,
    Reading,
    Refuse,
    Relabel,
    ending,
    files,
    number,
    open_bytes,
    parse_open,
)
from streamgauge.model.element import StreamElement
from streamgauge.model.terms import XSD, Term, Triple, datatype, is_blank, is_iri, is_literal

PREFIXES: Final[dict[str, str]] = {
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
_SCHEMES: Final = ("urn", "tag", "mailto", "file", "did")


def property_iri(name: str, prefixes: Mapping[str, str]) -> Term:
    """The IRI, in angle brackets, of ``<IRI>``, an IRI or a prefixed name; ValueError says what is wrong with it."""
    text = name.strip()
    if text.startswith("<") and text.endswith(">"):
        text = text[1:-1]
        if _ABSOLUTE.fullmatch(text):
            return f"<{text}>"
        raise ValueError(f"{name} is no absolute IRI")
    prefix, colon, local = text.partition(":")
    space = prefixes.get(prefix, PREFIXES.get(prefix))
    if colon and space is not None:
        return property_iri(f"<{space}{local}>", {})
    if _ABSOLUTE.fullmatch(text) and (local.startswith("//") or prefix in _SCHEMES):
        return f"<{text}>"
    raise ValueError(_unknown(name, prefix if colon else None, prefixes))


def property_path(text: str, prefixes: Mapping[str, str]) -> tuple[Term, ...]:
    """The IRIs of properties joined by ``/``, as ``sosa:phenomenonTime/time:inXSDDateTimeStamp``; ValueError.

    IRIs with ``/`` in them are written in angle brackets where there are several.
    """
    steps = re.findall(r"<[^>]*>|[^/<]+", text) if "<" in text or not _iri(text, prefixes) else [text]
    return tuple(property_iri(step, prefixes) for step in steps)


def shortened(iri: Term, prefixes: Mapping[str, str]) -> str:
    """A prefixed name for an IRI in angle brackets where a prefix is known for it, else the IRI as it is."""
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
        return f"{name!r} is no property: write an IRI or a prefixed name, as sosa:resultTime"
    known = sorted({*prefixes, *PREFIXES})
    close = get_close_matches(prefix, known, 1)
    hint = f"did you mean {close[0]}:?" if close else f"write the IRI in full, or one of {', '.join(known)}"
    return f"the prefix {prefix}: of {name} is not known: {hint}"


SYNTAXES: Final = {
    ".ttl": ox.RdfFormat.TURTLE,
    ".nt": ox.RdfFormat.N_TRIPLES,
    ".trig": ox.RdfFormat.TRIG,
    ".nq": ox.RdfFormat.N_QUADS,
    ".rdf": ox.RdfFormat.RDF_XML,
    ".owl": ox.RdfFormat.RDF_XML,
    ".jsonld": ox.RdfFormat.JSON_LD,
    ".n3": ox.RdfFormat.N3,
}
_MOMENTS: Final = (XSD + "dateTime", XSD + "dateTimeStamp", XSD + "date")

Node = tuple[Term, Term]
"""(graph, subject); the graph is empty for the default graph."""


@dataclass(frozen=True, slots=True)
class TimeProperty:
    """The ``path`` of properties to a time, the properties whose objects belong to an element too, and the times."""

    path: tuple[Term, ...]
    parts: frozenset[Term]
    instants: Instants
    shown: str


def time_property(reading: Reading, *, strict: bool = True) -> TimeProperty | None:
    """The time property of a reading, ``None`` when it has none; FormatError for a name that is none."""
    if reading.time_property is None:
        return None
    try:
        parts = [property_iri(each, reading.prefixes) for each in (reading.parts or "").split(",") if each.strip()]
        path = property_path(reading.time_property, reading.prefixes)
    except ValueError as error:
        raise FormatError(f"time_property, parts: {error}") from error
    return TimeProperty(path, frozenset(parts), instants(reading, strict=strict), reading.time_property)


def instants(reading: Reading, *, strict: bool = True) -> Instants:
    """The reader of a source's times; FormatError for a unit or zone that is none."""
    try:
        return Instants(reading.time_in, reading.time_zone, reading.note, strict)
    except InstantError as error:
        raise FormatError(str(error)) from error


def timed(path: Path, reading: Reading, refuse: Refuse) -> Iterator[StreamElement]:
    """The elements of a file, or of a folder's files, by the time property; FormatError names file and subject."""
    stated = time_property(reading)
    if stated is None:
        raise FormatError(f"{path}: {untimed(path, reading)}")
    given = enumerate(files(path, tuple(SYNTAXES)))
    found = [item for place, file in given for item in _Dataset(file, place, stated).items(refuse)]
    return number(in_order(found, path, reading), reading)


def in_order(items: Sequence[Item], path: Path, reading: Reading) -> Sequence[Item]:
    """Elements sorted by time where no lateness is declared, which is noted; else in the order of the file."""
    if reading.lateness is not None:
        return items
    ordered = sorted(items, key=lambda item: item[1])
    if any(one is not other for one, other in zip(items, ordered, strict=True)):
        reading.note(f"{path}: its elements are sorted by their times (declare a lateness to take them as they stand)")
    return ordered


def untimed(path: Path, reading: Reading) -> str:
    """The advice for a file whose time property is not named: the properties in it that look like times."""
    seen: dict[Term, None] = {}
    try:
        for file in files(path, tuple(SYNTAXES))[:1]:
            with open_bytes(file) as opened:
                for quad in parse_open(opened, str(file), SYNTAXES[ending(file)]):
                    if datatype(str(quad.object)) in _MOMENTS:
                        seen[str(quad.predicate)] = None
    except FormatError as error:
        return str(error)
    names = [shortened(each, reading.prefixes) for each in list(seen)[:3]]
    hint = f": --time-property {' or '.join(names)}" if names else ", as by --time-property sosa:resultTime"
    return f"its elements have no times yet: name the property that states them{hint} (docs/own-data.md)"


def moment_property(triples: Iterable[Triple]) -> str | None:
    """The name of a property whose object is a date or a date with a time, if there is one."""
    found = next((p for _, p, o in triples if o[0] == '"' and o[-1] == ">" and datatype(o) in _MOMENTS), None)
    return None if found is None else shortened(found, {})


class _Dataset:
    """The triples of one file by graph and subject."""

    def __init__(self, file: Path, number_of_file: int, stated: TimeProperty) -> None:
        self._file, self._stated = file, stated
        self._nodes: dict[Node, list[Triple]] = {}
        self._graphs: dict[Term, list[Triple]] = {}
        for triple, graph in _quads(file, number_of_file):
            self._nodes.setdefault((graph, triple[0]), []).append(triple)
            self._graphs.setdefault(graph, []).append(triple)

    def items(self, refuse: Refuse) -> Iterator[Item]:
        """The elements in order of appearance."""
        times = self._times(refuse)
        whole = self._whole(times, refuse)
        used: set[Node] = set()
        told: set[Term] = set()
        for graph, subject in self._nodes:
            if graph in whole:
                if graph not in told:
                    told.add(graph)
                    yield f"{self._file}, graph {graph}", whole[graph], tuple(dict.fromkeys(self._graphs[graph]))
            elif (graph, subject) in times and subject not in self._graphs:
                nodes = self._description((graph, subject))
                used.update(nodes)
                triples = dict.fromkeys(triple for node in nodes for triple in self._nodes[node])
                yield self._place((graph, subject)), times[graph, subject], tuple(triples)
        self._refuse_left(times, whole, used, refuse)

    def _times(self, refuse: Refuse) -> dict[Node, int]:
        """The nodes that have a time, with it; a node with two times, or a malformed one, is refused."""
        found: dict[Node, int] = {}
        for node in self._nodes:
            place = self._place(node)
            terms = self._values(node)
            try:
                times = {self._stated.instants.of_term(term, place): term for term in terms}
            except InstantError as error:
                refuse(FormatError(f"{place}: {error}"))
                continue
            if len(times) > 1:
                named = " and ".join(list(times.values())[:2])
                refuse(FormatError(f"{place}: two times by {self._stated.shown}, {named}: an element has one"))
            elif times:
                found[node] = next(iter(times))
        return found

    def _values(self, node: Node) -> list[Term]:
        """The nodes that the path of the time property leads to from a node."""
        graph, at = node[0], [node[1]]
        for step in self._stated.path:
            at = [o for subject in at for _, p, o in self._nodes.get((graph, subject), ()) if p == step]
        return at

    def _whole(self, times: dict[Node, int], refuse: Refuse) -> dict[Term, int]:
        """The named graphs that are one element, each with its time."""
        within: dict[Term, set[int]] = {}
        named: dict[Term, int] = {}
        for (graph, subject), time in times.items():
            if subject not in self._graphs:
                within.setdefault(graph, set()).add(time)
            elif named.setdefault(subject, time) != time:
                refuse(FormatError(f"{self._file}, graph {subject}: two times of this graph: an element has one"))
        alike = {graph: next(iter(each)) for graph, each in within.items() if graph and len(each) == 1}
        return {**alike, **named}

    def _description(self, node: Node) -> list[Node]:
        """The node, with the blank nodes and parts that it leads to in its graph."""
        graph, found, open_nodes = node[0], {node: None}, [node]
        while open_nodes:
            for _, predicate, item in self._nodes[open_nodes.pop()]:
                other = (graph, item)
                if other not in found and other in self._nodes and self._belongs(predicate, item):
                    found[other] = None
                    open_nodes.append(other)
        return list(found)

    def _belongs(self, predicate: Term, item: Term) -> bool:
        return is_blank(item) or (predicate in self._stated.parts and not is_literal(item))

    def _refuse_left(self, times: dict[Node, int], whole: dict[Term, int], used: set[Node], refuse: Refuse) -> None:
        """Refuse the subjects that belong to no element; what is said of a graph's name beside its time is left out."""
        if not times:
            refuse(FormatError(f"{self._file}: nothing in it has {self._stated.shown}{self._hint()}"))
            return
        about = {node for each in self._nodes if each[1] in self._graphs for node in self._description(each)}
        left = [node for node in self._nodes if node[0] not in whole and node not in used and node not in about]
        into = {(graph, item): p for graph, triples in self._graphs.items() for _, p, item in triples} if left else {}
        for node in left:
            refuse(FormatError(f"{self._place(node)}: {self._without_time(into.get(node))}"))

    def _without_time(self, into: Term | None) -> str:
        """Why a subject belongs to no element; ``into`` is a property that leads to it."""
        name = "" if into is None else shortened(into, {})
        lead = f"; {name} leads to it, and --parts {name} makes it a part of that element" if name else ""
        return (
            f"no {self._stated.shown}, and no part of what has one{lead}; give it a time, put it among the static data "
            "(--static), or pass it over (FILE?bad=skip)"
        )

    def _hint(self) -> str:
        """The properties of this file that look like times."""
        seen = {p: None for each in self._nodes.values() for _, p, o in each if datatype(o) in _MOMENTS}
        return f": did you mean {' or '.join(shortened(p, {}) for p in list(seen)[:3])}?" if seen else ""

    def _place(self, node: Node) -> str:
        graph, subject = node
        within = f", graph {graph}" if graph else ""
        if is_iri(subject):
            return f"{self._file}{within}, {subject}"
        _, predicate, item = self._nodes[node][0]
        return f"{self._file}{within}, the blank node with {shortened(predicate, {})} {item[:80]}"


def _quads(file: Path, number_of_file: int) -> Iterator[tuple[Triple, Term]]:
    """The triples of a file, each with its graph."""
    relabel = Relabel(f"f{number_of_file}")
    with open_bytes(file) as opened:
        for quad in parse_open(opened, str(file), SYNTAXES[ending(file)]):
            graph = "" if isinstance(quad.graph_name, ox.DefaultGraph) else relabel.term(quad.graph_name)
            yield relabel.triple(quad), graph


FORMATS = (
    Format(
        "rdf",
        "RDF/XML, JSON-LD or N3, whose times are a property",
        (".rdf", ".owl", ".jsonld", ".n3"),
        timed=timed,
    ),
)
