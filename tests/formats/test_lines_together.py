"""Lines of JSON that are there together are read as each of them by itself: the same items, refusals and numbers."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.formats.documents import FormatError
from streamgauge.formats.lines import encode_advance, encode_element
from streamgauge.formats.streams import jsonl, one_by_one
from streamgauge.formats.streams.format import Reading
from streamgauge.model.element import StreamElement
from tests.examples import examples

ADDED = st.sampled_from(
    [
        (),
        (("<urn:s>", "<urn:p>", '"v"'),),
        (("<urn:s>", "<urn:p>", '"two words"@en'), ("_:b", "<urn:q>", "<urn:o>")),
        (("<urn:s>", "<urn:p>", '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'),),
    ]
)
ELEMENTS = st.builds(
    lambda stream, time, number, added, until: encode_element(
        StreamElement(stream, time, number, added, until=None if until is None else time + until)
    ),
    st.sampled_from(["urn:s", "urn:s", "urn:t"]),
    st.integers(0, 5),
    st.integers(0, 9),
    ADDED,
    st.sampled_from([None, None, None, None, 3]),
)
ODD = st.sampled_from(
    [
        encode_advance(3),
        b"\n",
        b" \r\n",
        b'{"t":1}\n',
        b'{"t":1,"add":"<urn:s> <urn:p> <urn:o> .\\n"}\n',
        b'{"t":1,"n":1,"stream":"urn:s","colour":1}\n',
        b'{"t":1,"n":1,"stream":"urn:s","add":"<urn:s> \\"x\\" <urn:o> .\\n"}\n',
        b'{"t":1,"n":1,"stream":"urn:s","add":"<urn:s> <urn:p> <urn:o>  .\\n"}\r\n',
        b'{"t":1,"n":1,\r"stream":"urn:s"}\n',
        b"no json\n",
        b'{"t":1,"n":1,"stream":"urn:' + b"x" * 200 + b'"}\n',
    ]
)


class OneByOne(io.BufferedReader):
    """A file of which a line comes at a time."""

    peek = None  # type: ignore[assignment]


def read(file: io.BufferedReader, reading: Reading) -> list[object]:
    results: list[object] = []
    following = jsonl.follow(file, "f", reading, lambda error: results.append(str(error)))
    for item in following:
        results.extend(one_by_one([item]))
    return results


@examples(200, prove=4000)
@given(
    st.lists(st.one_of(ELEMENTS, ELEMENTS, ELEMENTS, ODD), max_size=12).map(b"".join),
    st.booleans(),
    st.booleans(),
    st.sampled_from([150, 65_536]),
    st.one_of(st.integers(1, 300), st.just(65_536)),
    st.sampled_from([0, 1, 32]),
    st.sampled_from([0, 0, 3]),
)
def test_lines_together_are_lines_one_by_one(text, cut, once, limit, buffered, apart, first):
    text = text[:-1] if cut else text
    reading = Reading(stream="urn:s", once=once, limit=limit, lateness=9 if once else None)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("ONE_BY_ONE", apart), ("ROWS_FIRST", first), ("FEW_LINES", 1)):
            patch.setattr(jsonl, name, value)
        result = read(io.BufferedReader(io.BytesIO(text), buffered), reading)
    assert result == read(OneByOne(io.BytesIO(text)), reading)


def test_the_first_bad_line_ends_the_reading_behind_those_before_it():
    lines = [encode_element(StreamElement("urn:s", time, time, ())) for time in (1, 2, 1, 3)]

    def refuse(error: FormatError) -> None:
        raise error

    with pytest.raises(FormatError, match=r"^f, line 3: time goes back from 2 to 1 ms"):
        list(jsonl.follow(io.BufferedReader(io.BytesIO(b"".join(lines))), "f", Reading(stream="urn:s"), refuse))
    following = jsonl.follow(io.BufferedReader(io.BytesIO(b"".join(lines))), "f", Reading(stream="urn:s"), refuse)
    assert [next(following).time, next(following).time] == [1, 2]


def test_a_line_end_within_a_triple_is_refused_in_columns_too(monkeypatch):
    monkeypatch.setattr(jsonl, "ROWS_FIRST", 0)
    text = b"<urn:a> <urn:b> <urn:c> . <urn:d> <urn:e> <urn:f>\\n<urn:g> .\\n"
    lines = b"".join(b'{"t":%d,"n":%d,"stream":"urn:s","add":"%b"}\n' % (at, at, text) for at in range(20))
    results = read(io.BufferedReader(io.BytesIO(lines)), Reading(stream="urn:s"))
    assert "field add is not N-Triples" in results[0]
    assert results == read(OneByOne(io.BytesIO(lines)), Reading(stream="urn:s"))
