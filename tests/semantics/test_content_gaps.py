"""The contents that pyoxigraph is asked about, by query and literals, and the lexical forms that are put back."""

import pytest

from streamgauge.model.terms import Term
from streamgauge.query import parse_sparql
from streamgauge.semantics import stored_terms
from streamgauge.semantics.stored_terms import ContentGaps, Forms
from tests.notation import term

XSD = "http://www.w3.org/2001/XMLSchema#"
PLAIN = "SELECT ?v { ?s :p ?v }"
MORE = "SELECT ?v { ?s :p ?v FILTER(?v > 5) }"
NEXT = "SELECT ?w { ?s :p ?v BIND(?v + 1 AS ?w) }"
SQUARE = "SELECT ?w { ?s :p ?v BIND(?v * ?v AS ?w) }"
CUBE = "SELECT ?w { ?s :p ?v BIND(?v * ?v * ?v AS ?w) }"
SQUARE_AND_CUBE = "SELECT ?w { ?s :p ?v BIND(?v * ?v AS ?u) BIND(?u * ?v AS ?w) }"
SIXTH = "SELECT ?w { ?s :p ?v BIND(?v * ?v * ?v AS ?u) BIND(?u * ?u AS ?w) }"
NINETEENTH = f"SELECT ({' * '.join(19 * ['?v'])} AS ?w) {{ ?s :p ?v }}"
EIGHTEENTH = f"SELECT ({' * '.join(18 * ['?v'])} AS ?w) {{ ?s :p ?v }}"
TWENTY_DOUBLES = f"SELECT (?v * 1e0{18 * ' * ?v'} AS ?w) {{ ?s :p ?v }}"
SUM_AND_TENTH = "SELECT (SUM(?v) + 0.1 AS ?t) { ?s :p ?v }"
SUM = "SELECT (SUM(?v) AS ?t) { ?s :p ?v }"
AVG = "SELECT (AVG(?v) AS ?t) { ?s :p ?v }"
MAX = "SELECT (MAX(?v) AS ?t) { ?s :p ?v }"
SAME = "SELECT ?v { ?s :p ?v FILTER(sameTerm(?v, 5)) }"
TEXT = "SELECT (STR(?v) AS ?t) { ?s :p ?v }"
ZONED, LOCAL = f'"2020-01-01T00:00:00Z"^^<{XSD}dateTime>', f'"2020-01-01T00:00:00"^^<{XSD}dateTime>'
SINCE = f"SELECT ?v {{ ?s :p ?v FILTER(?v > '2020-01-01T00:00:00Z'^^<{XSD}dateTime>) }}"
TENTH = "SELECT ?w { ?s :p ?v BIND(?v + 0.1 AS ?w) }"
ABOVE_TENTH = "SELECT ?w { ?s :p ?v FILTER(?v > 0.1) BIND(?v + 1 AS ?w) }"
FEW_AVG = "SELECT (AVG(?v) AS ?t) { ?s :p ?v FILTER(?v IN (1, 2)) }"
GIVEN_TENTH = "SELECT ?w { ?s :p ?v VALUES ?x { 0.1 } BIND(?v + ?x AS ?w) }"


def literals(text: str) -> frozenset[Term]:
    return frozenset(each if each[0] == '"' else term(each) for each in text.split())


def gaps(text: str) -> ContentGaps:
    return ContentGaps(parse_sparql(f"PREFIX : <urn:> {text}"))


