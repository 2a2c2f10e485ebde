"""CSRBench's data as a workload: its files as a stream table, the same whatever the partitions."""

import pytest

from streamgauge import workloads
from streamgauge.formats.stream import elements
from streamgauge.query import parse
from streamgauge.workloads import csrbench
from streamgauge.workloads.parameters import ParameterError
from tests.papers import build


@pytest.mark.parametrize("values", ["double", "integer"])
def test_the_stream_has_the_files_elements(tmp_path, values):
    data = str(build.csrbench(tmp_path) / "stream")
    result = tuple(elements(csrbench.plan(1, data=data, values=values).table()))
    assert result == csrbench.elements(data=data, values=values)
    assert [element.time for element in result] == [1000]


@pytest.mark.prove
def test_spark_gives_the_files_elements(spark, tmp_path):
    data = str(build.csrbench(tmp_path) / "stream")
    for partitions, values in ((None, "double"), (3, "integer")):
        table = workloads.load("csrbench").generate(spark, 1, partitions=partitions, data=data, values=values)
        result = tuple(elements(table.orderBy("sequence", "position").toArrow()))
        assert result == csrbench.elements(data=data, values=values)


def test_integers_are_those_of_whole_values(tmp_path):
    data = build.csrbench(tmp_path) / "stream"
    (data / "data_02.ttl").write_text(build.TURTLE.replace('"90"', '"90.5"'))
    whole, half = csrbench.elements(data=str(data), values="integer")
    assert '"90"^^<http://www.w3.org/2001/XMLSchema#integer>' in {o for _, _, o in whole.added}
    assert '"90.5"^^<http://www.w3.org/2001/XMLSchema#double>' in {o for _, _, o in half.added}


@pytest.mark.parametrize(
    ("given", "told"), [({}, "data is missing"), ({"data": "x", "values": "text"}, "values is 'text'")]
)
def test_bad_parameters_are_named(given, told):
    with pytest.raises(ParameterError, match=told):
        csrbench.elements(**given)


@pytest.mark.parametrize("name", workloads.queries(workloads.load("csrbench")))
def test_its_queries_parse(name):
    query = parse(workloads.query_text(workloads.load("csrbench"), name))
    assert all(window.stream == csrbench.STREAM for window in query.windows)
