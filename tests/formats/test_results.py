"""SPARQL results in JSON: every kind of term there and back, and documents that are none."""

import json

import pytest

from streamgauge.formats.results import ResultsError, pieces, read_rows, results, rows

XSD = "http://www.w3.org/2001/XMLSchema#"
ROWS = [
    ("<urn:a>", "_:b", '"plain"', None),
    ('"word"@en', f'"1"^^<{XSD}integer>', '"a \\"quoted\\" word"', "<<( <urn:s> <urn:p> _:o )>>"),
    ('"x"', None, None, '<<( <urn:s> <urn:p> "x"@en )>>'),
    ('"\u05e9\u05dc\u05d5\u05dd"@he--rtl', '<<( _:b <urn:p> <<( <urn:s> <urn:p> "x"@en--ltr )>> )>>', None, None),
]
NAMES = ("a", "b", "c", "d")
UP = {"type": "literal", "value": "x", "xml:lang": "en", "its:dir": "up"}
ASTRAY = {"type": "literal", "value": "x", "its:dir": "ltr"}


def test_every_kind_of_term_is_written_and_read():
    assert rows(json.loads(json.dumps(results(NAMES, ROWS)))) == (NAMES, ROWS)
    assert read_rows(json.dumps(results(NAMES, ROWS))) == (NAMES, ROWS)


def test_pieces_are_the_whole_text():
    assert json.loads(b"".join(pieces(NAMES, ROWS * 3, size=2))) == results(NAMES, ROWS * 3)
    assert json.loads(b"".join(pieces(NAMES, []))) == results(NAMES, [])


@pytest.mark.parametrize("truth", [True, False])
def test_a_boolean_is_a_row(truth):
    said = f'"{str(truth).lower()}"^^<{XSD}boolean>'
    for read in (rows, lambda document: read_rows(json.dumps(document))):
        assert read({"head": {}, "boolean": truth}) == (("ask",), [(said,)])


def test_a_typed_literal_of_old_servers_is_read():
    document = {
        "head": {"vars": ["a"]},
        "results": {"bindings": [{"a": {"type": "typed-literal", "value": "1", "datatype": f"{XSD}integer"}}]},
    }
    assert rows(document) == (("a",), [(f'"1"^^<{XSD}integer>',)])


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "has an object head"),
        ({"head": {"vars": ["a"]}}, "has an object results"),
        ({"head": {}, "results": {"bindings": []}}, "not a SPARQL result"),
        ({"head": {"vars": ["a"]}, "results": {"bindings": [{"a": {"type": "number", "value": "1"}}]}}, "'number'"),
        (
            {"head": {"vars": ["a"]}, "results": {"bindings": [{"a": {"type": "uri", "value": "no iri"}}]}},
            "result: not an RDF",
        ),
        ({"head": {"vars": ["a"]}, "results": {"bindings": [{"a": {"value": "x"}}]}}, "member 'type' is missing"),
        ({"head": {"vars": ["a"]}, "results": {"bindings": [{"a": UP}]}}, "not an RDF term"),
        ({"head": {"vars": ["a"]}, "results": {"bindings": [{"a": ASTRAY}]}}, "direction"),
        ({"boolean": "yes"}, "has an object head"),
    ],
)
def test_another_document_is_refused_by_what_is_wrong(document, message):
    with pytest.raises(ResultsError, match=message):
        rows(document)
    with pytest.raises(ResultsError):
        read_rows(json.dumps(document))


@pytest.mark.parametrize("text", [b"", b"{", b'{"results": {}}', b'{"results": {"bindings": {}}}', b"[" * 100_000,
                                  b'{"head": {"vars": ["a"]}, "results": {"bindings": [{}, 1]}}'])  # fmt: skip
def test_text_that_is_no_result_is_refused(text):
    with pytest.raises(ResultsError):
        read_rows(text)
