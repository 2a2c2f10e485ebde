"""Spark expects what the definition expects on drawn streams, semantics, windows and queries."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.bench.expected import refuse_spark
from streamgauge.bench.expecting import expected_reports
from streamgauge.bench.judge import Means
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import Changes, EmptyAggregate
from streamgauge.wire.stream import write
from tests.engines.test_live import semantics, streams
from tests.notation import STREAM
from tests.sparql.draw import queries


def agree(spark, data) -> None:
    form = data.draw(queries())
    query = ContinuousQuery(
        form, (StreamWindow(STREAM, Window(data.draw(st.integers(1, 8)), data.draw(st.integers(1, 8)))),)
    )
    chosen = replace(data.draw(semantics()), changes=Changes.BOTH, empty_aggregate=EmptyAggregate.SPARQL)
    elements = data.draw(streams().filter(bool))
    if refuse_spark(query, chosen) is not None:
        return
    with TemporaryDirectory() as folder:
        table = Path(folder) / "stream.parquet"
        write(elements, table)
        wanted = expected_reports(query, chosen, table, Means(lambda: spark, "definition"), advance_to=24)
        found = expected_reports(query, chosen, table, Means(lambda: spark, "spark"), advance_to=24)
    assert [(report.due, report.content) for report in found] == [(report.due, report.content) for report in wanted]
    assert [Counter(report.rows) for report in found] == [Counter(report.rows) for report in wanted]


@settings(max_examples=4)
@given(st.data())
def test_drawn_semantics(spark, data):
    agree(spark, data)


@pytest.mark.prove
@settings(max_examples=100)
@given(st.data())
def test_many_drawn_semantics(spark, data):
    agree(spark, data)
