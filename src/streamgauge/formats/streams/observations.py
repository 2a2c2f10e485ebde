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
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final, NamedTuple, TypeAlias

import pyoxigraph as ox

from streamgauge.formats.documents import Document, FormatError
from streamgauge.formats.instants import InstantError, Instants
from streamgauge.formats.streams.format import Item, Note, Read, Reading, Refuse, Relabel, Whole, number
from streamgauge.formats.streams.groups import Groups
from streamgauge.formats.streams.properties import PREFIXES, property_iri, property_path, shortened
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
    is_blank,
    is_iri,
    is_literal,
    is_triple,
    triple_parts,
)

INSTANT: Final = tuple(f"<{PREFIXES['time']}{name}>" for name in ("inXSDDateTimeStamp", "inXSDDateTime", "inXSDDate"))
"""The properties of a time:Instant (OWL-Time) that give its time; the first one present counts."""

_MOMENTS: Final = (XSD + "dateTime", XSD + "dateTimeStamp", XSD + "date")

Node: TypeAlias = tuple[Term, ...]
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
        read = Instants(reading.time_in, reading.time_zone, reading.note, strict, reading.fold)
    except InstantError as error:
        raise FormatError(str(error)) from error
    # An assumed unit, and which of two instants a local time is, depend on the times before.
    if reading.mark is not None and (before := reading.mark.carry("times", read.learned)) is not None:
        read.learn(before)
    return read


def timed_as(syntax: ox.RdfFormat | None) -> Read:
    """A reader of files by a time property; ``syntax`` is the default for unknown endings."""

    def timed(whole: Whole, reading: Reading, refuse: Refuse) -> Iterator[StreamElement]:
        """The elements of a file, or of several; FormatError names file and subject."""
        stated = time_property(reading)
        if stated is None:
            raise FormatError(f"{whole.place}: {untimed(whole, reading, syntax)}")
        documents = enumerate(whole.with_endings(tuple(BY_ENDING)))
        texts = ((document.place, document_quads(document, count, reading, syntax)) for count, document in documents)
        return number(in_order(observed(texts, stated, reading, refuse), whole.place, reading), reading)

    return timed


def observed(
    documents: Iterable[tuple[str, Iterable[tuple[Triple, Term]]]],
    stated: TimeProperty,
    reading: Reading,
    refuse: Refuse,
) -> Iterator[Item]:
    """The elements of documents, given by their places and (triple, graph), with a note about their static data."""
    for place, quads in documents:
        observations = Observations(place, quads, stated)
        yield from observations.items(refuse)
        observations.note_static(reading.note)


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


TimedNode: TypeAlias = tuple[Node, list[Triple], int | None]
"""A node with its triples and its time (ms), if it has one."""


