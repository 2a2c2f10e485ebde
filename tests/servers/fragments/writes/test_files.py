"""Files as data sets: quads of every format, and ends of annotated ones, whatever the method."""

import gzip
import string
from itertools import count, product

import pyoxigraph as ox
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from streamgauge.formats.streams import FormatError
from streamgauge.model.fact import Fact
from streamgauge.model.terms import XSD
from streamgauge.servers.fragments.annotations import method, methods
from streamgauge.servers.fragments.labels import VOCABULARIES, Label, Style
from streamgauge.servers.fragments.store.indexed import MemoryStore
from streamgauge.servers.fragments.writes import files
from streamgauge.servers.fragments.writes.files import ending_quads, load, name_of, read_parts, read_quads

S, P = "<http://example.org/s>", "<http://example.org/p>"
STYLES = [
    Style(name, label, vocabulary, grouped)
    for name, label, vocabulary, grouped in product(methods(), Label, VOCABULARIES.values(), (True, False))
]


@pytest.mark.parametrize("style", STYLES, ids=lambda s: f"{s.method}-{s.label}-{s.vocabulary.name}-{s.grouped}")
def test_ends_are_those_that_annotations_gave(style):
    instant = style.label is Label.INSTANT
    facts = [Fact((S, P, f'"{n}"'), 1000 * n, 1000 * n + 1 if instant else 10_000 * n) for n in range(1, 4)]
    facts += [Fact((S, "<http://example.org/q>", '"still"'))]
    numbers = count()
    made = method(style.method).annotate(facts, style, lambda _: f"n{next(numbers)}")
    assert dict(ending_quads([quad for quad, _ in made], style)) == dict(made)


def write(folder, name, text):
    (folder / name).write_text(text)
    return folder / name


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("d.nq", f'{S} {P} "1" <http://g> .\n{S} {P} _:x .\n'),
        ("d.trig", f'<http://g> {{ {S} {P} "1" }} {S} {P} [] .'),
        (
            "d.jsonld",
            '[{"@id":"http://g","@graph":[{"@id":"http://example.org/s","http://example.org/p":"1"}]},'
            '{"@id":"http://example.org/s","http://example.org/p":{"@id":"_:b"}}]',
        ),
    ],
)
def test_formats(tmp_path, name, text):
    store = MemoryStore()
    assert load(write(tmp_path, name, text), store, Style()) == 2
    results = set(store.page((None, None, None, None), 0, 10))
    assert {(S, P, '"1"', "<http://g>")} == {quad for quad in results if quad[3]}
    assert all(quad[2].startswith("_:") for quad in results if not quad[3])


def test_triple_terms_and_their_blank_nodes(tmp_path):
    file = write(tmp_path, "d.nq", f"{S} {P} <<( _:x {P} _:x )>> .\n_:x {P} {S} .\n")
    first, second = read_quads(file)
    assert first[2] == f"<<( {second[0]} {P} {second[0]} )>>"


def test_a_labelled_graph_ends(tmp_path):
    label = (
        '<http://example.org/temporal#expiration> "1970-01-01T00:00:05Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
    )
    file = write(tmp_path, "d.nq", f'{S} {P} "1" <http://g> .\n<http://g> {label} .\n{S} {P} "2" .\n')
    store = MemoryStore()
    load(file, store, Style())
    assert store.nearest((S, P, '"1"', None), 0) == 5000
    assert store.nearest((S, P, '"2"', None), 0) is None


SAME = "<http://www.w3.org/2002/07/owl#sameAs>"
LABELLED = f"""
{S} {P} "in the graph" <http://example.org/g> .
{S} {P} "always" .
_:x {P} "of another" <http://example.org/h> .
<http://example.org/t> {P} "as the graph" .
<http://example.org/t> {SAME} <http://example.org/g> .
<http://example.org/g> <http://example.org/temporal#expiration> "2030-01-01T00:00:00Z"^^<{XSD}dateTime> .
"""
OF_A_BLANK_NODE = f'_:x <http://example.org/temporal#expiration> "2031-01-01T00:00:00Z"^^<{XSD}dateTime> .\n'


