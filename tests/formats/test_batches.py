"""Elements in columns: what is written as Arrow is read as it was, whatever terms, batches and streams."""

import io
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.formats.batches import END, FEW, SCHEMA, BatchWriter, ColumnTerms, ElementBatch, read_batches
from streamgauge.formats.lines import Advance, LineError
from streamgauge.formats.stream import StoredStream, to_table
from streamgauge.model.element import StreamElement

TERMS = st.sampled_from(["<urn:a>", "<urn:é>", '"x y"', '"a \\"b\\" \\\\ c"@en', '"\\n"', "_:b", '"\U0001f600"'])
TRIPLES = st.lists(st.tuples(TERMS, st.just("<urn:p>"), TERMS), max_size=4).map(tuple)
STREAMS = st.sampled_from(["urn:one"]) | st.sampled_from(["urn:one", "urn:zweié"])
ENDS = st.sampled_from([None, None, None, 1, 9])


@st.composite
def inputs(draw, most=9):
    """Elements and advances of one or several streams, a few that end or remove triples."""
    results = []
    name = draw(STREAMS)
    for number in range(draw(st.integers(0, most))):
        if draw(st.integers(0, 9)) == 0:
            results.append(Advance(number))
            continue
        until, removed = (draw(ENDS), draw(TRIPLES)) if draw(st.integers(0, 5)) == 0 else (None, ())
        name = draw(st.sampled_from([name, "urn:other"])) if draw(st.integers(0, 9)) == 0 else name
        end = None if until is None else number + until
        results.append(StreamElement(name, number, 3 * number, draw(TRIPLES), removed, end))
    return results


def read(data: bytes) -> list[list[object]]:
    """The batches of all streams, and that nothing is left of them."""
    file, result = io.BufferedReader(io.BytesIO(data)), []
    while file.peek(1):
        result += read_batches(file)
    return result


def texts(batch) -> list[object]:
    return [one for item in batch for one in (item.elements() if isinstance(item, ElementBatch) else [item])]


@pytest.mark.slow
@given(st.lists(inputs(FEW + 9), max_size=4), st.integers(0, 9))
def test_what_is_written_is_read_batch_by_batch_however_few_terms_a_stream_may_number(batches, most):
    writer = BatchWriter(most)
    data = b"".join(map(writer.encode, batches)) + writer.end()
    assert [texts(batch) for batch in read(data)] == batches


@pytest.mark.slow
@given(st.integers(1, 40), st.integers(1, 7))
def test_a_stored_stream_goes_over_in_columns(count, rows):
    stream = [
        StreamElement("urn:s", at // 3, at, tuple((f"<urn:{at}>", "<urn:p>", f'"{k}"') for k in range(1 + at % 2)))
        for at in range(count)
    ]
    table = to_table(stream)
    stored = StoredStream(pa.Table.from_batches(table.to_batches(max_chunksize=rows), schema=table.schema))
    assert list(stored.elements()) == stream
    writer = BatchWriter()
    pieces = list(stored.batches())
    assert all(isinstance(piece, ElementBatch) for piece in pieces)
    data = b"".join([writer.encode_batch(piece) for piece in pieces]) + writer.end()
    assert [one for batch in read(data) for one in texts(batch)] == stream


@pytest.mark.parametrize("limit", [0, 9])
def test_a_batch_whose_terms_lack_its_stream_is_written_among_others(limit):
    stream = [StreamElement("urn:s", at, at, ((f"<urn:{at}>", "<urn:p>", '"o"'),) * (at % 3)) for at in range(FEW)]
    [[batch]] = read(BatchWriter().encode(stream))
    renamed = replace(batch, stream="urn:t")
    writer = BatchWriter(limit)
    batches = [writer.encode_batch(renamed), writer.encode(stream), *map(writer.encode_batch, (batch, renamed))]
    expected = [[*renamed.elements()], stream, stream, [*renamed.elements()]]
    assert [texts(one) for one in read(b"".join(batches) + writer.end())] == expected


TEXTS = st.text("abc", max_size=2)


@st.composite
def columns(draw):
    """Columns of one length, their dictionaries with texts twice and with others than those that occur."""
    length = draw(st.integers(0, 9))
    results = []
    for _ in range(draw(st.integers(1, 3))):
        texts_ = draw(st.lists(TEXTS, min_size=1, max_size=6))
        indices = draw(st.lists(st.integers(0, len(texts_) - 1), min_size=length, max_size=length))
        results.append(pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), pa.array(texts_)))
    return results


@given(st.lists(st.tuples(columns(), TEXTS), max_size=4))
def test_terms_of_columns_are_numbered_once_and_only_those_that_occur(parts):
    numbers, met = ColumnTerms(), set()
    for given_, also in parts:
        result = numbers.of(given_, also)
        assert [[numbers.terms[number] for number in column] for column in result] == [c.to_pylist() for c in given_]
        met |= {also, *(text for column in given_ for text in column.to_pylist())}
        assert sorted(numbers.terms) == sorted(met)


def test_terms_are_sent_once_and_nothing_behind_the_end_is_read():
    writer = BatchWriter()
    element = StreamElement("urn:s", 0, 0, (("<urn:long-name-of-a-thing>", "<urn:p>", '"c"'),))
    data = b"".join(writer.encode([element]) for _ in range(3)) + writer.end()
    assert data.count(b"long-name") == 1
    assert data.endswith(END)
    file = io.BufferedReader(io.BytesIO(data + b'{"close":true}\n'))
    assert len(list(read_batches(file))) == 3
    assert file.read() == b'{"close":true}\n'


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"added": [[0, 1, 9]]}, "number of a term that was not sent: 2 terms were"),
        ({"added": [[0, 1, -1]]}, "number of a term that was not sent"),
        ({"added": [[0, 1]]}, "three numbers for each triple"),
        ({"stream": [None]}, "an element has a stream"),
    ],
)
def test_a_batch_that_is_none_is_refused_in_a_sentence(changed, sentence):
    row = {"time": [0], "sequence": [0], "stream": [0], "until": [None], "added": [[]], "removed": [[]]}
    batch = pa.RecordBatch.from_pydict({**row, "terms": [["<urn:s>", "<urn:a>"]], **changed}, schema=SCHEMA)
    with pytest.raises(LineError, match=sentence):
        read(bytes(SCHEMA.serialize()) + bytes(batch.serialize()) + END)


NO_COLUMNS = bytes(pa.schema([]).serialize()) + END


@pytest.mark.parametrize("data", [b"\xff\xff\xff\xff", b"\x00" * 8 + b"nonsense", NO_COLUMNS])
def test_bytes_that_are_no_stream_of_elements_are_refused(data):
    with pytest.raises(LineError, match="Arrow stream"):
        read(data)
