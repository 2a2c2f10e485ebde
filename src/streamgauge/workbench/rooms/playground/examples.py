"""Examples that open in the playground: every conformance case, CSRBench's queries, and one to begin with."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from streamgauge.formats.stream import elements
from streamgauge.incremental.budget import TooMuchError
from streamgauge.model.mistake import MistakeError
from streamgauge.model.query import ContinuousQuery
from streamgauge.query import parse
from streamgauge.query.prologue import declared_prefixes
from streamgauge.semantics.static_data import as_printed
from streamgauge.servers.http.deadlines import DEADLINES
from streamgauge.suites.conformance.cases import ConformanceCase, load, text
from streamgauge.workbench.rooms.playground.fields import BASE, fields_of, profile_names, started_from
from streamgauge.workbench.rooms.playground.result import GROWTH, SECONDS
from streamgauge.workbench.rooms.playground.state import PlaygroundState, shortened
from streamgauge.workbench.rooms.playground.stream_text import (
    MOST_ELEMENTS,
    MOST_TRIPLES,
    Names,
    write_static,
    write_text,
)
from streamgauge.workloads import load as load_workload
from streamgauge.workloads import parameters, queries, query_text
from streamgauge.workloads.plan import TablePlan

CSRBENCH: Final = "csrbench"
DRAWN: Final = ("city", "trains", "weather")
"""The workloads that can generate short streams."""
COUNTS: Final = ("stations", "roads", "garages", "areas", "users", "streams", "per_hour", "head_signs", "platforms")
SENSORS: Final = "http://knoesis.wright.edu/ssw/"
MOST_EACH: Final = 100
"""Stations, roads and the like of a stream that is drawn here."""


class ExampleError(MistakeError, ValueError):
    """A name that no example has, or a stream that is too long."""


@dataclass(frozen=True, slots=True)
class PlaygroundExample:
    """An example in the list: its address's ``name``, its ``theme``, its title, a sentence, and its source."""

    name: str
    theme: str
    title: str
    about: str
    source: str


@cache
def _cases() -> dict[str, ConformanceCase]:
    return {case.slug: case for case in load()}


@cache
def examples() -> tuple[PlaygroundExample, ...]:
    """All examples, CSRBench's queries first, then the cases by theme."""
    return (
        *_csrbench(),
        *(PlaygroundExample(name, case.theme, case.name, case.why, case.source) for name, case in _cases().items()),
    )


@dataclass(frozen=True, slots=True)
class OpenedExample:
    """An example that is open: its number from 1, how many there are, and the names of those before and after it."""

    example: PlaygroundExample
    number: int
    count: int
    before: str
    after: str


def opened(name: str) -> OpenedExample | None:
    """The place of an example in the list; ``None`` for a name that none has."""
    names = [example.name for example in examples()]
    if name not in names:
        return None
    at = names.index(name)
    # With an empty name on either side, the first example has none before it and the last none after it.
    before, after = ("", *names, "")[at], (*names, "")[at + 1]
    return OpenedExample(examples()[at], at + 1, len(names), before, after)


def _csrbench() -> Iterator[PlaygroundExample]:
    workload = load_workload(CSRBENCH)
    for name in queries(workload):
        about = "a query of CSRBench over 20 s of drawn weather observations"
        yield PlaygroundExample(f"{CSRBENCH}-{name}", "CSRBench", f"CSRBench {name.upper()}", about, "CSRBench, 2013")


def example(name: str, second: str = "") -> PlaygroundState:
    """The state of an example; with ``second``, a profile's name, as semantics B. ExampleError for an unknown name."""
    if name in _cases():
        state = case_state(_cases()[name])
    elif name.startswith(f"{CSRBENCH}-") and name.removeprefix(f"{CSRBENCH}-") in queries(load_workload(CSRBENCH)):
        state = _csrbench_state(name.removeprefix(f"{CSRBENCH}-"))
    else:
        raise ExampleError(f"there is no example {name[:80]!r}: the list has {len(examples()):,}")
    if second and second not in profile_names():
        raise ExampleError(f"there is no profile {second[:80]!r}: there are {', '.join(profile_names())}")
    return replace(state, b={"profile": second, **fields_of(started_from(second))}) if second else state


def case_state(case: ConformanceCase) -> PlaygroundState:
    """A conformance case as a state: its semantics, and its stream in the simple notation if that can express it."""
    written, dialect = text(case.query, None)
    names = names_of(written, case.query)
    stream, syntax = write_text(case.stream, names)
    own = {"profile": BASE, **fields_of(as_printed(case.query, case.semantics, dialect))}
    return PlaygroundState(
        written.rstrip() + "\n",
        stream,
        syntax,
        write_static(case.query.static, names),
        dialect,
        case.advance,
        shortened(own),
    )


def names_of(written: str, query: ContinuousQuery) -> Names:
    """The names that a query's text gives to a stream's text."""
    return Names(declared_prefixes(written), query.streams)


