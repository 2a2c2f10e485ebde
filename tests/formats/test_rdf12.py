"""Terms of RDF 1.2 on every way in and out: they come back as they were, or are refused by name."""

import json
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyoxigraph as ox
import pytest
from hypothesis import given

from streamgauge.formats.batches import BatchWriter, read_batches
from streamgauge.formats.canonical import parse_term, to_term
from streamgauge.formats.documents import FormatError
from streamgauge.formats.line_columns import LineColumns
from streamgauge.formats.lines import decode_answer, decode_input, encode_answer, encode_element
from streamgauge.formats.ntriples import NTriplesReader
from streamgauge.formats.results import results, rows
from streamgauge.formats.stream import elements, read_written, to_table
from streamgauge.formats.streams import Reading, one_by_one, stream_formats, write_stream
from streamgauge.formats.syntaxes import parse_open
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.terms import Triple, by_parts, triple_parts, triple_term
from tests.examples import examples
from tests.rdf12 import OBJECTS, TRIPLES, anonymous, has_direction

READING = Reading(checked=True, note=lambda _sentence: None)
WRITABLE = sorted(name for name, form in stream_formats().items() if form.write)
SENT = sorted(name for name, form in stream_formats().items() if form.encode)


def element(triples: tuple[Triple, ...]) -> StreamElement:
    return StreamElement(READING.stream, 1000, 0, triples)


@given(OBJECTS)
@examples(100, 5_000)
def test_a_term_is_its_canonical_text_and_its_parts(term):
    assert to_term(parse_term(term)) == term
    assert by_parts(term, lambda part: part) == term
    if term.startswith("<<("):
        assert triple_term(triple_parts(term)) == term


@pytest.mark.parametrize("name", WRITABLE)
@given(TRIPLES)
@examples(40, 2_000)
def test_a_written_file_is_read_back(tmp_path_factory, name, triples):
    form = stream_formats()[name]
    path = tmp_path_factory.mktemp("stream") / f"data{form.endings[0]}"
    with path.open("wb") as file:
        if name == "jelly" and any(map(has_direction, (item for _, _, item in triples))):
            with pytest.raises(FormatError, match=r'^".*@[a-z-]*--(ltr|rtl): Jelly has no base direction: write '):
                form.write([element(triples)], file)
            return
        form.write([element(triples)], file)
    (result,) = read(path, name)
    assert anonymous(result.added) == anonymous(triples)


def read(path: Path, name: str) -> Iterator[StreamElement]:
    from streamgauge.formats.streams import read_elements

    return read_elements(path, stream_formats()[name], READING)


@pytest.mark.parametrize("name", SENT)
@given(TRIPLES)
@examples(40, 2_000)
def test_a_message_is_read_back(name, triples):
    form = stream_formats()[name]
    if name == "jelly" and any(map(has_direction, (item for _, _, item in triples))):
        with pytest.raises(FormatError, match="Jelly has no base direction"):
            form.encode(element(triples))
        return
    (result,) = form.decoder(READING)(form.encode(element(triples)), "here", None)
    assert anonymous(result.added)[-len(triples) :] == anonymous(triples)


@given(TRIPLES)
@examples(100, 5_000)
def test_the_pipe_in_lines_and_in_columns(triples):
    one = element(triples)
    line = encode_element(one)
    assert decode_input(line) == one
    columns = LineColumns().read(line)
    assert columns is None or list(one_by_one(columns)) == [one]
    text = "".join(f"{s} {p} {o} .\n" for s, p, o in triples)
    assert NTriplesReader().triples(text.encode()) == triples
    assert (
        decode_input(json.dumps({"t": 1, "n": 0, "stream": "s", "add": text.replace(" .\n", "  .\n")})).added == triples
    )
    ((result,),) = read_batches(BytesIO(BatchWriter().encode([one])))
    assert result == one


@pytest.mark.parametrize("name", WRITABLE)
@pytest.mark.parametrize(
    ("triple", "fault"),
    [
        (("<urn:a>", "<urn:b>"), "has 2 terms: subject, predicate and object are expected"),
        (("<urn:a>", "<urn:b>", "<urn:c>", "<urn:d>"), "has 4 terms"),
        (("<<( <urn:a> <urn:b> <urn:c> )>>", "<urn:b>", "<urn:c>"), "has the subject <<( "),
        (("<urn:a>", "_:b", "<urn:c>"), "has the predicate _:b: <IRI> is expected"),
        (("<urn:a>", "<urn:b>", "c"), "has the object c: "),
    ],
)
def test_what_is_no_triple_is_not_written(tmp_path, name, triple, fault):
    good = element((("<urn:a>", "<urn:b>", "<urn:c>"),))
    bad = replace(element((*good.added, triple)), sequence=1, time=2000)
    with pytest.raises(FormatError) as refused_:
        write_stream([good, bad], tmp_path / "out", name)
    assert "element 1, triple 1: " in str(refused_.value)
    assert f"is not a triple: it {fault}" in str(refused_.value)


@given(TRIPLES)
@examples(100, 5_000)
def test_the_stream_table(triples):
    table = to_table([element(triples)])
    assert list(elements(table)) == [element(triples)]
    assert [decode_input(item.line) for item in read_written(table)] == [element(triples)]
    assert isinstance(table, pa.Table)


@given(TRIPLES)
@examples(100, 5_000)
def test_answers_on_the_pipe_and_in_results(triples):
    answer = Answer(("s", "p", "o"), triples)
    assert decode_answer(encode_answer(answer)).added == triples
    assert rows(json.loads(json.dumps(results(("s", "p", "o"), triples)))) == (("s", "p", "o"), list(triples))


@pytest.mark.parametrize(
    "syntax", [ox.RdfFormat.TURTLE, ox.RdfFormat.TRIG, ox.RdfFormat.N_QUADS, ox.RdfFormat.N_TRIPLES]
)
@given(TRIPLES)
@examples(40, 2_000)
def test_syntaxes_are_read(syntax, triples):
    quads = list(ox.parse("".join(f"{s} {p} {o} .\n" for s, p, o in triples), format=ox.RdfFormat.N_TRIPLES))
    body = ox.serialize(quads, format=syntax)
    parsed = [(str(q.subject), str(q.predicate), to_term(q.object)) for q in parse_open(BytesIO(body), "here", syntax)]
    assert sorted(anonymous(tuple(parsed))) == sorted(anonymous(triples)) or len(parsed) == len(set(parsed)) == len(
        triples
    )
