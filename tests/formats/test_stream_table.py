"""The stream table: what is written is read back, and a bad column or file is named."""

import re
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.formats import stream
from streamgauge.formats.streams import Reading
from streamgauge.model.element import StreamElement
from streamgauge.model.mistake import MistakeError
from streamgauge.sources import open_source

TERMS = st.text(min_size=1, max_size=4).map(lambda text: f"<{text}>")
TRIPLES = st.tuples(TERMS, TERMS, TERMS)


@st.composite
def streams(draw):
    drawn = draw(
        st.lists(
            st.tuples(
                TERMS,
                st.integers(0, 9),
                st.integers(1, 3),
                st.lists(TRIPLES, min_size=1, max_size=5),
                st.sampled_from([None, None, 1, 5]),
            )
        )
    )
    sequence, elements = -1, []
    for name, time, step, triples, span in drawn:
        sequence += step
        elements.append(StreamElement(name, time, sequence, tuple(triples), (), None if span is None else time + span))
    return elements


@given(streams(), st.integers(1, 7))
def test_elements_come_back_whatever_the_batches(elements, rows):
    table = stream.to_table(elements)
    split = pa.Table.from_batches(table.to_batches(max_chunksize=rows), schema=table.schema)
    assert list(stream.elements(table)) == elements
    assert list(stream.elements(split)) == elements


@given(streams())
def test_a_file_holds_the_same_elements(tmp_path_factory, elements):
    path = tmp_path_factory.mktemp("stream") / "stream.parquet"
    assert stream.write(elements, path) == len(elements)
    assert list(stream.elements(path)) == elements
    columns = stream.to_table(elements).column_names
    assert pq.read_table(path).select(columns).equals(stream.to_table(elements))


@given(streams(), st.integers(1, 7), st.booleans())
def test_row_groups_do_not_matter(tmp_path_factory, elements, rows, encoded):
    """Nor whether a row group has its distinct texts in a dictionary."""
    path = tmp_path_factory.mktemp("stream") / "stream.parquet"
    pq.write_table(stream.to_table(elements), path, row_group_size=rows, use_dictionary=encoded)
    assert list(stream.elements(path)) == elements
    assert [entry.sequence for entry in stream.read_written(path)] == [element.sequence for element in elements]


def test_a_text_that_a_dictionary_lacks_is_a_null():
    table = stream.to_table(some(2))
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, 0], pa.int32()), pa.array(["<a>", None]))
    with pytest.raises(stream.StreamError, match="column subject has 1 nulls"):
        list(stream.elements(table.set_column(4, "subject", column)))


def some(count=4):
    return [
        StreamElement("http://s", 10 * n, n, (("<a>", "<b>", f"<{n}>"), ("<a>", "<b>", "<c>"))) for n in range(count)
    ]


def test_a_folder_is_read_in_name_order_and_an_element_may_span_files(tmp_path):
    table = stream.to_table(some())
    (tmp_path / "_SUCCESS").touch()
    pq.write_table(table.slice(3), tmp_path / "part-1.parquet")
    pq.write_table(table.slice(0, 3), tmp_path / "part-0.parquet")
    assert list(stream.elements(tmp_path)) == some()


