"""What a batch's files bring, and which of their elements are late, however rows are cut, here or in tasks."""

import random
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from streamgauge.engines.spark import arrivals
from streamgauge.engines.spark.arrivals import arrived, arrived_remotely
from streamgauge.engines.spark.lateness import LateRule
from streamgauge.engines.spark.state import Closes
from streamgauge.formats.stream import to_table
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import Borders, Semantics
from streamgauge.query import parse_sparql
from streamgauge.semantics.arrivals import Head, admit
from streamgauge.semantics.refusal import OutOfOrderError
from tests.notation import STREAM, stream

FORM = parse_sparql("SELECT ?s { ?s <urn:p> ?o }")


def query(size: int, slide: int) -> ContinuousQuery:
    return ContinuousQuery(FORM, (StreamWindow(STREAM, Window(size, slide)),))


def drawn(draw: random.Random, count: int, back: int):
    """Elements of one to three triples whose times go back by at most so much; some of another stream."""
    times = [max(0, 100 * number - draw.choice([0, 0, draw.randrange(back + 1)])) for number in range(count)]
    text = " | ".join(f"{time}: " + " ".join("a p b." for _ in range(draw.randrange(1, 4))) for time in times)
    return [replace(one, stream=draw.choice([STREAM, STREAM, "urn:other"])) for one in stream(text)]


def files(draw: random.Random, elements, root: Path) -> list[str]:
    """The elements in files that follow one another, in row groups of a few rows."""
    cuts = sorted({0, len(elements), *(draw.randrange(len(elements)) for _ in range(2))})
    paths = []
    for number, (low, high) in enumerate(pairwise(cuts)):
        (root / f"hour={number} ü+%20#").mkdir()
        paths.append(str(root / f"hour={number} ü+%20#" / "part +%20.parquet"))  # equal names in different folders
        pq.write_table(to_table(elements[low:high]), paths[-1], row_group_size=draw.randrange(1, 9))
    return draw.sample(paths, len(paths))


def late_by_definition(elements, asked: ContinuousQuery, semantics: Semantics) -> list[int]:
    own = [Head.of(one) for one in elements if one.stream == STREAM]
    return sorted(head.sequence for head in admit(own, semantics, asked.windows, semantics.t0)[1])


@pytest.mark.parametrize("seed", range(15))
def test_elements_are_late_as_the_definition_says_however_rows_are_cut(tmp_path, monkeypatch, seed):
    draw = random.Random(seed)
    monkeypatch.setattr(arrivals, "_PART_ROWS", draw.choice([1, 2, 5, 1000]))
    elements = drawn(draw, draw.randrange(5, 60), draw.choice([0, 300, 2000]))
    semantics = Semantics("late", lateness=draw.choice([0, 150, 900]), borders=draw.choice(list(Borders)))
    asked = query(*draw.choice([(500, 500), (1000, 300)]))
    came = arrived(files(draw, elements, tmp_path), frozenset({STREAM}), ["<urn:p>"])
    own = [one for one in elements if one.stream == STREAM]
    assert came is not None
    assert came.rows == came.counted[0] == sum(len(one.added) for one in own)
    assert (came.first, came.last) == (min(one.time for one in own), max(one.time for one in own))
    assert came.stream == (STREAM if len(own) == len(elements) else None)
    result = came.late(LateRule(Closes(asked, semantics, 0), None), None)
    assert result.tolist() == late_by_definition(elements, asked, semantics)


def test_a_stream_whose_files_are_in_order_is_looked_at_once(tmp_path, monkeypatch):
    came = arrived(files(random.Random(1), drawn(random.Random(1), 50, 0), tmp_path), frozenset({STREAM}), [])
    assert came is not None
    assert came.forward
    monkeypatch.setattr(came, "reader", None)
    rule = LateRule(Closes(query(500, 500), Semantics("any"), 0), None)
    assert not len(came.late(rule, came.first))
    with pytest.raises(AttributeError):
        came.late(rule, came.first + 1)


def test_without_a_bound_nothing_may_go_back(tmp_path):
    elements = stream("0: a p b. | 900: b p c. | 400: c p d. | 300: d p e.")
    came = arrived(files(random.Random(0), elements, tmp_path), frozenset({STREAM}), [])
    assert came is not None
    with pytest.raises(OutOfOrderError, match="element 2 goes back from 900 to 400 ms"):
        came.late(LateRule(Closes(query(500, 500), Semantics("any"), 0), None), None)


def test_tasks_count_and_find_late_elements_as_this_process_does(spark, tmp_path):
    draw = random.Random(7)
    elements = drawn(draw, 60, 2000)
    paths = files(draw, elements, tmp_path)
    here, there = arrived(paths, frozenset({STREAM}), []), arrived_remotely(spark, paths, frozenset({STREAM}))
    assert here is not None
    assert there is not None
    assert here.came == there.came
    rule = LateRule(Closes(query(500, 500), Semantics("late", lateness=150), 0), None)
    assert here.late(rule, None).tolist() == there.late(rule, None).tolist() != []
    assert np.array_equal(here.late(rule, 5000), there.late(rule, 5000))
