"""Files as data sets: quads of every format, and ends of annotated ones, whatever the method."""

from itertools import count, product

import pyoxigraph as ox
import pytest

from streamgauge.formats.streams import FormatError
from streamgauge.model.fact import Fact
from streamgauge.model.terms import XSD
from streamgauge.servers.fragments.annotations import method, methods
from streamgauge.servers.fragments.labels import VOCABULARIES, Label, Style
from streamgauge.servers.fragments.store.indexed import MemoryStore
from streamgauge.servers.fragments.writes.feeds import ending_quads, load, name_of, read_quads

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
    found = set(store.page((None, None, None, None), 0, 10))
    assert {(S, P, '"1"', "<http://g>")} == {quad for quad in found if quad[3]}
    assert all(quad[2].startswith("_:") for quad in found if not quad[3])


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
