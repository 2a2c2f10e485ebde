"""Weather stations in memory: a stream whose elements are made as they are asked for, queries of it, ways to report.

Only the package's core is imported here, so that the memory of a process that answers the queries is its own.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import R2S
from streamgauge.query import parse_sparql
from streamgauge.semantics.profiles import CQELS, CSPARQL

STREAM: Final = "http://ex.org/streams/test"
ONTOLOGY: Final = "http://knoesis.wright.edu/ssw/ont/"
PREFIXES: Final = f"PREFIX om-owl: <{ONTOLOGY}sensor-observation.owl#> PREFIX weather: <{ONTOLOGY}weather.owl#> "
OBSERVED: Final = (
    "?obs{n} om-owl:observedProperty weather:_AirTemperature ; om-owl:procedure ?sensor ; "
    "om-owl:result ?res{n} . ?res{n} om-owl:floatValue ?value{n} . "
)
HUB: Final = (
    "SELECT ?obs {{ ?obs om-owl:observedProperty ?all {} {{ ?one om-owl:observedProperty ?all ; om-owl:procedure "
    "<http://knoesis.wright.edu/ssw/System_{}> }} }}"
)
_HUBS: Final = {
    "optional": ("OPTIONAL", "A0"),
    "exists": ("FILTER EXISTS", "A0"),
    "not_exists": ("FILTER NOT EXISTS", "none"),
    "minus": ("MINUS", "none"),
}
QUERIES: Final = {
    "select": "SELECT ?sensor ?obs ?value { " + OBSERVED.format(n="") + "FILTER(?value > 50.0) }",
    "average": "SELECT (AVG(?value) AS ?avg) { " + OBSERVED.format(n="") + "}",
    "variation": "SELECT ?sensor ?obs1 ?obs2 { "
    + OBSERVED.format(n=1)
    + OBSERVED.format(n=2)
    + "FILTER(?value1 - ?value2 > 60.0) }",
    "top": "SELECT ?sensor ?value { " + OBSERVED.format(n="") + "} ORDER BY DESC(?value) LIMIT 10",
    "optionals": "SELECT * { ?obs om-owl:procedure ?sensor OPTIONAL { ?obs om-owl:result ?res } "
    "OPTIONAL { ?res om-owl:floatValue ?value } OPTIONAL { ?res om-owl:uom ?unit } }",
    **{f"hub_{name}": HUB.format(*bounds) for name, bounds in _HUBS.items()},
}
"""Without a window: the queries of YABench's experiments 1 to 3; the ten greatest; OPTIONALs that use what another may
leave unbound; pairs of all observations with those of one station, or none, by a property that all have."""

RUNS = (
    ("close 5 s/5 s", CSPARQL, Window(5000, 5000)),
    ("close 5 s/1 s", CSPARQL, Window(5000, 1000)),
    ("change 5 s/5 s", replace(CQELS, name="change", r2s=R2S.ISTREAM), Window(5000, 5000)),
)
"""Ways to report, with semantics and window (ms)."""


def window_query(name: str, size: int, slide: int) -> ContinuousQuery:
    """One of the queries over a window of that size and slide, ms."""
    text = PREFIXES + QUERIES[name]
    return ContinuousQuery(parse_sparql(text), (StreamWindow(STREAM, Window(size, slide)),), sparql=text)


def observations(stations: int, second: int) -> Iterator[StreamElement]:
    """One second of the stream: every station once, at equal distances, values that go round."""
    for station in range(stations):
        time_ = second * 1000 + station * 1000 // stations
        me, result = (
            f"<http://knoesis.wright.edu/ssw/{kind}_A{station}_{time_}>" for kind in ("Observation", "Measure")
        )
        value = (station * 7 + second * 13) % 100
        yield StreamElement(STREAM, time_, second * stations + station, _triples(me, result, station, value))


def _triples(me: str, result: str, station: int, value: int) -> tuple[tuple[str, str, str], ...]:
    om, weather, rdf = (
        f"<{ONTOLOGY}sensor-observation.owl#",
        f"<{ONTOLOGY}weather.owl#",
        "<http://www.w3.org/1999/02/22-rdf",
    )
    return (
        (me, f"{rdf}-syntax-ns#type>", f"{weather}TemperatureObservation>"),
        (me, f"{om}observedProperty>", f"{weather}_AirTemperature>"),
        (me, f"{om}procedure>", f"<http://knoesis.wright.edu/ssw/System_A{station}>"),
        (me, f"{om}result>", result),
        (result, f"{rdf}-syntax-ns#type>", f"{om}MeasureData>"),
        (result, f"{om}floatValue>", f'"{value}"^^<http://www.w3.org/2001/XMLSchema#float>'),
        (result, f"{om}uom>", f"{weather}fahrenheit>"),
    )
