"""Draws for the standing properties: continuous queries, streams at any time in any order, and how they are watched."""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from streamgauge.model import algebra as al
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import Clock, Counting, Due, Report, Tick
from streamgauge.model.terms import Triple
from streamgauge.query.traversal import every_expression, every_pattern, expressions
from streamgauge.semantics.profiles import PROFILES, profile
from tests.notation import STREAM
from tests.semantics import draw as drawn
from tests.sparql.draw import DEFAULT, LINKS, NUMBERS, OPERATORS, RESOURCES, STRINGS, VALUE

EPOCH = 1_772_352_000_000
STARTS = (0, 0, 3, 40, 1_000, 45_678, EPOCH, EPOCH + 7, -3, -20, -5_000, -EPOCH)
"""Where streams begin, ms: at t0, after it by a few windows or by many, today, and before 1970."""

UNJUDGED = frozenset(name for name in PROFILES if profile(name).clock is not Clock.APPLICATION)
"""Profiles that count when elements arrive, which answers alone do not say."""

PROFILED = tuple(sorted(PROFILES.keys() - UNJUDGED - {"sens", "fragments", "fragments-prototype", "updates"}))
"""Profiles of windows of every kind."""


@dataclass(frozen=True)
class WatchCase:
    """A query and a stream with the options under which they are watched, and judged."""

    query: ContinuousQuery
    stream: tuple[StreamElement, ...]
    options: dict[str, Any]
    end: str | int


@st.composite
def cases(draw: st.DrawFn, operators: frozenset[str] = DEFAULT) -> WatchCase:
    """Any semantics, or a profile at a scale of its time unit; t0 stated in one of four."""
    semantics = draw(st.one_of(drawn.semantics(), st.sampled_from(PROFILED).map(profile)))
    windows = draw(drawn.windows())
    scale = 1
    if semantics.name != "drawn":
        scale = semantics.time_unit // draw(st.sampled_from([1, 1, 2, 4])) or 1
        windows = tuple(
            replace(
                window,
                window=replace(window.window, size=window.window.size * scale, slide=window.window.slide * scale),
            )
            if window.window.kind != "count"
            else window
            for window in windows
        )
    query = draw(drawn.asked(windows, operators if operators != DEFAULT or draw(st.booleans()) else frozenset()))
    query = replace(query, r2s=draw(st.sampled_from([None, *sorted(semantics.r2s_able & frozenset(drawn.CQL))])))
    stream, lateness = draw(_streams(query, scale))
    options: dict[str, Any] = {"semantics": replace(semantics, lateness=lateness)}
    begins = stream[0].time if stream else 0
    if draw(st.integers(0, 3)) == 0:
        options["t0"] = begins + scale * draw(st.integers(-9, 3))
    end = draw(st.sampled_from(["windows", "windows", "stream", begins + 25 * scale]))
    return WatchCase(query, stream, options, end)


@st.composite
def _streams(draw: st.DrawFn, query: ContinuousQuery, scale: int) -> tuple[tuple[StreamElement, ...], int | None]:
    """A stream of the query's from one of STARTS on, in one of four cases out of order, with its lateness bound."""
    start = draw(st.sampled_from(STARTS)) * (scale if draw(st.booleans()) else 1)
    lateness = draw(st.sampled_from([None, None, None, 0, 2, 7]))
    items = draw(st.lists(_ITEM, min_size=draw(st.sampled_from([0, 1, 3, 3])), max_size=9))
    if lateness is None or draw(st.booleans()):
        items = sorted(items, key=lambda item: item[0])
    elements = (
        StreamElement(
            query.streams[stream % len(query.streams)],
            start + scale * time,
            number,
            tuple(dict.fromkeys(TRIPLES[at] for at in places)),
            (),
            None if lasts is None else start + scale * (time + lasts),
        )
        for number, (time, stream, places, lasts) in enumerate(items)
    )
    return tuple(elements), None if lateness is None else lateness * scale


ENGINES = {"broker": ("sens",), "fragments": ("fragments", "fragments-prototype")}
"""Engines of facts that hold until they end, by the profiles of theirs."""

