"""Literals as pyoxigraph stores them: form, kind, and the size of numbers."""

import pytest

from streamgauge.model.terms import XSD, Term
from streamgauge.semantics import stored_terms
from streamgauge.semantics.stored_terms import LiteralKind, StoredLiteral, stored_literals

KINDS = {
    "integer": LiteralKind.INTEGER,
    "decimal": LiteralKind.DECIMAL,
    "floating": LiteralKind.FLOATING,
    "string": LiteralKind.STRING,
    "boolean": LiteralKind.BOOLEAN,
    "zoned": LiteralKind.ZONED,
    "local": LiteralKind.LOCAL,
    "other": LiteralKind.OTHER,
}
SAME = ""
"""The stored form is the literal."""

DESCRIBED: list[tuple[str, str | None, str]] = [
    # literal (^^integer is xsd's), stored form ("" for the same, None for none), kind with bits and digits
    ('"a"', SAME, "string"),
    ('""', SAME, "string"),
    ('"a\\nb\\"c"', SAME, "string"),
    ('"a"@en', SAME, "other"),
    ('"a"@EN', '"a"@en', "other"),
    ('"a"@en-toolonglanguagetag', None, "other"),
    ('"5"^^<integer>', None, "other"),
    ('"a"^^<urn:kind>', SAME, "other"),
    ('"1"^^<urn:integer>', SAME, "other"),
    ('"a"^^<no iri>', None, "other"),
    ('"5"^^integer', SAME, "integer 3"),
    ('"0"^^integer', SAME, "integer"),
    ('"-8"^^integer', SAME, "integer 4"),
    ('"+7"^^integer', '"7"^^integer', "integer 3"),
    ('"007"^^integer', '"7"^^integer', "integer 3"),
    ('"4611686018427387903"^^integer', SAME, "integer 62"),
    ('"4611686018427387904"^^integer', SAME, "other"),
    ('"999999999999999999"^^integer', SAME, "integer 60"),
    ('"-999999999999999999"^^integer', SAME, "integer 60"),
    ('"99999999999999999999"^^integer', SAME, "other"),
    ('"' + 39 * "0" + '1"^^integer', '"1"^^integer', "integer 1"),
    ('"' + 40 * "0" + '1"^^integer', '"1"^^integer', "other"),
    ('"-' + 39 * "0" + '1"^^integer', '"-1"^^integer', "integer 1"),
    ('"1.0"^^integer', SAME, "other"),
    ('"1."^^integer', SAME, "other"),
    ('"x"^^integer', SAME, "other"),
    ('" 1"^^integer', SAME, "other"),
    ('"\uff11"^^integer', SAME, "other"),
    ('"1"^^int', '"1"^^integer', "other"),
    ('"1.5"^^decimal', SAME, "decimal 1 1"),
    ('"1.50"^^decimal', '"1.5"^^decimal', "decimal 1 1"),
    ('"-12.25"^^decimal', SAME, "decimal 4 2"),
    ('"1.0"^^decimal', '"1"^^decimal', "decimal 1"),
    ('".5"^^decimal', '"0.5"^^decimal', "decimal 0 1"),
    ('"-.5"^^decimal', '"-0.5"^^decimal', "decimal 0 1"),
    ('"+.25"^^decimal', '"0.25"^^decimal', "decimal 0 2"),
    # 25 bits: the double lies in the middle between two floats, and the value with it or beside it
    ('"8388608.5"^^decimal', SAME, "decimal 24 1"),
    ('"0.5000000298023224"^^decimal', SAME, "other"),
    ('"-0.5000000298023224"^^decimal', SAME, "other"),
    ('"0.5000000298023223"^^decimal', SAME, "decimal 0 16"),
    ('"5."^^decimal', '"5"^^decimal', "decimal 3"),
    ('"1e3"^^decimal', SAME, "other"),
    ('"0.000000000000000001"^^decimal', SAME, "decimal 0 18"),
    ('"0.0000000000000000010"^^decimal', '"0.000000000000000001"^^decimal', "decimal 0 18"),
    ('"0.0000000000000000001"^^decimal', SAME, "other"),
    ('"0.9007199254740991"^^decimal', SAME, "decimal 0 16"),
    ('"0.9007199254740993"^^decimal', SAME, "other"),
    ('"90071992547409.93"^^decimal', SAME, "other"),
    ('"9007199254740993"^^decimal', SAME, "decimal 54"),
    ('"4611686018427387904"^^decimal', SAME, "other"),
    ('"1.5"^^double', SAME, "floating 1"),
    ('"1.5e0"^^double', '"1.5"^^double', "floating 1"),
    ('"-1E2"^^double', '"-100"^^double', "floating 7"),
    ('"+.5"^^double', '"0.5"^^double', "floating"),
    ('"1.e1"^^double', '"10"^^double', "floating 4"),
    ('"76.0"^^float', '"76"^^float', "floating 7"),
    ('"INF"^^double', SAME, "other"),
    ('"-INF"^^float', SAME, "other"),
    ('"1e400"^^double', '"INF"^^double', "other"),
    ('"NaN"^^double', SAME, "other"),
    ('"x"^^double', SAME, "other"),
    ('"\uff11.5"^^double', SAME, "other"),
    ('"\uff11.5"^^decimal', SAME, "other"),
    ('"1e"^^float', SAME, "other"),
    ('"true"^^boolean', SAME, "boolean"),
    ('"false"^^boolean', SAME, "boolean"),
    ('"1"^^boolean', '"true"^^boolean', "boolean"),
    ('"0"^^boolean', '"false"^^boolean', "boolean"),
    ('"TRUE"^^boolean', SAME, "other"),
    ('"2020-01-01T00:00:00"^^dateTime', SAME, "local"),
    ('"2020-01-01T00:00:00Z"^^dateTime', SAME, "zoned"),
    ('"2020-01-01T00:00:00.5Z"^^dateTime', SAME, "zoned"),
    ('"2020-01-01T00:00:00.123456"^^dateTime', SAME, "local"),
    ('"2020-01-01T00:00:00.1234567"^^dateTime', SAME, "other"),
    ('"2020-01-01T01:00:00+01:00"^^dateTime', SAME, "zoned"),
    ('"2020-01-01T01:00:00-14:00"^^dateTime', SAME, "zoned"),
    ('"2020-01-01T01:00:00+14:01"^^dateTime', SAME, "other"),
    ('"2020-13-01T00:00:00"^^dateTime', SAME, "other"),
    ('"2020-01-01"^^dateTime', SAME, "other"),
    ('"2020-01-01T00:00"^^dateTime', SAME, "other"),
    ('"x2020-01-01T00:00:00"^^dateTime', SAME, "other"),
    ('"\uff12020-01-01T00:00:00"^^dateTime', SAME, "other"),
    ('"2020-01-01"^^date', SAME, "other"),
]


