"""CSRBench's data (hurricane Charley, 2004): 34 graphs, one per second, read from the original files."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from streamgauge.formats.stream import to_table
from streamgauge.formats.streams import read_stream
from streamgauge.model.element import StreamElement
from streamgauge.model.terms import XSD, Term
from streamgauge.workloads import on_spark
from streamgauge.workloads.parameters import Parameter, ParameterError, choice, duration, resolve
from streamgauge.workloads.plan import TablePlan, table_plan

NAME = "csrbench"
ABOUT = "CSRBench's weather observations during hurricane Charley, replayed from its files (data_NN.ttl, TriG or n3t)."
QUERIES = Path(__file__).parent / "queries"
STREAM = "http://ex.org/streams/test"

PARAMETERS = {
    "data": Parameter(str, "", "the folder of data_NN.ttl, or its TriG or n3t file"),
    "interval": Parameter(duration, 1000, "time between two graphs (ms, or 1s)"),
    "values": Parameter(
        choice("double", "integer"), "double", "datatype of the values; CSRBench fed integers to C-SPARQL"
    ),
    "stream": Parameter(str, STREAM, "IRI of the stream"),
}

_DOUBLE = f"^^<{XSD}double>"


def plan(seed: int, **parameters_: object) -> TablePlan:
    """The plan of the stream table (formats.stream.SCHEMA) from the files; the seed has no effect.

    ParameterError names a missing or invalid parameter, FormatError the file and line.
    """
    del seed
    return table_plan(to_table(elements(**parameters_)))


generate = on_spark(plan)


def elements(**parameters_: object) -> tuple[StreamElement, ...]:
    """The stream as elements, one per time."""
    values = resolve(NAME, PARAMETERS, parameters_)
    if not values["data"]:
        raise ParameterError(f"{NAME}: data is missing: name the folder or file of CSRBench's stream")
    interval = values["interval"]
    assert isinstance(interval, int)
    elements_ = read_stream(str(values["data"]), stream=str(values["stream"]), interval=interval)
    return tuple(_as_integers(elements_)) if values["values"] == "integer" else tuple(elements_)


def _as_integers(stream: Iterable[StreamElement]) -> Iterator[StreamElement]:
    """The elements with integral xsd:double values as xsd:integer, as CSRBench's driver fed them to C-SPARQL."""

    def cast(term: Term) -> Term:
        if not term.endswith(_DOUBLE):
            return term
        value = float(term[1 : term.rindex('"')])
        return f'"{int(value)}"^^<{XSD}integer>' if value.is_integer() else term

    for element in stream:
        yield replace(element, added=tuple((s, p, cast(o)) for s, p, o in element.added))