def _csrbench_state(name: str) -> PlaygroundState:
    """A query of CSRBench over observations of its vocabulary; its own data set is not part of this package."""
    written = query_text(load_workload(CSRBENCH), name)
    if "PREFIX sens-obs:" not in written:
        written = f"PREFIX sens-obs: <{SENSORS}>\n{written}"
    parameters = {"stations": 2, "duration": "20s", "interval": "2s", "humidity": True, "min_temp": 20}
    stream, syntax = generated("weather", 7, parameters, names_of(written, parse(written)))
    # The queries ask for a station of CSRBench's data; one of the drawn stations gets its name.
    stream = stream.replace("System_A4", "System_C1190")
    # The profile searches for t0, but there are no recorded answers that it could be found by.
    own = {"profile": "csparql", "origin": "fixed"}
    return PlaygroundState(written, stream, syntax, a=own, dialect="rspql", advance=20_000)


def generated(workload: str, seed: int, parameters: dict[str, Any], names: Names) -> tuple[str, str]:
    """A small stream of a workload as text with its notation; ExampleError for one that is too long."""
    if workload not in DRAWN:
        raise ExampleError(f"there is no workload {workload[:80]!r} that is drawn here: there are {', '.join(DRAWN)}")
    chosen = load_workload(workload)
    if "data" in parameters:
        raise ExampleError("files of this machine are not read here: leave data out, or load the file itself")
    make = getattr(chosen, "plan", None)
    if make is None:
        raise ExampleError(f"{workload} is made by Spark only: take another workload")
    plan: TablePlan = make(seed, **_streamed(chosen, parameters, names))
    if plan.rows > MOST_TRIPLES:
        raise ExampleError(f"about {plan.rows:,} triples, {MOST_TRIPLES:,} at most: take a shorter duration")
    return write_text(elements(plan.table()), names)


def _streamed(workload: Any, settings: dict[str, Any], names: Names) -> dict[str, Any]:
    """The parameters with the query's stream for the workload's, where it has one."""
    if "stream" in workload.PARAMETERS and "stream" not in settings and names.streams:
        settings = {**settings, "stream": names.streams[0]}
    _refuse_long(parameters(workload, settings))
    return settings


def _refuse_long(values: Mapping[str, object]) -> None:
    """ExampleError for a stream that is too long, by its parameters, before it is drawn."""
    duration, interval = values.get("duration", 0), values.get("interval") or values.get("update") or 1
    if isinstance(duration, int) and isinstance(interval, int) and duration // max(1, interval) > MOST_ELEMENTS:
        raise ExampleError(f"more than {MOST_ELEMENTS:,} intervals: take a shorter duration or a longer interval")
    for name, value in values.items():
        if name in COUNTS and isinstance(value, int) and value > MOST_EACH:
            raise ExampleError(f"{name} is {value:,}: {MOST_EACH:,} at most here")


def drawn(data: object) -> tuple[str, str]:
    """A request for a small stream: ``workload``, ``seed``, ``parameters`` as ``name=value``, ``query``.

    The text and its notation. ExampleError or ParameterError name the mistake.
    """
    if not isinstance(data, dict) or not all(isinstance(value, str) for value in data.values()):
        raise ExampleError("a stream is drawn of texts: workload, seed, parameters, query")
    pairs = [part.partition("=") for part in str(data.get("parameters", "")).split()]
    if wrong := [name for name, sign, _ in pairs if not sign]:
        raise ExampleError(f"{wrong[0][:80]!r} is not a parameter: write name=value")
    seed = str(data.get("seed", "1")).strip()
    if not seed.isdecimal() or len(seed) > 12:
        raise ExampleError(f"{seed[:40]!r} is not a seed: write a whole number")
    try:
        query = str(data.get("query", ""))
        names = names_of(query, parse(query))
    except MistakeError:
        # A query that is being written may be incomplete, and a stream can be drawn without it.
        names = Names({})
    try:
        with DEADLINES.within(SECONDS, GROWTH):
            return generated(data.get("workload", ""), int(seed), {name: value for name, _, value in pairs}, names)
    except TooMuchError as error:
        raise ExampleError(f"{error}: take a shorter stream") from None


FIRST: Final = PlaygroundState(
    """PREFIX : <urn:>
SELECT ?room ?degrees
FROM NAMED WINDOW <w> ON <http://ex.org/streams/test> [RANGE 10s STEP 5s]
WHERE {
  WINDOW <w> {
    ?room :degrees ?degrees .
    FILTER(?degrees >= 21)
  }
}
""",
    """0: kitchen degrees 20.
2500: hall degrees 22.
5000: kitchen degrees 24.
8000: attic degrees 27.
10000: hall degrees 19. kitchen degrees 21.
14000: attic degrees 26.
15000: hall degrees 23.
21000: kitchen degrees 25.
""",
    advance=25_000,
    a={"profile": "rspql"},
    b={"profile": "rspql", "borders": "(o, c]"},
)
"""The state of the playground when it is opened."""
