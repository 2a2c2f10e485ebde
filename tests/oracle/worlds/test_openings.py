"""Open terms: which received texts they may be, and which of them may be equal."""

from fractions import Fraction

import pytest

from streamgauge.model.terms import XSD, Term
from streamgauge.oracle.worlds.intervals import Interval, OpenError
from streamgauge.oracle.worlds.openings import Openings, OpenTerm, sent_texts
from streamgauge.sparql.values import DOUBLE

MALFORMED = ['"', '"a"b"', '"a\\"', '"a\nb"', '"\\q"', '"\\u12"']


@pytest.mark.parametrize("malformed", MALFORMED)
def test_received_strings_are_known_by_their_length_and_what_is_no_term_is_left_out(malformed: str) -> None:
    rows = [('"b"', '"a"', None), ("<urn:x>", '"ab"@en', '"x y"'), (malformed,), ('"a"', '"\\n"', '""')]
    assert sent_texts(rows) == {0: ['""'], 1: ['"\\n"', '"a"', '"b"'], 3: ['"x y"']}


ROWS: list[tuple[list[tuple[object, ...]], bool]] = [
    # Pairs are the ends of open numbers; the rest are terms, and those in lists open terms.
    ([((0, 1),)], False),
    ([((0, 1),), ((2, 3),)], False),
    ([((0, 1),), ((1, 2),)], True),
    ([((1, 2),), ((0, 1),)], True),
    ([((0, 1),), ((2, 3),), ((3, 4),)], True),  # not the first
    ([((0, 1),), ((2, 3),), ((4, 5),)], False),
    ([((0, 9),), ((1, 2),), ((8, 8),)], True),  # the first reaches beyond the second
    ([((0, 1),), ('"1"^^xsd:double',)], True),
    ([((0, 1),), ('"2"^^xsd:double',)], False),
    ([((0, 1),), ('"x"',)], False),
    ([((0, 1),), (None,)], False),
    ([((0, 1), "<urn:a>"), ((0, 1), "<urn:b>")], False),  # apart by a column that is not open
    ([((0, 1), "<urn:a>"), ((0, 1), "<urn:a>")], True),
    ([((0, 1), (5, 6)), ((0, 1), (7, 8))], False),
    ([((0, 1), (5, 6)), ((0, 1), (6, 8))], True),
    ([((0, 1), (5, 6)), ((0, 1), "<urn:a>")], False),
    ([(['"A"'],), (['"a"'],)], True),  # in another case
    ([(['"A"'],), (['"b"'],)], False),
    ([(['"A"'],), ('"a"',)], True),
    ([('"A"',), ('"a"',)], False),  # nothing is open
    ([], False),
]


@pytest.mark.parametrize(("rows", "alike"), ROWS)
def test_rows_may_be_equal_where_all_their_open_terms_may_be(rows: list[tuple[object, ...]], alike: bool) -> None:
    openings = Openings()

    def term(cell: object) -> Term | None:
        if isinstance(cell, tuple):
            low, high = map(Fraction, cell)
            return openings.number(Interval(DOUBLE, low, high, low)) if low < high else f'"{low}"^^<{XSD}double>'
        if isinstance(cell, list):
            return openings.term(OpenTerm(cell, ""))
        return cell.replace("xsd:double", f"<{XSD}double>") if isinstance(cell, str) else None

    held = [tuple(map(term, row)) for row in rows]
    if alike:
        with pytest.raises(OpenError, match="they may be"):
            openings.refuse_alike(held, "they may be equal")
    else:
        openings.refuse_alike(held, "they may be equal")
