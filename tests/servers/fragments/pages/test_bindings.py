"""Bindings in addresses: rows as SPARQL's VALUES writes them."""

import pytest

from streamgauge.model.algebra import Var
from streamgauge.servers.fragments.pages.terms import MAX_BINDINGS, BindingsError, TermError, read_bindings

X, Y = Var("x"), Var("y")
A, B = "<http://a>", "<http://b>"


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("(?x) { (<http://a>) }", [{X: A}]),
        ("(?x ?y) { (<http://a> UNDEF ) (<http://b> <http://a> )}", [{X: A}, {X: B, Y: A}]),
        ('($x){("a b\\n)"@en)}', [{X: '"a b\\n)"@en'}]),
        (
            '(?x) { ("05"^^<http://www.w3.org/2001/XMLSchema#integer>) }',
            [{X: '"05"^^<http://www.w3.org/2001/XMLSchema#integer>'}],
        ),
        ("(?x ?y) { (<http://a>) }", [{X: A}]),
        ("(?x) { }", []),
        ("() { () }", [{}]),
    ],
)
def test_read(text, rows):
    assert read_bindings(text) == rows


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("?x { <http://a> }", r"\( is missing"),
        ("(?x) (<http://a>)", r"\{ is missing"),
        ("(?x) { (<http://a>)", "no end"),
        ("(?x", "no end"),
        ("(?x) { (<http://a>", "no end"),
        ("(?x) { (<http://a> <http://b>) }", "more terms than the 1"),
        ("(?x) { (ex:a) }", "not understood"),
        ("(?x) { (?x) }", "in a row"),
        ("(<http://a>) { }", "among the variables"),
        ("(?x) { } x", "not understood"),
        ("(?x) { } }", "nothing may follow"),
        ("(?x) { <http://a> }", "where a row begins"),
        ("(?x) { %s }" % ("(<http://a>)" * (MAX_BINDINGS + 1)), f"{MAX_BINDINGS} at most"),
    ],
)
def test_refused_by_a_sentence(text, why):
    with pytest.raises(BindingsError, match=why):
        read_bindings(text)


def test_a_term_that_is_none():
    with pytest.raises(TermError, match="not an N-Triples term"):
        read_bindings('(?x) { ("a"^^<no iri>) }'.replace("no iri", "no"))
