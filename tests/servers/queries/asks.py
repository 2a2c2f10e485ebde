"""Queries and elements that the tests of the service share."""

from streamgauge.engines import load
from streamgauge.model.element import StreamElement
from streamgauge.servers.queries.limits import QueryLimits
from streamgauge.servers.queries.registry import Queries
from tests.notation import triples

IN, OUT = "urn:in", "urn:out"


def select(stream: str = IN, size: int = 2) -> str:
    return (
        f"SELECT ?s ?o FROM NAMED WINDOW <urn:w> ON <{stream}> [RANGE PT{size}S STEP PT{size}S] "
        "WHERE { WINDOW <urn:w> { ?s ?p ?o } }"
    )


def construct(out: str = OUT, stream: str = IN) -> str:
    return (
        f"REGISTER STREAM <{out}> AS CONSTRUCT {{ ?s <urn:seen> ?o }} FROM NAMED WINDOW <urn:w> ON <{stream}> "
        "[RANGE PT2S STEP PT2S] WHERE { WINDOW <urn:w> { ?s <urn:p> ?o } }"
    )


def element(time: int, text: str = "a p b.", stream: str = IN) -> StreamElement:
    return StreamElement(stream, time, 0, triples(text))


def service(**limits) -> Queries:
    return Queries(load, ("live",), QueryLimits(**limits), clock=lambda: 0, steady=lambda: 0.0)
