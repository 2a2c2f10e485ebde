"""Terms in addresses: both ways of writing them, and the sentence for what is none."""

import pytest

from streamgauge.model.algebra import Var
from streamgauge.servers.fragments import form_value
from streamgauge.servers.fragments.pages.terms import TermError, read_graph, read_node

XSD = "http://www.w3.org/2001/XMLSchema#"

TERMS = [
    ("", None),
    ("?x", Var("x")),
    ("$x1", Var("x1")),
    ("http://a/b", "<http://a/b>"),
    ("<http://a/b>", "<http://a/b>"),
    ("urn:a", "<urn:a>"),
    ("http://a/b?c=d#e", "<http://a/b?c=d#e>"),
    ("http://a/ü", "<http://a/ü>"),
    ('"text"', '"text"'),
    ('""', '""'),
    ('"a "quoted" word"', r'"a \"quoted\" word"'),
    ('"back\\slash"', r'"back\\slash"'),
    ('"two\nlines"', r'"two\nlines"'),
    ('"a"@en', '"a"@en'),
    ('"a"@EN-gb', '"a"@en-gb'),
    ('"a"@ar--rtl', '"a"@ar--rtl'),
    (f'"5"^^{XSD}integer', f'"5"^^<{XSD}integer>'),
    (f'"5"^^<{XSD}integer>', f'"5"^^<{XSD}integer>'),
    (f'"05"^^{XSD}integer', f'"05"^^<{XSD}integer>'),
    (f'"5"^^{XSD}string', '"5"'),
    ('"a^^b"', '"a^^b"'),
    ('"a@en"', '"a@en"'),
    ('<<( <http://a> <http://b> "c" )>>', '<<( <http://a> <http://b> "c" )>>'),
]

BROKEN = [
    ("lit", "not an absolute IRI"),
    ("/path", "not an absolute IRI"),
    ("http://a b", "not an absolute IRI"),
    ("<http://a", "not an absolute IRI"),
    ("http://a/<", "not an absolute IRI"),
    ("?", "a variable is"),
    ("?a b", "a variable is"),
    ('"open', "not a literal"),
    ('"a"@', "not a literal"),
    ('"a"@1', "not a literal"),
    ('"a"^^', "not a literal"),
    ('"a"^^int', "as a datatype is"),
    ("_:b", "a blank node has no name"),
    ("<<( <http://a> )>>", "not a triple term"),
]


@pytest.mark.parametrize(("text", "term"), TERMS)
def test_read(text, term):
    assert read_node(text) == term


@pytest.mark.parametrize("term", [term for _, term in TERMS if isinstance(term, str)])
def test_spoken_terms_are_read_as_themselves(term):
    assert read_node(form_value(term)) == term


@pytest.mark.parametrize(("text", "why"), BROKEN)
def test_refused_by_a_sentence(text, why):
    with pytest.raises(TermError, match=why):
        read_node(text)


@pytest.mark.parametrize(
    ("text", "graph"),
    [("", None), ("@default", ""), ("urn:ldf:defaultGraph", ""), ("http://g", "<http://g>"), ("?g", Var("g"))],
)
def test_graphs(text, graph):
    assert read_graph(text) == graph


def test_a_graph_is_no_literal():
    with pytest.raises(TermError, match="a graph is an IRI"):
        read_graph('"g"')
