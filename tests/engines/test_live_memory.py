"""What a session of `live` holds is bounded by its windows: its objects are counted while ever-new terms come."""

import gc
import types
from dataclasses import replace

import pytest

from streamgauge.engines import load
from streamgauge.incremental import conditions
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import R2S
from streamgauge.query import parse_sparql
from streamgauge.semantics.profiles import PROFILES
from streamgauge.sparql import values
from tests.notation import STREAM

CLOSE, CHANGE = PROFILES["rspql"], replace(PROFILES["cqels"], t0=0)
WINDOWS = {
    "tumbling": (CLOSE, Window(100, 100)),
    "sliding": (CLOSE, Window(100, 20)),
    "count": (CLOSE, Window(40, 10, "count")),
    "changes": (replace(CHANGE, r2s=R2S.ISTREAM), Window(100, 20)),
    "changes, whole answers": (replace(CHANGE, r2s=R2S.RSTREAM, r2s_able=frozenset(R2S)), Window(100, 20)),
    "late": (replace(CLOSE, lateness=10), Window(100, 20)),
}
QUERIES = {
    "select": "SELECT ?o ?v { ?o <urn:of> ?s . ?o <urn:value> ?v FILTER(?v > 10) }",
    "self-join": "SELECT ?o ?u { ?o <urn:of> ?s ; <urn:value> ?v . ?u <urn:of> ?s ; <urn:value> ?w "
    "FILTER(?v - ?w > 5) }",
    "operators": "SELECT DISTINCT ?o ?n { ?o <urn:of> ?s OPTIONAL { ?o <urn:name> ?n } MINUS { ?o <urn:value> 3 } }",
    "groups": "SELECT ?o (AVG(?v) AS ?a) (MAX(?v) AS ?m) (COUNT(DISTINCT ?s) AS ?c) "
    "{ ?o <urn:of> ?s ; <urn:value> ?v } GROUP BY ?o HAVING(AVG(?v) > 2)",
    "bind": "SELECT ?x { ?o <urn:value> ?v BIND(CONCAT(STR(?o), STR(?v)) AS ?x) FILTER NOT EXISTS { ?o <urn:no> ?v } }",
    "path": "SELECT ?o { ?o <urn:next>+ ?n . ?n <urn:of> ?s }",
    "construct": "CONSTRUCT { ?o <urn:was> ?s } WHERE { ?o <urn:of> ?s }",
    "timed": "PREFIX f: <http://larkc.eu/csparql/sparql/jena/ext#> "
    "SELECT ?o { ?o <urn:of> ?s FILTER(f:timestamp(?o) > 5) }",
}
INTEGER = "^^<http://www.w3.org/2001/XMLSchema#integer>"


def observation(number, time):
    """Five triples of which all subjects and most objects are new."""
    me, before = f"<urn:o{number}>", f"<urn:o{number - 1}>"
    value = f'"{number}"{INTEGER}'
    triples = (
        (me, "<urn:of>", f"<urn:s{number % 3}>"),
        (me, "<urn:value>", value),
        (me, "<urn:name>", f'"{number}"'),
        (me, "<urn:next>", before),
        (me, "<urn:unasked>", value),
    )
    return StreamElement(STREAM, time, number, triples)


def held(root):
    """The number of entries of all containers that an object reaches, functions by what they close over."""
    seen, waiting, entries = set(), [root], 0
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, type | types.ModuleType | str | int):
            continue
        seen.add(id(thing))
        if isinstance(thing, types.FunctionType):
            waiting += thing.__closure__ or ()
            continue
        if isinstance(thing, types.BuiltinFunctionType):
            waiting.append(thing.__self__)
            continue
        result = gc.get_referents(thing)
        entries += len(result)
        waiting += result
    return entries


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(QUERIES))
@pytest.mark.parametrize("over", sorted(WINDOWS))
def test_a_session_does_not_grow_with_the_stream(over, name, monkeypatch):
    monkeypatch.setattr(conditions, "REMEMBERED_RESULTS", 20)
    monkeypatch.setattr(values, "_MAX_CACHED", 20)
    semantics, window = WINDOWS[over]
    query = ContinuousQuery(parse_sparql(QUERIES[name]), (StreamWindow(STREAM, window),))
    session, sizes = load("live").start(query, semantics, lambda _answer: None), []
    for number in range(1, 451):
        session.push(observation(number, number * 5))
        if number % 20 == 0:
            session.advance(number * 5)
        if number in (150, 450):
            sizes.append(held(session))
    assert sizes[1] <= sizes[0] * 1.1
    assert sizes[0] > 20
