"""A small engine written out for the tests: a query text, a stream and a semantics, and what it reports.

What windows hold and when they report is the definition's; answers are asked of pyoxigraph by text, so that a fault
can be put into the text, into a window's triples, or into the reports.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from random import Random

import pyoxigraph as ox

from streamgauge.formats.canonical import Canonical
from streamgauge.model.algebra import QueryForm
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.run import Fed, Run, RunHeader
from streamgauge.model.semantics import R2S, EmptyAggregate, Grain, Report, Semantics
from streamgauge.model.terms import Row, Triple
from streamgauge.query import parse_sparql
from streamgauge.semantics.arrivals import admit
from streamgauge.semantics.definition import due_reports

STREAM = "http://ex.org/streams/test"
KEPT = "urn:kept"
SSN = "http://knoesis.wright.edu/ssw/ont/sensor-observation.owl#"
WEATHER = "http://knoesis.wright.edu/ssw/ont/weather.owl#"
SSW = "http://knoesis.wright.edu/ssw/"
PREFIXES = f"PREFIX om-owl: <{SSN}> PREFIX weather: <{WEATHER}> PREFIX sens-obs: <{SSW}> "
DOUBLE = "http://www.w3.org/2001/XMLSchema#double"

Told = list[tuple[int, list[Row]]]
"""Reports as (instant ms, rows)."""

Graph = list[tuple[int, Triple]]
"""Triples with their times (ms)."""


@dataclass(frozen=True)
class World:
    """An engine as it is: ``right`` is what it should be when something was put into it."""

    text: str
    window: Window
    semantics: Semantics
    elements: tuple[StreamElement, ...]
    t0: int
    advanced_to: int
    static: tuple[Triple, ...] = ()
    hold: Callable[["World", int, int, Graph], Graph] | None = None
    gate: Callable[[list[list[Row]]], bool] | None = None
    matches: str = ""
    over_nothing: str | None = None
    rows: Callable[[list[Row]], list[Row]] | None = None

    def query(self) -> ContinuousQuery:
        return ContinuousQuery(_parsed(self.text), (StreamWindow(STREAM, self.window),),
                               static=self.static)  # fmt: skip

    def facts(self) -> Graph:
        return [(element.time, triple) for element in self.elements for triple in element.added]


@cache
def _parsed(text: str) -> QueryForm:
    return parse_sparql(PREFIXES + text)


_CANONICAL = Canonical()
_STORES: dict[tuple[object, ...], list[Row]] = {}


def ask(text: str, graph: Sequence[Triple], kept: Sequence[Triple]) -> list[Row]:
    """A SELECT over a graph, with everything so far in the graph KEPT."""
    key = (text, tuple(graph), tuple(kept) if KEPT in text else ())
    if key not in _STORES:
        if len(_STORES) > 50_000:
            _STORES.clear()
        store = ox.Store()
        lines = [f"{s} {p} {o} ." for s, p, o in graph]
        lines += [f"{s} {p} {o} <{KEPT}> ." for s, p, o in kept] if KEPT in text else []
        store.bulk_extend(ox.parse("\n".join(lines).encode(), format=ox.RdfFormat.N_QUADS))
        result = store.query(PREFIXES + text)
        width = range(len(result.variables))
        _STORES[key] = [tuple(None if row[i] is None else _CANONICAL.term(row[i]) for i in width) for row in result]
    return list(_STORES[key])


def told(world: World) -> Told:
    """What the engine reports."""
    query = world.query()
    admitted, _ = admit(world.elements, world.semantics, query.windows, world.t0)
    semantics = world.semantics
    free = replace(semantics, report=semantics.report - {Report.NON_EMPTY}) if world.hold else semantics
    before: Counter[Row] = Counter()
    seen: list[list[Row]] = []
    results: Told = []
    facts = world.facts()
    for number, (due, contents) in enumerate(due_reports(admitted, query, free, world.advanced_to, world.t0)):
        graph = [(arrival.time, triple) for inside in contents for arrival in inside for triple in arrival.triples]
        if world.hold:
            graph = world.hold(world, number, due.instant, graph)
            if Report.NON_EMPTY in semantics.report and not graph:
                continue
        so_far = [triple for time, triple in facts if world.t0 <= time <= due.last]
        triples = [*dict.fromkeys(triple for _, triple in graph), *world.static]
        if world.gate:
            seen.append(ask(world.matches, triples, so_far))
            if not world.gate(seen):
                continue
        rows = ask(world.text, triples, so_far)
        if world.matches and not ask(world.matches, triples, so_far):
            rows = _over_nothing(world, rows)
        rows = world.rows(rows) if world.rows else rows
        sent, before = _streamed(semantics.r2s, before, Counter(rows)), Counter(rows)
        if sent or semantics.notify_empty:
            results.append((due.instant, sent))
    return results


def _over_nothing(world: World, rows: list[Row]) -> list[Row]:
    if world.over_nothing is not None:
        return [(world.over_nothing,) for _ in rows]
    match world.semantics.empty_aggregate:
        case EmptyAggregate.UNBOUND:
            return [(None,) for _ in rows]
        case EmptyAggregate.NO_ROW:
            return []
        case EmptyAggregate.EMPTY_STRING:
            return [('""',) for _ in rows]
        case _:
            return rows


def _streamed(r2s: R2S, before: Counter[Row], now: Counter[Row]) -> list[Row]:
    kept = {R2S.RSTREAM: now, R2S.ISTREAM: now - before, R2S.DSTREAM: before - now}[r2s]
    return list(kept.elements())


def run(right: World, reports: Told, named: bool, rng: Random) -> Run:
    """A recorded run of these reports, declared to be what ``right`` is."""
    query = right.query()
    variables = query.form.variables
    answers = []
    for instant, rows in reports:
        rows = rng.sample(rows, len(rows))
        bags = [rows] if right.semantics.grain is Grain.REPORT else [[row] for row in rows]
        at = instant if named else None
        answers.extend(Answer(variables, tuple(bag), instant=at, received=instant) for bag in bags)
    fed = [Fed(element.sequence, element.time, 0, 0, len(element.added)) for element in right.elements]
    fed.append(Fed(-1, right.advanced_to, 0, 0))
    header = RunHeader("injected", query, right.text, "rspql", right.semantics, right.advanced_to, 0)
    return Run(header, tuple(answers), tuple(fed))


def observations(rng: Random, count: int, step: int, sensors: int) -> tuple[StreamElement, ...]:
    """Observations of temperature and humidity, one element each; times are multiples of ``step`` (ms)."""
    time, elements = 0, []
    for n in range(count):
        time += step * rng.choice((0, 1, 1, 1, 2, 2, 3))
        kind = rng.choice(("AirTemperature", "AirTemperature", "AirTemperature", "RelativeHumidity"))
        value = rng.choice((*range(70, 100, 3), *range(20, 60, 7)))
        obs, result = f"<{SSW}Observation_{n}>", f"<{SSW}Measure_{n}>"
        triples = (
            (obs, f"<{SSN}observedProperty>", f"<{WEATHER}_{kind}>"),
            (obs, f"<{SSN}procedure>", f"<{SSW}System_C{rng.randrange(sensors)}>"),
            (obs, f"<{SSN}result>", result),
            (result, f"<{SSN}floatValue>", f'"{value}"^^<{DOUBLE}>'),
        )
        elements.append(StreamElement(STREAM, time, n, triples))
    return tuple(elements)
