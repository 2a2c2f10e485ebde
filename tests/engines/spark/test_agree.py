"""Spark says what the definition says: drawn streams in drawn micro-batches, queries and semantics."""

import tempfile
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from streamgauge.engines.spark import micro_batches, refuse
from streamgauge.engines.spark.micro_batches import INTERPRETED, configured, set_all
from streamgauge.model.semantics import Due, Origin, Report
from streamgauge.semantics.arrivals import admit, origins
from streamgauge.semantics.definition import expected, operator
from streamgauge.semantics.definition import refuse as refuse_definition
from streamgauge.semantics.refusal import RefusedError
from tests.engines.spark.batched import said
from tests.engines.test_live import by_report
from tests.semantics.draw import asked, semantics, streams, windows

FEW = 2 if settings.default.max_examples < 1000 else 400


@st.composite
def disordered(draw, elements):
    """The elements as they came when some were delayed: numbered by arrival, times not in order."""
    delays = draw(st.lists(st.integers(0, 4), min_size=len(elements), max_size=len(elements)))
    order = sorted(range(len(elements)), key=lambda n: (elements[n].time + delays[n], n))
    return tuple(replace(elements[place], sequence=number) for number, place in enumerate(order))


@st.composite
def cut(draw, elements):
    """The elements in consecutive batches, none of them empty."""
    borders = sorted(draw(st.sets(st.integers(1, max(1, len(elements) - 1)), max_size=3)))
    ends = [0, *(border for border in borders if border < len(elements)), len(elements)]
    return [elements[low:high] for low, high in pairwise(ends) if low < high]


@settings(max_examples=FEW, phases=(Phase.explicit, Phase.reuse, Phase.generate))  # to shrink takes minutes
@given(st.data())
def test_drawn_batches_say_what_the_definition_says(spark, data):
    timed = windows().filter(lambda given: all(item.window.kind != "count" for item in given))
    query = data.draw(asked(data.draw(timed)))
    report = data.draw(
        st.sampled_from([{Report.WINDOW_CLOSE}, {Report.WINDOW_CLOSE, Report.NON_EMPTY}, {Report.PERIODIC}])
    )
    period = data.draw(st.integers(1, 5)) if Report.PERIODIC in report else None
    chosen = replace(data.draw(semantics()), report=frozenset(report), period=period, due=Due.ALL)
    elements = data.draw(streams())
    if data.draw(st.booleans()):
        elements = data.draw(disordered(elements))
        chosen = replace(chosen, lateness=data.draw(st.integers(0, 4)))
    assume(refuse(query, chosen) is None)
    with patch.object(micro_batches, "ANSWER_ROWS", data.draw(st.sampled_from([1, 50_000]))):
        agree(interpreted(spark), query, chosen, elements, data.draw(cut(elements)))


def interpreted(spark):
    """A session as the engine's own sets it for small batches."""
    own = configured(spark)
    set_all(own, INTERPRETED)
    return own


def agree(spark, query, chosen, elements, cuts):
    own = [element.time for element in elements if element.stream in {window.stream for window in query.windows}]
    assume(own or chosen.origin is not Origin.FIRST)
    t0 = origins(chosen, query.windows, own[0] if own else None)[0]
    try:
        refuse_definition(query, chosen)
        wanted = expected(elements, query, chosen, 24, t0)
    except RefusedError:
        assume(False)
    with tempfile.TemporaryDirectory() as root:
        answers, late = said(spark, query, chosen, cuts, 24, Path(root))
    reports = [((report.due.instant, (report.due.start, report.due.end)), Counter(report.rows)) for report in wanted]
    assert by_report(answers, chosen.grain, operator(query, chosen)) == reports
    assert late == len(admit(elements, chosen, query.windows, t0)[1])
