"""The notation of cases: terms, streams and rows as they are written, and what is not in it."""

import pytest

from streamgauge.formats.notation import NotationError, iri, rows, stream, term
from streamgauge.model.terms import XSD


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a", "<urn:a>"),
        ("<http://x/y>", "<http://x/y>"),
        ("_:b", "_:b"),
        ("5", f'"5"^^<{XSD}integer>'),
        ("5.50", f'"5.50"^^<{XSD}decimal>'),
        ("05", f'"05"^^<{XSD}integer>'),
        ("5f", f'"5"^^<{XSD}float>'),
        ("15e-1", f'"15e-1"^^<{XSD}double>'),
        ("NaN", f'"NaN"^^<{XSD}double>'),
        ("true", f'"true"^^<{XSD}boolean>'),
        ("'x'", '"x"'),
        ("'x'@en", '"x"@en'),
        ("'2026-01-02'^^date", f'"2026-01-02"^^<{XSD}date>'),
    ],
)
def test_terms(text, wanted):
    assert term(text) == wanted


def test_streams():
    first, second = stream("0: a p b. a q 5. | [other] 3..9: b q c.")
    assert (first.stream, first.time, first.until, first.sequence, len(first.added)) == (iri("test"), 0, None, 0, 2)
    assert (second.stream, second.time, second.until, second.sequence) == (iri("other"), 3, 9, 1)


def test_rows():
    assert rows("a - ; b 5") == (("<urn:a>", None), ("<urn:b>", f'"5"^^<{XSD}integer>'))
    assert rows("") == ()


@pytest.mark.parametrize(
    ("read", "text", "words"),
    [
        (stream, "x: a p b.", "'x: a p b.' is not an element"),
        (stream, "1: a p.", "has a triple of 2 terms"),
        (stream, "1: a p 'x.", "is not a literal"),
        (rows, "'a'^^", "is not a literal"),
    ],
)
def test_what_is_not_in_the_notation_is_quoted(read, text, words):
    with pytest.raises(NotationError, match=words):
        read(text)