@pytest.mark.parametrize("style", [Style(), Style("reification")], ids=["graphs", "reification"])
@pytest.mark.parametrize("more", ["", OF_A_BLANK_NODE])
@pytest.mark.parametrize("name", ["a.nq", "a.trig"])
def test_a_file_with_labels_is_loaded_as_its_quads_end(tmp_path, name, more, style):
    """Of lines only those with labels are read first, all where a label is on a blank node."""
    text = LABELLED + more
    if name == "a.trig":
        text = "".join(ox_trig(text))
    path = write(tmp_path, name, text)
    store = MemoryStore()
    load(path, store, style)
    expected = dict(ending_quads(list(read_quads(path)), style))
    assert len(store.page((None,) * 4, 0, 100)) == len(expected) >= 6
    assert {quad: store.nearest(quad, 0) for quad in expected} == expected
    assert any(expected.values())


def ox_trig(lines):
    """N-Quads as TriG."""
    quads = ox.parse(lines.encode(), format=ox.RdfFormat.N_QUADS)
    return ox.serialize(quads, format=ox.RdfFormat.TRIG).decode()


def test_an_error_among_labels_names_the_line_of_the_file(tmp_path):
    path = write(tmp_path, "a.nq", f'{S} {P} "1" .\n{S} <http://example.org/temporal#expiration> "x .\n')
    with pytest.raises(FormatError, match="line 2"):
        load(path, MemoryStore(), Style())


def test_names(tmp_path):
    assert name_of(tmp_path / "trains.nq.gz") == "trains"
    for name in ("health.nq", "metrics.ttl", ".nq"):
        with pytest.raises(FormatError, match="cannot be named"):
            name_of(tmp_path / name)


def test_files_that_are_none(tmp_path):
    with pytest.raises(FormatError, match="no RDF format has the ending"):
        list(read_quads(write(tmp_path, "d.csv", "a,b")))
    with pytest.raises(FormatError, match=r"d\.nq, line 2"):
        list(read_quads(write(tmp_path, "d.nq", f'{S} {P} "1" .\nnonsense\n')))


MARKS = string.ascii_letters + string.digits + "._~!$&'()*+,;=:@/?#%-[]{}|^`\\ \t\u00e9\ufffe\U0001f600"
BLANKS = st.sampled_from(["_:a", "_:b1", "_:1", "_:a.b", "_:a-b", "_:", "_:_x"])
SCHEMES = (
    "http://example.org/",
    "https://a-b.c:80",
    "urn:x:",
    "http://",
    "mailto:",
    "rel/",
    "http://a:999999/",
    "http://.",
)
IRIS = st.builds("<{}{}>".format, st.sampled_from(SCHEMES), st.text(MARKS, max_size=6))
TAGS = st.sampled_from(["@en", "@EN", "@de-at", "@abcdefghi", "@x-private", "@en--ltr", "@en-x"])
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
NAMES = f"{XSD}string", f"{XSD}integer", f"{XSD}strings", f"{RDF}langString", f"{RDF}dirLangString", f"{RDF}HTML"
CHARACTERS = st.characters(exclude_categories=["Cs"]) | st.sampled_from('a"\\\x7f\ufffe\uffff\u2028\x85\x0b\r_:')
TEXTS = st.text(CHARACTERS, max_size=5) | st.sampled_from(["a\\n", "\\u0041", "\\x", 'a\\"b', "_:a"])
LITERALS = st.builds('"{}"{}'.format, TEXTS, st.just("") | TAGS | st.sampled_from(NAMES).map("^^<{}>".format))
ODD = ["# a comment", "", " ", f"{S}\t{P} {S} .", f"{S} {P} {S}.", f"{S} {P} {S} . # so", f"{S} {P} .", "\ufeff"]
ODD += [f"{S} {P} {S} . {S} {P} {S} .", f"{S} {P} <<( {S} {P} _:a )>> .", f"x{S} {P} {S} ."]
LINES = st.one_of(
    st.builds(
        "{} {} {}{}{}.".format,
        st.just(S) | BLANKS,
        st.just(P) | IRIS,
        IRIS | BLANKS | LITERALS,
        st.sampled_from(["", " <http://g>", " _:a", " _:e"]),
        st.sampled_from([" ", "", "  "]),
    ),
    st.sampled_from([f'{S} {P} "a" .', f"_:c {P} _:d _:e .", f"_:d {P} _:b .", f'{S} {P} "\u2028_:a"@en .']),
    st.sampled_from(ODD),
)