ALL_FACTS = al.Project(al.BGP((al.TriplePattern(drawn.S, drawn.P, drawn.THING),)), (drawn.S, drawn.P, drawn.THING))


@st.composite
def landmark_cases(draw: st.DrawFn, engine: str) -> WatchCase:
    """A query over a landmark window, as the broker and the query streamer answer it.

    The query streamer's reads all facts, as it asks again when the first fact that it read ends.
    """
    semantics = profile(draw(st.sampled_from(ENGINES[engine])))
    slide = draw(st.integers(1, 5))
    windows = (StreamWindow(STREAM, Window(slide, slide, "landmark")),)
    query = draw(drawn.asked(windows, EVERY if draw(st.booleans()) else frozenset()))
    query = replace(query, r2s=draw(st.sampled_from([None, *sorted(semantics.r2s_able & frozenset(drawn.CQL))])))
    stream, _ = draw(_streams(query, 1).filter(lambda result: result[1] is None))
    if semantics.period is not None:
        semantics = replace(semantics, period=draw(st.integers(1, 6)))
        query = replace(query, form=al.Select(ALL_FACTS, ("s", "p", "o")))
        stream = _facts(stream)
    begins = stream[0].time if stream else 0
    options: dict[str, Any] = {"semantics": semantics}
    if draw(st.integers(0, 3)) == 0:
        options["t0"] = max(begins + draw(st.integers(-9, 3)), 0 if semantics.period else -EPOCH * 2)
    return WatchCase(query, stream, options, draw(st.sampled_from(["windows", "stream", begins + 25])))


def _facts(stream: tuple[StreamElement, ...]) -> tuple[StreamElement, ...]:
    """The elements from 1970 on, in order of time, each triple once: a store of facts has one end for each."""
    seen: set[Triple] = set()
    results: list[StreamElement] = []
    first = min((element.time for element in stream), default=0)
    for element in sorted(stream, key=lambda one: one.time):
        added = tuple(triple for triple in element.added if triple not in seen)
        seen.update(added)
        time = element.time - first + abs(first) % 1_000_000
        until = None if element.until is None else time + element.until - element.time
        if added:
            results.append(StreamElement(element.stream, time, len(results), added, (), until))
    return tuple(results)


@st.composite
def spark_cases(draw: st.DrawFn) -> WatchCase:
    """Windows that close by time, reported at closes or periods, as Spark's micro-batches answer them."""
    clocks = [Report.WINDOW_CLOSE], [Report.PERIODIC], [Report.WINDOW_CLOSE, Report.NON_EMPTY]
    report = frozenset(draw(st.sampled_from(clocks)))
    case = draw(cases().filter(lambda one: all(window.window.kind == "time" for window in one.query.windows)))
    period = 3 if Report.PERIODIC in report else None
    semantics = replace(case.options["semantics"], report=report, period=period, due=Due.ALL, content=Counting.SET)
    return replace(case, options=case.options | {"semantics": semantics})


MIXED = (
    *NUMBERS,
    *STRINGS,
    '"2.50"^^<http://www.w3.org/2001/XMLSchema#double>',
    '"1E0"^^<http://www.w3.org/2001/XMLSchema#float>',
    '"01"^^<http://www.w3.org/2001/XMLSchema#integer>',
    '"2026-03-01T08:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>',
    '"true"^^<http://www.w3.org/2001/XMLSchema#boolean>',
    '"x"@en',
    '"x"^^<urn:x:unknown>',
)
"""Values of mixed datatypes."""

TRIPLES = (
    *((one, link, other) for one in RESOURCES for link in LINKS for other in RESOURCES),
    *((one, VALUE, value) for one in RESOURCES for value in MIXED),
)

_ITEM = st.tuples(
    st.integers(0, 18),
    st.integers(0, 1),
    st.lists(st.integers(0, len(TRIPLES) - 1), min_size=1, max_size=3),
    st.sampled_from([None, None, None, None, None, 1, 3, 8]),
)
"""Time, which of the query's streams, places of triples, how long they hold."""