ASKED: list[tuple[str, str, bool]] = [
    # sizes: 64 bits and 18 digits, with 30 bits beside for a sum
    (SUM, f"{2**32 - 1}", True),
    (SUM, f"{2**32}", False),
    (SUM, f"-{2**32}", False),
    (NEXT, f"{2**53 - 1}", True),
    (NEXT, f"{2**53}", False),
    (MORE, f"{2**53}", False),
    (SQUARE, f"{2**31 - 1}", True),
    (SQUARE, f"{2**31}", False),
    (SQUARE, "0.000000001", True),
    (SQUARE, "0.0000000001", False),
    (CUBE, "0.000001", True),
    (CUBE, "0.0000001", False),
    (SQUARE_AND_CUBE, "0.0000001", False),
    (SIXTH, "0.001", True),
    (SIXTH, "0.0001", False),
    (SUM, "0.000000000000000001", True),
    (SUM_AND_TENTH, "0.00000000000000001", True),
    (EIGHTEENTH, "0.1", True),
    (NINETEENTH, "0.1", False),
    (PLAIN, f"{2**63}", True),
    (PLAIN, "0.0000000000000000001", True),
    (MORE, "0.0000000000000000001", False),
    (SUM, f"{2.0**32 - 1}e0", True),
    (SUM, "1e10", False),
    (TWENTY_DOUBLES, f"{2**49}e0", True),
    (TWENTY_DOUBLES, f"{2**50}e0", False),
    # other kinds, where values matter
    (MORE, '"x"@en', False),
    (PLAIN, '"x"@en', True),
    (MORE, '"x"^^<urn:kind>', False),
    (PLAIN, '"x"^^<urn:kind>', True),
    (MORE, '"x"', True),
    # averages divide, which pyoxigraph does to 18 digits only
    (AVG, "1", False),
    (AVG, "1.5", False),
    (AVG, "1.5e0", True),
    (AVG, "1.5f", True),
    (AVG.replace("?v }", "?v FILTER(?v > 5) }"), "1.5e0", True),
    (AVG.replace("?v }", "?v VALUES ?x { 5 } }"), "1.5e0", False),
    # times with and without a zone
    (MORE, ZONED, True),
    (MORE, LOCAL, True),
    (MORE, f"{ZONED} {LOCAL}", False),
    (PLAIN, f"{ZONED} {LOCAL}", True),
    (SINCE, ZONED, True),
    (SINCE, LOCAL, False),
    # decimals with a fraction beside floats
    (SUM, "0.5 1.5e0", False),
    (SUM, "5.0 1.5e0", True),
    (SUM, "5 1.5e0", True),
    (SUM, "0.5 1.5", True),
    (MORE, "0.5 1.5e0", True),
    (TENTH, "1.5e0", False),
    (TENTH, "1.5", True),
    (ABOVE_TENTH, "1.5e0", True),
    (GIVEN_TENTH, "1.5e0", False),
    (GIVEN_TENTH, "1.5", True),
    # lexical forms
    (TEXT, "5", True),
    (TEXT, "05", False),
    (SAME, "05", False),
    (SAME, "06 7", True),
    (SAME, "5 6", True),
    # a literal of the query that the content has too
    (FEW_AVG, "1 2", False),
    (FEW_AVG, "1.5e0", True),
    (ABOVE_TENTH, "1.5e0 0.1", False),
    (ABOVE_TENTH, "1.5 0.1", True),
    (PLAIN, "05 06", True),
    (PLAIN, "05 5", False),
    (PLAIN, "5.0 5.00", False),
    (MAX, "05 5", False),
    (PLAIN, '"1"^^<urn:kind> "x"@en-toolonglanguagetag', False),
]


@pytest.mark.parametrize(("text", "held", "is_asked"), ASKED)
def test_pyoxigraph_is_asked(text: str, held: str, is_asked: bool) -> None:
    asked = gaps(text)
    for _ in range(2):
        assert (asked.forms(literals(held)) is not None) is is_asked


SEQUENCES: list[tuple[str, list[tuple[str, str | None]]]] = [
    (PLAIN, [("05", "5>05"), ("5.0", "5>5.0"), ("06 05", "5>05 6>06"), ("05 5", None), ("05", "5>05")]),
    (PLAIN, [("05 06", "5>05 6>06"), ("005", "5>005"), ("006 7", "6>006"), ("05 07", "5>05 7>07"), ("05 005", None)]),
    (PLAIN, [("05", "5>05"), ("005", "5>005"), ("05 6", "5>05"), ("05 005", None), ("7", ""), ("005", "5>005")]),
    (MORE, [(ZONED, ""), (LOCAL, ""), (f"{ZONED} {LOCAL}", None), (LOCAL, "")]),
    (MORE, [(LOCAL, ""), (ZONED, ""), (LOCAL, "")]),
    (SUM, [("0.5", ""), ("1.5e0", "1.5>1.5e0"), ("1.5e0 0.5", None), ("1.5e0", "1.5>1.5e0")]),
    (MORE, [("7", ""), ('"x"@en', None), ("7", "")]),
    (MORE, [('"!"@en 07', None), ("07", "7>07")]),
]


@pytest.mark.parametrize(("text", "contents"), SEQUENCES)
def test_a_content_is_judged_by_itself(text: str, contents: list[tuple[str, str | None]]) -> None:
    asked = gaps(text)
    for held, back in contents:
        found = asked.forms(literals(held))
        assert shown(found, held) == back, held


def shown(forms: Forms | None, held: str) -> str | None:
    """``5>05``: the literals of a content that are put back for a stored form, those that differ."""
    if forms is None:
        return None
    here = literals(held)
    pairs = sorted((stored, own) for stored, own in forms.items() if own in here and stored != own)
    return " ".join(">".join(each[1 : each.rfind('"')] for each in pair) for pair in pairs)


def test_what_has_been_learned_is_forgotten_beyond_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_terms, "LIMIT", 3)
    asked, every = gaps("SELECT ?v { ?s :p ?v FILTER(?v > 005) }"), "01 02 3 4 005 06"
    assert asked.forms(literals("01 02")) is not None
    assert shown(asked.forms(literals("3 4")), every) == "1>01 2>02 5>005"
    assert shown(asked.forms(literals("06")), every) == "5>005 6>06"
    assert asked.forms(literals("5")) is None


def test_columns_and_values() -> None:
    assert gaps(NEXT).plain_columns == (False,)
    assert gaps(PLAIN).plain_columns == (True,)
    assert (gaps(MORE).compares, gaps(PLAIN).compares) == (True, False)


def test_twins_of_one_value_are_told_beside_twins_of_another():
    asked = gaps(MAX)
    assert asked.forms(literals("1 1.0 2 2.0")) is None
    assert [asked.forms(literals(text)) is None for text in ("1 1.0", "2 2.0", "1 2", "1.0 2.0")] == [
        True,
        True,
        False,
        False,
    ]