def outcome(quads):
    """The quads, or the sentence with which they end."""
    try:
        return list(quads)
    except FormatError as error:
        return str(error)


def parsed(line, syntax):
    """Whether the parser takes a line."""
    try:
        return bool(list(ox.parse(line.encode(), format=syntax)))
    except SyntaxError:
        return False


@pytest.mark.parametrize("syntax", [ox.RdfFormat.N_QUADS, ox.RdfFormat.N_TRIPLES], ids=str)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(LINES, st.sampled_from(["\n", "\n", "\r\n"])), max_size=12),
    st.sampled_from([True, True, False]),
    st.booleans(),
    st.sampled_from([30, 300, 2**20]),
)
@example([(f'{S} {P} "a"^^<{XSD}string> .', "\n")] * 3, True, True, 2**20)
@example([(f"{S} {P} _:b _:a .", "\n"), (f"{S} {P} _:a <mailto:x> .", "\n"), (f"_:c {P} _:b .", "\n")], True, True, 300)
def test_lines_are_read_as_the_parser_reads_them(tmp_path, monkeypatch, syntax, lines, sound, ended, together):
    """Read by expression, by the parser or by both, with the same names of blank nodes, or the same sentence."""
    monkeypatch.setattr(files, "_PART", together)
    text = "".join(line + end for line, end in lines if not sound or parsed(line, syntax))
    path = tmp_path / f"a.{syntax.file_extension}"
    path.write_bytes((text if ended else text.removesuffix("\n")).encode())
    assert outcome(quad for part in read_parts(path) for quad in part) == outcome(read_quads(path))


@pytest.mark.parametrize(
    "place", ["http://{}a/b", "http://a{}", "http://a/{}", "http://a/b#{}c", "urn:{}a:b", "http://a/%{}0"]
)
def test_iris_are_taken_only_where_the_parser_takes_them(tmp_path, place):
    for mark in MARKS:
        path = write(tmp_path, "a.nq", f"{S} {P} <{place.format(mark)}> .\n")
        assert outcome(quad for part in read_parts(path) for quad in part) == outcome(read_quads(path)), mark


def test_plain_lines_are_not_parsed(tmp_path, monkeypatch):
    lines = f'{S} {P} "a b"@en .\n', f'_:x {P} "\u00e9"^^<{XSD}strings> _:y .\r\n', f"{S} {P} <urn:a:%20>.\n"
    plain, other = write(tmp_path, "a.nq", "".join(lines)), write(tmp_path, "b.nq", f"{''.join(lines)} {lines[0]}")
    assert [len(part) for part in read_parts(other)] == [4]
    monkeypatch.setattr(files, "parse_open", lambda *_: pytest.fail("a plain line was given to the parser"))
    assert [len(part) for part in read_parts(plain)] == [3]
    with pytest.raises(pytest.fail.Exception):
        list(read_parts(other))


def test_packed_files_that_end_too_early_are_refused_as_by_the_parser(tmp_path):
    path = tmp_path / "a.nq.gz"
    path.write_bytes(gzip.compress(f"{S} {P} {S} .\n".encode() * 1000)[:-20])
    assert "cannot be read" in outcome(read_parts(path))
    assert outcome(read_parts(path)) == outcome(read_quads(path))


TERMS = st.sampled_from(["<a>", "<b>", "<c>", "<d>"])


@given(
    st.lists(st.tuples(TERMS, TERMS, TERMS, TERMS | st.just("")), max_size=12),
    st.dictionaries(TERMS, st.none() | st.integers(0, 9)),
)
def test_the_ends_of_many_quads_are_those_of_each(quads, ends):
    expected = [(place, end) for place, quad in enumerate(quads) if (end := files._named_end(quad, ends)) is not None]
    assert sorted(files._ends(quads, ends)) == expected
