"""N-Triples text split by `formats/ntriples` gives the triples, or the error, that pyoxigraph gives."""

import pyoxigraph as ox
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamgauge.formats import ntriples
from streamgauge.formats.canonical import to_triples
from streamgauge.formats.ntriples import NTriplesReader
from tests.examples import examples

IRIS = ["<urn:a>", "<http://a.example/b?c=d&e#f>", "<http://a:80/>", "<urn:a:1//2>", "<mailto:a@b.c>", "<http://a>"]
ODD_IRIS = [
    "<a>", "<urn:>", "<http://a:b/>", "<http://a b>", "<urn:%zz>", "<urn:%41>", "<urn:é>", "<urn:a#b#c>", "<URN:a>",
    "<http://[::1]/>", "<urn:\\u0041>", "<>", "<urn:a", "<<( <urn:a> <urn:a> <urn:a> )>>", "<http:///a>", "<a:/b>",
    "<http://a?b>", "<http://a@b/>", "<a://>", "<urn:a\n>", "<http://a:99999/>",
]  # fmt: skip
BLANKS = ["_:b", "_:b1", "_:1", "_:abc", "_:deadbeef0", "_:a.b", "_:a-", "_:", "_:é", "_:00a"]
XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
LITERALS = [
    '"a"', '""', '"a b"', '"a . b"', '" .\n"', '"é"', '"\t"', '"\\t"', '"\\""', '"\\u0041"', '"\ufffe"', '"\x7f"',
    f'"1"^^<{XSD}integer>', f'"01"^^<{XSD}integer>', f'"a"^^<{XSD}string>', f'"a"^^<{RDF}langString>', '"a"^^<b>',
    '"a"@en', '"a"@EN', '"a"@en-gb', '"a"@x-y', '"a"@i-klingon', '"a"@abcdefghi', '"a"@', '"a"@en--ltr', '"a" .',
    "'a'", '"a"^^ <urn:a>', '"\u0300"', '"\u2028"',
]  # fmt: skip

TERMS = st.sampled_from([*IRIS * 4, *ODD_IRIS, *BLANKS, *LITERALS * 2])
COMMON = st.sampled_from([*IRIS, "_:b", '"a b"', '"a"@en', f'"1"^^<{XSD}integer>'])
SOME = COMMON | COMMON | COMMON | TERMS
BLANK = st.sampled_from([" "] * 12 + ["", "  ", "\t"])
END = st.sampled_from([" .\n"] * 12 + [".\n", " .", "\n", " . # c\n", " .\r\n", " .\n\n", ""])
LINES = st.builds("{}{}{}{}{}{}".format, SOME, BLANK, st.sampled_from(IRIS) | SOME, BLANK, SOME, END)


def parsed(text: bytes):
    try:
        return to_triples(ox.parse(text, format=ox.RdfFormat.N_TRIPLES))
    except SyntaxError:
        return SyntaxError


def read(reader: NTriplesReader, text: bytes):
    try:
        return reader.triples(text)
    except (SyntaxError, ValueError):
        return SyntaxError


@pytest.mark.slow
@examples(150, prove=20_000)
@given(st.lists(st.lists(LINES, max_size=4).map("".join), min_size=1, max_size=4), st.sampled_from([0, 3, 1000]))
@example(['<urn:a> <urn:b> "x . y" .\n'], 1000)
def test_a_text_gives_what_pyoxigraph_gives(texts, limit):
    """Whatever was read before, and whatever of that is forgotten."""
    reader = NTriplesReader(limit)
    for text in texts:
        assert read(reader, text.encode()) == parsed(text.encode())


@examples(100, prove=5000)
@given(st.lists(st.lists(LINES, max_size=2).map("".join), max_size=4))
def test_several_texts_give_what_each_gives(texts):
    coded = [text.encode() for text in texts]
    wanted = [parsed(item) for item in coded]
    try:
        assert NTriplesReader().several(coded) == wanted
    except (SyntaxError, ValueError):
        assert SyntaxError in wanted


@examples(200, prove=20_000)
@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    st.sampled_from(['"{}"', "<urn:{}>", "_:a{}", '"a"@{}', "<a:{}>"]),
)
def test_a_term_of_any_characters(characters, form):
    text = f"<urn:a> <urn:b> {form.format(characters)} .\n".encode()
    assert read(NTriplesReader(), text) == parsed(text)


def test_canonical_text_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither blanks in literals nor terms at several places have a text parsed; a wrong byte does."""
    monkeypatch.setattr(ntriples, "to_triples", lambda _: pytest.fail("parsed"))
    reader = NTriplesReader()
    text = f'<urn:a> <urn:b> <urn:a> .\n_:b <urn:b> "a b . c"@en .\n<urn:a> <urn:b> "1"^^<{XSD}int> .\n'.encode()
    first, again = reader.triples(text), reader.triples(text)
    assert first == again == tuple(reader.several([text[:26], text[26:]])[0] + reader.several([text[26:]])[0])
    assert first[0][0] is again[0][0]
    with pytest.raises(pytest.fail.Exception):
        reader.triples(b'<urn:a> <urn:b> "\\t" .\n')
    with pytest.raises(pytest.fail.Exception):
        reader.triples(b"<urn:a> <urn:b> \xff .\n")
