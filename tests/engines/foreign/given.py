"""What the tests of foreign engines ask: a small weather stream, queries over it, and whether an engine is here."""

from collections.abc import Iterable, Iterator
from random import Random

import pytest

from streamgauge.engines import EngineUnavailableError, command, load
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Semantics
from streamgauge.model.terms import XSD
from streamgauge.query import parse
from tests.notation import STREAM

SELECT = "SELECT ?obs ?value"
AVERAGE = "SELECT (AVG(?value) AS ?mean)"


def asked(head: str = SELECT, size: int = 5, slide: int = 5, over: float = 50.0) -> ContinuousQuery:
    """The temperatures over a bound, or what ``head`` makes of them; size and slide in s."""
    return parse(
        f"""PREFIX : <urn:> {head} FROM NAMED WINDOW :w ON <{STREAM}> [RANGE {size}s STEP {slide}s]
        WHERE {{ WINDOW :w {{ ?obs :of :temperature ; :result ?res . ?res :value ?value .
        FILTER(?value > {over}) }} }}"""
    )


def weather(stations: int, seconds: int) -> Iterator[StreamElement]:
    """An observation of three triples per station and second, each station at an offset of its own."""
    drawn = Random(stations)
    offsets = sorted(drawn.randrange(1000) for _ in range(stations))
    times = [second * 1000 + offset for second in range(seconds) for offset in offsets]
    for number, time in enumerate(times):
        seen, result, value = f"<urn:o{number}>", f"<urn:r{number}>", f'"{drawn.randrange(100)}"^^<{XSD}float>'
        triples = ((seen, "<urn:of>", "<urn:temperature>"), (seen, "<urn:result>", result))
        yield StreamElement(STREAM, time, number, (*triples, (result, "<urn:value>", value)))


def here(engine: str) -> None:
    """Skip the test, with the engine's own sentence, where what it needs is absent."""
    try:
        command(load(engine))
    except EngineUnavailableError as error:
        pytest.skip(str(error))


def said(
    engine: str, query: ContinuousQuery, semantics: Semantics, stream: Iterable[StreamElement], advance: int
) -> list[Answer]:
    """All answers of an engine to a stream whose time comes to ``advance`` (ms)."""
    answers: list[Answer] = []
    session = load(engine).start(query, semantics, answers.append)
    for element in stream:
        session.push(element)
    session.advance(advance)
    session.close()
    return answers