def whole(text: str | None) -> Term | None:
    head, mark, kind = (text or "").partition("^^")
    return text if text is None or not mark or kind[0] == "<" else f"{head}^^<{XSD}{kind}>"


def described(text: str, form: str | None, said: str) -> tuple[Term, StoredLiteral]:
    kind, *sizes = said.split()
    term = whole(text)
    assert term is not None
    return term, StoredLiteral(term if form == SAME else whole(form), KINDS[kind], *map(int, sizes))


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> dict[Term, StoredLiteral]:
    """Nothing is remembered from other tests."""
    known: dict[Term, StoredLiteral] = {}
    monkeypatch.setattr(stored_terms, "_known", known)
    return known


@pytest.mark.parametrize(("text", "form", "said"), DESCRIBED)
def test_a_literal(text: str, form: str | None, said: str) -> None:
    term, expected = described(text, form, said)
    assert stored_literals([term]) == {term: expected}


@pytest.mark.parametrize("chunk", [2, 7, 50_000])
def test_many_literals_at_once(monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(stored_terms, "_CHUNK", chunk)
    expected = dict(described(*each) for each in DESCRIBED)
    assert stored_literals(list(expected)) == expected
    assert stored_literals(list(expected)[::2]) == {term: expected[term] for term in list(expected)[::2]}


def test_literals_that_no_store_takes_are_found_among_others() -> None:
    wrong, right = '"a"@en-toolonglanguagetag', '"b"@EN'
    for literals in ([wrong, right], [right, wrong], [right, wrong, f"{right}-gb", wrong.replace('"a"', '"c"')]):
        found = stored_literals(literals)
        assert [found[each].form for each in literals] == [
            None if each.endswith("tag") else each.lower() for each in literals
        ]


def test_known_and_new_literals_together() -> None:
    one, two = stored_literals(['"1"']), stored_literals(['"1"', '"2"'])
    assert (list(one), sorted(two)) == (['"1"'], ['"1"', '"2"'])
    assert stored_literals([]) == {}


@pytest.mark.slow
def test_200_000_literals_are_remembered_at_most(fresh: dict[Term, StoredLiteral]) -> None:
    fresh.update((str(number), StoredLiteral(None, LiteralKind.OTHER)) for number in range(199_999))
    stored_literals(['"a"'])
    assert len(fresh) == 200_000
    assert stored_literals(['"a"', '"b"'])['"a"'].kind is LiteralKind.STRING
    assert list(fresh) == ['"b"']