class Observations:
    """The triples of a document or graph by graph and subject, and the elements that they describe.

    Memory grows with the largest description or named graph, not with the document.
    """

    def __init__(self, place: str, quads: Iterable[tuple[Triple, Term]], stated: TimeProperty) -> None:
        self._at, self._stated = place, stated
        self._nodes, self._graphs = Groups[Triple](place), Groups[Triple](place)
        """Triples by (graph, subject), and those of named graphs by (graph,)."""
        self._annotated, self._taken = Groups[Triple](place), Groups[Triple](place)
        """(graph, *triple) of asserted triples that are reified, and of those of them that are part of an element."""
        self._static = Groups[Triple](place)
        self._read(quads)

    def _read(self, quads: Iterable[tuple[Triple, Term]]) -> None:
        reified = Groups[Triple](self._at)
        node: Node | None = None
        for triple, graph in quads:
            if node is None or triple[0] != node[1] or graph != node[0]:  # a subject's triples mostly come together
                node = graph, triple[0]
                triples = self._nodes.begin(node)
                in_graph = self._graphs.begin((graph,)) if graph else []
            triples.append(triple)
            if graph:
                in_graph.append(triple)
            if triple[1] == REIFIES and is_triple(triple[2]):
                asserted = triple_parts(triple[2])
                reified.begin((graph, asserted[0])).append(asserted)
        for key, wanted in reified:
            for triple in set(wanted).intersection(self._nodes.get(key)):
                self._annotated.begin((key[0], *triple))

    def items(self, refuse: Refuse) -> Iterator[Item]:
        """The elements in order of appearance; subjects that belong to none are remembered as static."""
        used, left, any_time = Groups[Triple](self._at), Groups[Triple](self._at), False
        whole, nodes = self._timed(refuse)
        for node, triples, time in nodes:
            graph, subject = node
            any_time = any_time or time is not None
            if graph and (moments := whole.get((graph,))):
                yield from self._graph_begun(graph, subject, moments[0])
                continue
            # A subject that is the name of a graph dates that graph, which is an element of its own; its description,
            # such as its provenance, is neither an element nor static data.
            named = bool(self._graphs) and (subject,) in self._graphs
            if time is None and not named:
                if not used.forget(node):
                    left.begin(node)
                continue
            described = self._description(node, triples)
            for part in list(described)[1:]:
                if not left.forget(part):
                    used.begin(part)
            if time is not None and not named:
                yield NodePlace(self._at, node, triples[0]), time, self._element(graph, described)
        if any_time:
            self._keep_static(left, used)
        else:
            refuse(FormatError(f"{self._at}: nothing in it has {self._stated.shown}{self._hint()}"))

    def _timed(self, refuse: Refuse) -> tuple[Groups[int], Iterator[TimedNode]]:
        """The times of the named graphs that are one element as a whole, and all nodes with their times."""
        nodes = self._with_times(refuse)
        if not self._graphs:
            return Groups[int](self._at), nodes
        times = Groups[int](self._at)
        for node, _, time in nodes:
            if time is not None:
                times.begin(node).append(time)
        return self._whole(times, refuse), self._again(times)

    def _again(self, times: Groups[int]) -> Iterator[TimedNode]:
        """All nodes with their times, which have the same order."""
        timed = iter(times)
        upcoming = next(timed, None)
        for node, triples in self._nodes:
            if upcoming is not None and upcoming[0] == node:
                yield node, triples, upcoming[1][0]
                upcoming = next(timed, None)
            else:
                yield node, triples, None

    def _graph_begun(self, graph: Term, subject: Term, time: int) -> Iterator[Item]:
        """A named graph that is one element, at the subject with which it begins."""
        triples = self._graphs.get((graph,))
        if triples[0][0] == subject:
            yield f"{self._at}, graph {graph}", time, tuple(dict.fromkeys(triples))

    def _element(self, graph: Term, nodes: Mapping[Node, list[Triple]]) -> tuple[Triple, ...]:
        """The triples of a description, without repetitions."""
        triples = tuple(dict.fromkeys(chain(*nodes.values())))
        if self._annotated:
            for triple in triples:
                if (graph, *triple) in self._annotated:
                    self._taken.begin((graph, *triple))
        return triples

    def _keep_static(self, left: Groups[Triple], used: Groups[Triple]) -> None:
        for node, _ in left:
            if node not in used and (triples := self._left(node[0], self._nodes.get(node))):
                self._static.begin(node).extend(triples)

    def shared_items(self) -> list[Item]:
        """The elements of a message by time, each with the triples that belong to no element; FormatError."""
        items = sorted(self.items(_raise), key=lambda item: item[1])
        shared = [triple for _, triples in self._static for triple in triples]
        return [(place, time, tuple(dict.fromkeys((*triples, *shared)))) for place, time, triples in items]

    def note_static(self, note: Note) -> None:
        """Note the subjects that belong to no element, and the ``parts`` that would include them."""
        if not self._static:
            return
        lead: dict[Term, None] = {}
        for (graph, _), triples in self._nodes:
            for _, predicate, item in triples:
                if predicate not in lead and is_iri(item) and (graph, item) in self._static:
                    lead[predicate] = None
        within = Groups[Triple](self._at)
        for (graph, _), triples in self._static:
            for _, _, item in triples:
                if is_blank(item):
                    within.begin((graph, item))
        # Of static data that hang together only the top is named, not each node below it.
        count, names = 0, list[str]()
        for node, triples in self._static:
            if is_iri(node[1]) or node not in within:
                count += 1
                names += [NodePlace(self._at, node, triples[0]).named] if len(names) < 3 else []
        parts = ",".join(shortened(name, {}) for name in lead)
        hint = f"; --parts {parts} includes those that an element refers to" if parts else ""
        listed = ", ".join(names) + (", ..." if count > 3 else "")
        what = f"{self._at}: {counted(count, 'subject')} without {self._stated.shown} ({listed})"
        note(f"{what}: static data, which is not part of the stream{hint}")

    def _of(self, graph: Term, own: list[Triple]) -> list[Triple]:
        """The triples of a node and the asserted triples that it reifies (annotations of RDF 1.2)."""
        return [*own, *self._annotated_by(graph, own)] if self._annotated else own

    def _annotated_by(self, graph: Term, triples: Iterable[Triple]) -> Iterator[Triple]:
        for _, predicate, item in triples:
            if predicate == REIFIES and is_triple(item) and (graph, *(triple := triple_parts(item))) in self._annotated:
                yield triple

    def _left(self, graph: Term, triples: list[Triple]) -> list[Triple]:
        """The triples of a node that no element annotates."""
        return [triple for triple in triples if (graph, *triple) not in self._taken] if self._taken else triples

    def _with_times(self, refuse: Refuse) -> Iterator[TimedNode]:
        """All nodes; one with two times, or a malformed one, is refused and has none."""
        for node, triples in self._nodes:
            terms = self._values(node[0], triples)
            yield node, triples, self._time(node, triples, terms, refuse) if terms else None

    def _time(self, node: Node, triples: Sequence[Triple], terms: Sequence[Term], refuse: Refuse) -> int | None:
        place = NodePlace(self._at, node, triples[0])
        try:
            # Equal instants written differently are one time; the dict is keyed by the instant.
            stated = {self._stated.instants.of_term(term, place): term for term in terms}
        except InstantError as error:
            refuse(FormatError(f"{place}: {error}"))
            return None
        if len(stated) > 1:
            named = " and ".join(list(stated.values())[:2])
            refuse(FormatError(f"{place}: two times by {self._stated.shown}, {named}: an element has one"))
            return None
        return next(iter(stated))

    def _values(self, graph: Term, triples: Iterable[Triple]) -> list[Term]:
        """The terms at the end of the time property's path from a node with these triples."""
        first, *steps = self._stated.path
        at = [o for _, p, o in triples if p == first]
        if not at:
            return at
        for step in steps:
            at = [o for subject in at for o in self._objects(graph, subject, step)]
        if all(map(is_literal, at)):
            return at
        return [o for term in at for o in _of_instant(term, (self._objects(graph, term, step) for step in INSTANT))]

    def _objects(self, graph: Term, subject: Term, step: Term) -> list[Term]:
        return [o for _, p, o in self._nodes.get((graph, subject)) if p == step]

    def _whole(self, times: Groups[int], refuse: Refuse) -> Groups[int]:
        """The time of each named graph that is one element as a whole."""
        within, named, whole = Groups[int](self._at), Groups[int](self._at), Groups[int](self._at)
        last, seen = "", set[int]()
        for (graph, subject), (time,) in times if self._graphs else ():
            if (subject,) in self._graphs:
                named.begin((subject,)).append(time)
                continue
            if graph != last:
                last, seen = graph, set()
            # The default graph is never one element as a whole: it has no name that says so.
            # Two different times decide about a graph: further ones are left out.
            if graph and len(seen) < 2:
                seen.add(time)
                within.begin((graph,)).append(time)
        for (graph,), moments in named:
            for _ in filter(moments[0].__ne__, moments):
                refuse(FormatError(f"{self._at}, graph {graph}: two times of this graph: an element has one"))
            whole.begin((graph,)).append(moments[0])
        for key, moments in within:
            if len(set(moments)) == 1 and key not in named:
                whole.begin(key).append(moments[0])
        return whole

    def _description(self, node: Node, own: list[Triple]) -> dict[Node, list[Triple]]:
        """The node first, with the blank nodes and parts reachable from it in its graph, and their triples."""
        graph = node[0]
        reached = {node: self._of(graph, own)}
        open_nodes = [node]
        while open_nodes:
            for _, predicate, item in reached[open_nodes.pop()]:
                if "_:" not in item and predicate not in self._stated.parts:
                    continue
                for other in ((graph, part) for part in self._parts(predicate, item)):
                    # Blank nodes may form cycles.
                    if other not in reached and (triples := self._nodes.get(other)):
                        reached[other] = self._of(graph, triples)
                        open_nodes.append(other)
        return reached

    def _parts(self, predicate: Term, item: Term) -> list[Term]:
        """The nodes that continue a description: blank nodes, also in a triple term, and objects of part properties."""
        if is_literal(item):
            return []
        return [*blank_nodes(item), *([item] if predicate in self._stated.parts else ())]

    def _hint(self) -> str:
        """A suggestion of the properties of this document that look like times."""
        seen = {p: None for _, triples in self._nodes for _, p, o in triples if datatype(o) in _MOMENTS}
        return f": did you mean {' or '.join(shortened(p, {}) for p in islice(seen, 3))}?" if seen else ""


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
        yield from parse_texts(opened, document.place, syntax, reading.base, reading.contexts(), name)