STRANGE = (
    '"2000-01-01"^^<http://www.w3.org/2001/XMLSchema#date>',
    '"NaN"^^<http://www.w3.org/2001/XMLSchema#double>',
    '"99999999999999999999999"^^<http://www.w3.org/2001/XMLSchema#integer>',
    '"0.1234567890123456789012"^^<http://www.w3.org/2001/XMLSchema#decimal>',
    '"1"^^<http://www.w3.org/2001/XMLSchema#float>',
    '"x"@de',
    '"5"^^<urn:x:unknown>',
    "<urn:x:a>",
)
UNMATCHED = "<urn:x:unmatched>"
"""A predicate of no pattern."""


@dataclass(frozen=True)
class UnmatchedCase:
    """A case without and with triples that no pattern of the query can match and no tick or report can notice."""

    case: WatchCase
    more: tuple[StreamElement, ...]


@st.composite
def unmatched(draw: st.DrawFn) -> UnmatchedCase:
    """Triples that are added to elements, or as elements of their own, so that by the definition nothing changes.

    They hold exactly as long as a triple that is there. So contents stay as empty as they were, and where reports
    depend on content changes they are added to elements that have a triple of their own, which comes and goes with
    them. An element or triple more is a tick more: it is added only where no report depends on such ticks.
    """
    case = draw(cases(EVERY).filter(lambda one: _constant(one.query)))
    semantics = case.options["semantics"]
    clocked = bool(semantics.report & {Report.WINDOW_CLOSE, Report.PERIODIC}) or semantics.tick is Tick.TIME
    counts = any(window.window.kind == "count" for window in case.query.windows)
    more: list[StreamElement] = []
    copies = Counter(triple for element in case.stream for triple in element.added)
    for number, window in enumerate(case.stream):
        own = any(copies[triple] == 1 for triple in window.added)
        changes = Report.CONTENT_CHANGE in semantics.report
        unseen = not counts and (clocked or semantics.tick is not Tick.TUPLE) and (own or not changes)
        if not unseen or not draw(st.booleans()):
            more.append(window)
            continue
        triple = (f"<urn:x:{number}>", UNMATCHED, draw(st.sampled_from(STRANGE)))
        if draw(st.booleans()) and clocked and semantics.lateness is None:
            more += [window, replace(window, added=(triple,))]
        else:
            at = draw(st.integers(0, len(window.added)))
            more.append(replace(window, added=(*window.added[:at], triple, *window.added[at:])))
    return UnmatchedCase(case, tuple(replace(element, sequence=number) for number, element in enumerate(more)))


EVERY = frozenset(OPERATORS)


def _constant(query: ContinuousQuery) -> bool:
    """Whether every triple pattern has a constant predicate."""
    groups = [item for item in every_pattern(query.form.pattern) if isinstance(item, al.BGP)]
    groups += [
        inner
        for pattern in every_pattern(query.form.pattern)
        for tree in expressions(pattern)
        for part in every_expression(tree)
        if isinstance(part, al.Exists)
        for inner in every_pattern(part.pattern)
        if isinstance(inner, al.BGP)
    ]
    return all(isinstance(pattern.predicate, str) for group in groups for pattern in group.patterns)


@st.composite
def mutated(draw: st.DrawFn, answers: list[Answer]) -> list[Answer]:
    """Answers as they are, or with one lost, sent twice, with fewer or other rows, or at another instant."""
    results = list(answers)
    for _ in range(draw(st.integers(0, 2))):
        if not results:
            break
        at, other = draw(st.integers(0, len(results) - 1)), draw(st.integers(0, len(results) - 1))
        match draw(st.integers(0, 4)):
            case 0:
                del results[at]
            case 1:
                results.insert(at, results[at])
            case 2:
                results[at] = replace(results[at], added=results[at].added[1:])
            case 3:
                results[at] = replace(results[at], added=results[other].added)
            case _:
                results[at] = replace(results[at], instant=results[other].instant)
    return results