def test_other_string_and_integer_types_are_taken():
    table = stream.to_table(some())
    table = table.set_column(3, "position", table.column("position").cast(pa.int64()))
    table = table.set_column(4, "subject", table.column("subject").dictionary_encode())
    table = table.set_column(5, "predicate", table.column("predicate").cast(pa.large_string()))
    assert list(stream.elements(table.select(sorted(table.column_names)))) == some()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda t: t.drop_columns("object"), "column object is missing: expected are stream, time"),
        (lambda t: t.set_column(1, "time", t["time"].cast(pa.string())), "column time is string where int64"),
        (lambda t: t.set_column(0, "stream", pa.nulls(8, pa.string())), "column stream has 8 nulls"),
        (lambda t: t.sort_by([("sequence", "descending")]), "sequence 2 comes after 3: sort the rows"),
        (lambda t: t.slice(1), "sequence 0: column position must count its rows from 0"),
        (lambda t: t.set_column(1, "time", pa.array(range(8), pa.int64())), "sequence 0: column time must be the same"),
        (lambda t: t.set_column(2, "sequence", pa.array([-1] * 8, pa.int64())), "sequence -1 comes after -1"),
    ],
)
def test_a_bad_table_is_refused_with_the_place(tmp_path, spoil, message):
    path = tmp_path / "spoilt.parquet"
    pq.write_table(spoil(stream.to_table(some())), path)
    with pytest.raises(stream.StreamError, match=r"spoilt\.parquet: ") as caught:
        list(stream.elements(path))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("column", "term", "message"),
    [
        ("object", "20.5", "odd.parquet, sequence 1: 20.5 is not an N-Triples term"),
        ("object", '"a" b', 'odd.parquet, sequence 1: "a" b is not an N-Triples term'),
        ("subject", "urn:a", "odd.parquet, sequence 1: urn:a is not an N-Triples term"),
        ("subject", '"a"', "odd.parquet: a row is not a triple: its subject is"),
        ("predicate", "_:b", "odd.parquet: a row is not a triple: its predicate is"),
    ],
)
def test_a_table_of_another_program_has_terms_of_n_triples(tmp_path, column, term, message):
    triples = (("<urn:a>", "<urn:b>", '"1"'),)
    table = stream.to_table([StreamElement("urn:s", number, number, triples) for number in range(2)])
    path, values = tmp_path / "odd.parquet", [*table[column].to_pylist()[:-1], term]
    pq.write_table(table.set_column(table.column_names.index(column), column, pa.array(values)), path)
    with pytest.raises(MistakeError, match=re.escape(message)):
        list(open_source(str(path), Reading(note=str)).items())


def test_a_table_of_another_kind_is_told_apart(tmp_path):
    pq.write_table(pa.table({"time": [1], "celsius": [20.5]}), tmp_path / "rooms.parquet")
    sentence = r"rooms\.parquet: not a stream table .*: it has the columns time, celsius: write it as CSV or JSON lines"
    with pytest.raises(MistakeError, match=sentence):
        list(open_source(str(tmp_path / "rooms.parquet"), Reading(note=str)).items())


def test_a_truncated_or_absent_file_is_named(tmp_path):
    path = tmp_path / "cut.parquet"
    stream.write(some(), path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(stream.StreamError, match=r"cut\.parquet: not a readable Parquet file"):
        list(stream.elements(path))
    with pytest.raises(stream.StreamError, match="none: missing: a Parquet file or a folder"):
        list(stream.elements(tmp_path / "none"))


@pytest.mark.parametrize(
    ("element", "message"),
    [
        (StreamElement("s", 0, 5, ()), "sequence 5 has no triple"),
        (StreamElement("s", 0, 5, (("<a>",) * 3,), (("<b>",) * 3,)), "sequence 5 has removed triples"),
        (
            StreamElement("s", 9, 5, (("<a>",) * 3,), until=9),
            "sequence 5 ends at 9 ms: that must be after its time, 9 ms",
        ),
    ],
)
def test_what_the_table_cannot_hold_is_refused(element, message):
    with pytest.raises(stream.StreamError, match=message):
        stream.to_table([element])


def test_a_table_without_until_and_one_with_it_are_read_alike(tmp_path):
    elements = some()
    assert "until" not in stream.to_table(elements).column_names
    ending = [replace(elements[0], until=70), *elements[1:]]
    assert stream.to_table(ending).column("until").to_pylist() == [70, 70, *[None] * 6]
    pq.write_table(stream.to_table(ending[:2]), tmp_path / "part-0.parquet")
    pq.write_table(stream.to_table(ending[2:]), tmp_path / "part-1.parquet")
    assert list(stream.elements(tmp_path)) == ending


@pytest.mark.parametrize(
    ("ends", "message"), [([5, 6], "until must be the same"), ([0, 0], "sequence 0 ends at 0 ms: that must be after 0")]
)
def test_a_wrong_end_is_named(ends, message):
    table = stream.to_table(some(1)).append_column("until", pa.array(ends, pa.int64()))
    with pytest.raises(stream.StreamError, match=message):
        list(stream.elements(table))
