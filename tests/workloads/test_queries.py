"""Every query of every workload: read, printed in each dialect that can say it, answered rightly by `live`."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache

import pytest

from streamgauge import workloads
from streamgauge.engines import load
from streamgauge.formats.stream import elements as elements_of
from streamgauge.model.answer import Answer
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.run import Fed, Run, RunHeader
from streamgauge.model.semantics import Semantics, StaticData
from streamgauge.model.verdict import Judgement
from streamgauge.oracle.expected.reports import definition
from streamgauge.oracle.judging.oracle import JudgingRules, check
from streamgauge.query import dialect_names, fill, parse, print_query
from streamgauge.semantics.profiles import RSPQL
from streamgauge.workloads.plan import Maker

VALUES = {
    "WSIZE": "4s",
    "WSLIDE": "2s",
    "TEMP": "50.0",
    "VARIATION_THRESHOLD": "0.0",
    "WIND": "60",
    "DIFFERENCE": "20",
    "POPULATION": "300000",
    "NEAR": "0.01",
    "CONGESTED": "10",
    "TIMES": "1",
    "TOWN": "2",
    "PLATFORM": "1",
    "FROM": "2014-12-06T00:10:00Z",
    "TO": "2014-12-06T00:20:00Z",
}


@dataclass(frozen=True)
class Small:
    """A small stream of a workload, on which each of these queries has something to say."""

    workload: str
    parameters: Mapping[str, object]
    queries: tuple[str, ...]
    values: Mapping[str, str] = field(default_factory=dict)
    semantics: Semantics = RSPQL


_SRBENCH = tuple(name for name in workloads.queries(workloads.load("weather")) if name.startswith("srbench"))
_ALL = {"stations": 10, "duration": "8s", "interval": "2s", "observes": "all", "static_triples": 400}
SMALL = (
    Small("weather", {"stations": 4, "duration": "6s"}, ("average", "count-by-sensor", "distinct-sensors", "select")),
    Small("weather", {"stations": 4, "duration": "6s"}, ("variation",)),
    Small("weather", {**_ALL, "arrival": "poisson"}, _SRBENCH),
    Small("weather", {"stations": 6, "duration": "6s", "static_triples": 200}, ("streams-1",)),
    Small("weather", {"stations": 6, "duration": "6s", "static_triples": 200, "streams": 2}, ("streams-2",)),
    Small(
        "weather",
        {"stations": 8, "duration": "6s", "interval": "3s", "static_triples": 200, "streams": 4},
        ("streams-4",),
        {"TEMP": "10.0"},
    ),
    Small("weather", {"stations": 4, "duration": "12s"}, ("windows-1", "windows-2", "windows-4")),
    Small("city", {"duration": "12s"}, tuple(f"q{number}" for number in range(1, 14))),
    Small(
        "trains",
        {"update": "2s", "duration": "8s", "delay_changes": 0.3, "head_signs": 2, "platforms": 2},
        workloads.queries(workloads.load("trains")),
        semantics=replace(RSPQL, static_data=StaticData.BESIDE),  # their windows ask for static facts too
    ),
)
STANDING = ("university",)
"""Workloads whose queries stand on a knowledge base, not on streams; tests/servers/broker asks them."""

CASES = [(small, name) for small in SMALL for name in small.queries]
SILENT = frozenset[tuple[str, str]]()
"""Queries that say nothing on their small stream."""

TABLES = Maker(lambda: pytest.fail("small streams are made in this process"))
_generated = cache(
    lambda name, parameters: (
        tuple(elements_of(workloads.load(name).plan(1, **dict(parameters)).table())),
        tuple(TABLES.static_triples(workloads.load(name), 1, dict(parameters))),
    )
)


def asked(workload: str, name: str, values: Mapping[str, str] = VALUES) -> ContinuousQuery:
    text = workloads.query_text(workloads.load(workload), name)
    return parse(fill(text, {key: value for key, value in values.items() if f"${{{key}}}" in text}), "rspql")


def answered(query: ContinuousQuery, elements, advance: int, semantics: Semantics = RSPQL) -> tuple[Answer, ...]:
    answers: list[Answer] = []
    session = load("live").start(query, semantics, answers.append)
    for element in elements:
        session.push(element)
    session.advance(advance)
    session.close()
    return tuple(answers)


def test_every_query_is_tried_on_a_small_stream():
    tried = {(small.workload, name) for small, name in CASES}
    known = {(name, query) for name in workloads.names() for query in workloads.queries(workloads.load(name))}
    assert tried | {entry for entry in known if entry[0] in ("csrbench", *STANDING)} == known


@pytest.mark.slow
@pytest.mark.parametrize(("small", "name"), CASES, ids=[f"{small.workload}-{name}" for small, name in CASES])
def test_live_answers_rightly(small: Small, name: str):
    elements, static = _generated(small.workload, tuple(small.parameters.items()))
    query = asked(small.workload, name, {**VALUES, **small.values}).with_static(static)
    assert load("live").refuse(query, small.semantics) is None
    advance = max(element.time for element in elements)
    fed = [Fed(element.sequence, element.time, element.time, element.time, len(element.added)) for element in elements]
    header = RunHeader("live", query, "", "rspql", small.semantics, advance, 0)
    run = Run(header, answered(query, elements, advance, small.semantics), (*fed, Fed(-1, advance, advance, advance)))
    verdict = check(run, definition(elements), elements[0].time, JudgingRules())
    assert verdict.judgement is Judgement.RIGHT, verdict.reason
    says = sum(window.expected for window in verdict.windows)
    assert bool(says) is ((small.workload, name) not in SILENT)


EVERY = [
    (name, query)
    for name in workloads.names()
    if name not in STANDING
    for query in workloads.queries(workloads.load(name))
]


@pytest.mark.slow
@pytest.mark.parametrize(("workload", "name"), EVERY, ids=[f"{workload}-{name}" for workload, name in EVERY])
def test_every_query_is_said_in_each_dialect_that_can(workload: str, name: str):
    query = asked(workload, name)
    assert parse(print_query(query, "rspql"), "rspql") == query
    for dialect in set(dialect_names()) - {"rspql"}:
        text = said(query, dialect)
        again = query if text is None else parse(text, dialect)
        assert by_window(again) == by_window(query), dialect


def said(query: ContinuousQuery, dialect: str) -> str | None:
    try:
        return print_query(query, dialect)
    except ValueError:
        return None


def by_window(query: ContinuousQuery) -> str:
    """The query's algebra, its windows called by their stream and size."""
    form = repr(query.form)
    for window in query.windows:
        form = form.replace(str(window.name), f"{window.stream} {window.window}")
    return form


SAID = {
    "weather-select": 4,
    "weather-srbench-q4": 4,
    "weather-srbench-q12": 2,
    "weather-srbench-q7": 2,
    "weather-streams-4": 2,
}


@pytest.mark.parametrize("name", SAID)
def test_how_many_dialects_can_say_it(name: str):
    query = asked(*name.split("-", 1))
    assert sum(said(query, dialect) is not None for dialect in dialect_names()) == SAID[name]
