"""Terms keep their lexical form on every way in and out: formats, lines, run folders, static data."""

import json

import pyoxigraph as ox
import pytest

from streamgauge.formats.canonical import parse_term, to_term, value_text
from streamgauge.formats.line_columns import LineColumns
from streamgauge.formats.lines import decode_answer, decode_input, encode_answer, encode_element
from streamgauge.formats.results import results, rows
from streamgauge.formats.stream import elements as elements_of
from streamgauge.formats.stream import to_table
from streamgauge.formats.streams import read_stream, read_triples, stream_formats, write_stream
from streamgauge.formats.streams.format import Reading
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from tests.lexical import FORMS, N_TRIPLES, SAME_VALUE, TRIPLES, P, S, typed

ELEMENT = StreamElement("http://ex.org/streams/test", 1000, 1, TRIPLES)
WRITABLE = sorted(name for name, form in stream_formats().items() if form.write)
TIME = "<http://www.streamreasoning.org/schema/benchmark#hasTimestamp>"
TRIG = f'<urn:g> {{ {N_TRIPLES} }} <urn:g> {TIME} "+01000"^^<http://www.w3.org/2001/XMLSchema#long> .'


def serialized(syntax):
    quads = list(ox.parse(N_TRIPLES, format=ox.RdfFormat.N_TRIPLES))
    return ox.serialize(quads, format=syntax)


@pytest.mark.parametrize("term", FORMS)
def test_a_term_is_read_as_it_is_written(term):
    assert to_term(parse_term(term)) == term


def test_forms_of_one_value_are_several_terms():
    for group in SAME_VALUE:
        assert len(set(group)) == len(group)
    assert value_text(typed("+075", "integer")) == "75"
    assert value_text('"plain"') == "plain"
    with pytest.raises(ValueError, match="not a literal"):
        value_text("<urn:a>")


@pytest.mark.parametrize("form", WRITABLE)
def test_every_format_that_is_written(tmp_path, form):
    path = tmp_path / f"stream{stream_formats()[form].endings[0]}"
    write_stream([ELEMENT], path, form)
    (result,) = read_stream(path, form)
    assert result.added == TRIPLES


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("data_1.ttl", serialized(ox.RdfFormat.TURTLE)),
        ("data_1.nt", N_TRIPLES.encode()),
        ("data.trig", TRIG.encode()),
        ("data.nq", N_TRIPLES.replace(" .\n", " <urn:g:1000> .\n").encode()),
        ("data.messages", N_TRIPLES.encode() + b"MESSAGE\n"),
        ("data.yabench", N_TRIPLES.replace(" .\n", ' "1000" .\n').encode()),
        ("unquoted.yabench", "".join(f'{s} {p} {o.replace(chr(34), "")} "1000" .\n' for s, p, o in TRIPLES).encode()),
        ("data.jsonl", json.dumps({"t": 1000, "n": 1, "stream": "s", "add": N_TRIPLES}).encode()),
    ],
)
def test_every_syntax_that_is_read(tmp_path, name, text):
    (tmp_path / name).write_bytes(text)
    (result,) = read_stream(tmp_path / name)
    assert set(result.added) == set(TRIPLES)
    assert len(result.added) == len(TRIPLES)


@pytest.mark.parametrize(
    ("ending", "syntax"),
    [("nt", ox.RdfFormat.N_TRIPLES), ("ttl", ox.RdfFormat.TURTLE), ("rdf", ox.RdfFormat.RDF_XML)],
)
def test_static_files(tmp_path, ending, syntax):
    (tmp_path / f"static.{ending}").write_bytes(serialized(syntax))
    matches = list(read_triples(tmp_path / f"static.{ending}"))
    assert sorted(matches) == sorted(TRIPLES)


@pytest.mark.parametrize("name", sorted(name for name, form in stream_formats().items() if form.encode))
def test_messages_on_their_own(name):
    form = stream_formats()[name]
    (result,) = form.decoder(Reading())(form.encode(ELEMENT), "here", None)
    assert result.added == TRIPLES


def test_lines_of_the_pipe():
    line = encode_element(ELEMENT)
    assert decode_input(line) == ELEMENT
    (columns,) = LineColumns().read(line)
    assert list(columns.elements()) == [ELEMENT]
    loose = json.dumps({"t": 0, "n": 0, "stream": "s", "add": N_TRIPLES.replace(" .\n", "  .\n")})
    assert decode_input(loose).added == TRIPLES


def test_answers():
    answer = Answer(("o",), tuple((term,) for term in FORMS))
    assert decode_answer(encode_answer(answer)).added == answer.added
    assert rows(results(("o",), answer.added)) == (("o",), list(answer.added))


def test_the_stream_table():
    assert list(elements_of(to_table([ELEMENT]))) == [ELEMENT]


def test_two_forms_in_one_graph_are_two_triples(tmp_path):
    for number, group in enumerate(SAME_VALUE):
        path = tmp_path / f"pair{number}.trig"
        body = " ".join(f"{S} {P} {term} ." for term in group)
        path.write_text(f"<urn:g:7> {{ {body} }}")
        (result,) = read_stream(path)
        assert [item for _, _, item in result.added] == list(group)
