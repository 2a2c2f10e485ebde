"""Elements as lines: by columns as one by one, whatever terms, streams, ends and batches."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.formats import stream as table
from streamgauge.formats.lines import decode_input
from streamgauge.formats.stream import StreamError, elements, read_written, to_table, written
from streamgauge.model.element import StreamElement

TERMS = st.sampled_from(
    ["<urn:a>", "<urn:é>", '"x y"', '"a \\"b\\" \\\\ c"@en', '"1"', '"\\n"', '"tab\tin"', "_:b", '"\x7f"']
)
TRIPLES = st.lists(st.tuples(st.just("<urn:s>"), st.just("<urn:p>"), TERMS), min_size=1, max_size=4).map(tuple)
STREAMS = st.sampled_from(["urn:one"]) | st.sampled_from(["urn:one", "urn:zwei\u00e9"])

ENDS = st.sampled_from([None, None, None, 1, 9])


@st.composite
def streams(draw):
    bodies = draw(st.lists(st.tuples(STREAMS, st.integers(0, 5), TRIPLES, ENDS), max_size=9))
    return [
        StreamElement(name, time, 3 * number, triples, (), None if lasts is None else time + lasts)
        for number, (name, time, triples, lasts) in enumerate(bodies)
    ]


@given(streams(), st.integers(1, 6))
def test_by_columns_is_one_by_one(stream, size):
    rows = to_table(stream)
    chunked = pa.Table.from_batches(rows.to_batches(max_chunksize=size), schema=rows.schema)
    assert list(elements(chunked)) == stream
    results = list(read_written(chunked))
    assert [entry[:3] for entry in results] == [entry[:3] for entry in written(stream)]
    assert [decode_input(entry.line) for entry in results] == stream
    assert all(entry.line.endswith(b"}\n") and entry.line.count(b"\n") == 1 for entry in results)


def test_what_is_written_stays():
    once = list(written([StreamElement("urn:s", 0, 0, (("<urn:a>", "<urn:b>", '"c"'),))]))
    assert list(written(once)) == once


@pytest.mark.parametrize(
    ("column", "values", "sentence"),
    [
        ("sequence", [4, 3], "sequence 3 comes after 4"),
        ("position", [0, 2], "sequence 1: column position must count its rows from 0"),
        ("time", [1, 2], "sequence 0: column time must be the same"),
    ],
)
def test_a_table_that_is_none_is_refused_alike(column, values, sentence):
    stream = [StreamElement("urn:s", 1, n, (("<urn:a>", "<urn:b>", '"c"'),)) for n in range(2)]
    rows = to_table(stream)
    if column == "time":
        rows = rows.set_column(2, "sequence", pa.array([0, 0])).set_column(3, "position", pa.array([0, 1], pa.int32()))
    broken = rows.set_column(
        rows.schema.get_field_index(column), column, pa.array(values, rows.schema.field(column).type)
    )
    for read in (elements, read_written):
        with pytest.raises(StreamError, match=sentence):
            list(read(broken))


def test_order_holds_from_batch_to_batch(monkeypatch):
    monkeypatch.setattr(table, "_BATCH", 1)
    rows = to_table([StreamElement("urn:s", 1, n, (("<urn:a>", "<urn:b>", '"c"'),)) for n in (1, 2)])
    broken = rows.set_column(2, "sequence", pa.array([2, 1]))
    with pytest.raises(StreamError, match="sequence 1 comes after 2"):
        list(read_written(broken))
