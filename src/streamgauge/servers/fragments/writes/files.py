"""Files as data sets: their quads, with the end of each where annotations in them say one."""

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Final

import pyoxigraph as ox

from streamgauge.formats.streams.format import FormatError, Relabel, ending, open_bytes, parse
from streamgauge.model.terms import Term
from streamgauge.servers.fragments import DEFAULT, ExpiringQuad, Quad
from streamgauge.servers.fragments.annotations import method
from streamgauge.servers.fragments.annotations.implicit import SAME_AS
from streamgauge.servers.fragments.labels import Style, label_predicates, latest_ends, read_labels
from streamgauge.servers.fragments.store.indexed import Store

BLOCK: Final = 2**20
"""Bytes that are searched at once."""

RESERVED: Final = frozenset({"health", "metrics", "."})
"""Names that no data set may have, as something else is there."""


def name_of(path: Path) -> str:
    """The name of a file's data set: what is before its first ending."""
    name = path.name.split(".")[0]
    if not name or name in RESERVED:
        raise FormatError(f"{path}: a data set cannot be named {name!r}: rename the file")
    return name


def read_quads(path: Path) -> Iterator[Quad]:
    """The quads of an RDF file by its ending; FormatError names file and line."""
    syntax = ox.RdfFormat.from_extension(ending(path).removeprefix(".").replace("owl", "rdf"))
    if syntax is None:
        raise FormatError(
            f"{path}: no RDF format has the ending {ending(path)!r}: use .nq, .trig, .nt, .ttl, .jsonld or .rdf"
        )
    relabel = Relabel("s")
    for quad in parse(path, syntax):
        graph = DEFAULT if isinstance(quad.graph_name, ox.DefaultGraph) else relabel.term(quad.graph_name)
        yield (*relabel.triple(quad), graph)


def load(path: Path, store: Store, style: Style, at: int | None = None) -> int:
    """Fill an empty store with a file's quads; how many there are.

    A file in which no label is mentioned is read as it comes, else it is held in memory once, to tell which quads end
    with which label.
    """
    if _mentions(path, label_predicates(style.vocabulary)):
        return store.load(ending_quads(list(read_quads(path)), style), at)
    return store.load(((quad, None) for quad in read_quads(path)), at)


def _mentions(path: Path, own: Collection[Term]) -> bool:
    """Whether the namespace of one of the IRIs is somewhere in the file, as it has to be in each format."""
    spaces = {re.sub(r"[^/#:]*$", "", term[1:-1]).encode() for term in own}
    longest, before = max(map(len, spaces)), b""
    with open_bytes(path) as file:
        while block := file.read(BLOCK):
            if any(space in before + block for space in spaces):
                return True
            before = block[-longest:]
    return False


def ending_quads(quads: Sequence[Quad], style: Style) -> list[ExpiringQuad]:
    """Each quad once, with when it ends: with the label of its graph, subject or predicate, else with its fact."""
    ends = _labelled(quads, style)
    facts = method(style.method).facts(quads, style)
    said = dict(latest_ends(((*fact.triple, DEFAULT), fact.final) for fact in facts))
    return [(quad, _end(quad, ends, said)) for quad in dict.fromkeys(quads)]


def _end(quad: Quad, ends: dict[Term, int | None], said: dict[Quad, int | None]) -> int | None:
    named = next((term for term in (quad[3], quad[0], quad[1]) if term in ends), None)
    return said.get(quad) if named is None else ends[named]


def _labelled(quads: Sequence[Quad], style: Style) -> dict[Term, int | None]:
    """The subjects with a label, interval nodes and terms owl:sameAs such a subject included, with their last end."""
    read, vocabulary = read_labels(quads, style), style.vocabulary
    subjects = dict.fromkeys(quad[0] for quad in quads if quad[1] in label_predicates(vocabulary))
    ends = {subject: _latest([final for _, final in read.of(subject)]) for subject in subjects if read.of(subject)}
    nodes = {o: ends[s] for s, p, o, _ in quads if p == vocabulary.interval and s in ends}
    same = {s: ends[o] for s, p, o, _ in quads if p == SAME_AS and o in ends}
    return {**ends, **nodes, **same}


def _latest(finals: Sequence[int | None]) -> int | None:
    known = [final for final in finals if final is not None]
    return max(known) if len(known) == len(finals) else None
