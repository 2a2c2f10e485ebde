"""What clients of other makers are asked about: departures in the paper's model, terms that are hard to write."""

from collections.abc import Iterator

import pyoxigraph as ox

T = "http://example.org/train#"
X = "http://example.org/"
TMP = "http://example.org/temporal#"
XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
PREFIXES = f"PREFIX t: <{T}> PREFIX x: <{X}> PREFIX tmp: <{TMP}> PREFIX xsd: <{XSD}> PREFIX rdfs: <{RDFS}>\n"
DEPARTURES = 45
FLAT = 12
GRAPHS = 8


def quads() -> Iterator[ox.Quad]:
    """About 500 quads, their literals canonical; the last departures have nothing in graphs."""
    for number in range(DEPARTURES):
        yield from _departure(number, f"{X}g{number % GRAPHS}")
    for number in range(DEPARTURES, DEPARTURES + FLAT):
        yield from _departure(number, None)
    for number in range(GRAPHS):
        yield _quad(f"{X}g{number}", f"{TMP}expiration", _at(7 * number), None)
    yield from _odd()


def _departure(number: int, graph: str | None) -> Iterator[ox.Quad]:
    here = f"{X}d{number}"
    yield _quad(here, f"{RDF}type", ox.NamedNode(f"{T}Departure"), None)
    yield _quad(here, f"{T}headSign", ox.Literal(f"H{number % 6}", language="en" if number % 2 else "nl"), None)
    yield _quad(here, f"{T}routeLabel", ox.Literal(f"IC {number % 5}"), None)
    yield _quad(here, f"{T}departureTime", _at(number), None)
    yield _quad(here, f"{T}stops", _integer(number % 9), None)
    yield _quad(here, f"{T}connects", ox.NamedNode(f"{X}d{number + 1 if number != 20 else 20}"), None)
    if number % 3 == 0:
        yield _quad(here, f"{T}note", ox.Literal(f"note {number}"), None)
    yield _quad(here, f"{T}delay", _integer(number % 4 * 60), graph)
    yield _quad(here, f"{T}platform", ox.Literal(str(number % 7)), graph)


def _odd() -> Iterator[ox.Quad]:
    comment = f"{RDFS}comment"
    yield _quad(f"{X}d1", comment, ox.Literal('a "quoted" \\ word\nand a line'), None)
    yield _quad(f"{X}d2", comment, ox.Literal("Gent-Sint-Pieters – ナ", language="nl"), None)
    yield _quad(f"{X}é?a=b&c=d%20e#f", comment, ox.Literal("a+b & c=d #e %20 {f}"), None)
    yield _quad(f"{X}self", f"{X}self", ox.Literal("itself"), None)


def _quad(subject: str, predicate: str, term: ox.NamedNode | ox.Literal, graph: str | None) -> ox.Quad:
    where = ox.DefaultGraph() if graph is None else ox.NamedNode(graph)
    return ox.Quad(ox.NamedNode(subject), ox.NamedNode(predicate), term, where)


def _integer(number: int) -> ox.Literal:
    return ox.Literal(str(number), datatype=ox.NamedNode(f"{XSD}integer"))


def _at(minute: int) -> ox.Literal:
    return ox.Literal(f"2099-12-06T10:{minute % 60:02}:00Z", datatype=ox.NamedNode(f"{XSD}dateTime"))
