"""Legal slices are those of all orders that ORDER BY allows, found here by trying every order."""

from itertools import permutations, product
from random import Random

import pytest

from streamgauge.model import algebra as a
from streamgauge.oracle.worlds.conditions import CutOffError
from streamgauge.oracle.worlds.openings import CURRENT, Openings
from streamgauge.oracle.worlds.slices import Keys, Precedence, misplaced, order_keys
from streamgauge.query import parse_sparql
from streamgauge.query.traversal import answer_order
from tests.notation import term

TERMS = ("1", "2", "3", "'x'", "'y'", "a", "b", None)


def is_less(one: str | None, two: str | None) -> bool:
    """SPARQL 15.1: unbound, IRIs, literals; numbers and strings among themselves."""

    def rank(cell: str | None) -> int:
        return 0 if cell is None else 2 if cell[0] in "'123" else 1

    if rank(one) != rank(two):
        return rank(one) < rank(two)
    if one is None or two is None or (one[0] == "'") != (two[0] == "'"):
        return False
    return one < two


def precedes(one: tuple[str | None, ...], two: tuple[str | None, ...], down: tuple[bool, ...]) -> bool:
    for mine, other, descending in zip(one, two, down, strict=True):
        if mine == other:
            continue
        return is_less(other, mine) if descending else is_less(mine, other)
    return False


def legal(rows: list[tuple[str | None, ...]], down: tuple[bool, ...], cut: a.Slice) -> set[tuple[int, ...]]:
    """The slices of every order in which no row follows one that it has to precede, as places."""
    found = set()
    for order in permutations(range(len(rows))):
        if not any(precedes(rows[later], rows[place], down) for at, place in enumerate(order) for later in order[at:]):
            end = len(rows) if cut.limit is None else cut.offset + cut.limit
            found.add(tuple(sorted(order[cut.offset : end])))
    return found


def slice_of(limit: int | None, offset: int) -> a.Slice:
    return a.Slice(a.BGP(()), offset=offset, limit=limit)


@pytest.fixture(autouse=True)
def _openings():
    token = CURRENT.set(Openings())
    yield
    CURRENT.reset(token)


def keys(rows, down) -> list[Keys]:
    return [Keys(tuple(cell and term(cell) for cell in row), down) for row in rows]


@pytest.mark.parametrize("seed", range(40))
def test_slices_are_those_of_all_legal_orders(seed: int) -> None:
    random = Random(seed)
    columns = random.choice((1, 1, 2))
    down = tuple(random.random() < 0.5 for _ in range(columns))
    rows = [tuple(random.choice(TERMS) for _ in range(columns)) for _ in range(random.randint(0, 5))]
    precedence = Precedence(keys(rows, down))
    for limit, offset in product((None, 0, 1, 2, 4), (0, 1, 2, 6)):
        cut = slice_of(limit, offset)
        expected = legal(rows, down, cut)
        assert {tuple(sorted(kept)) for kept in precedence.slices(cut)} == expected, (rows, down, cut)
        size = precedence.size(cut)
        assert {len(kept) for kept in expected} == {size}
        kept = [places for places in permutations(range(len(rows)), size) if precedence.is_slice(places, cut)]
        assert {tuple(sorted(places)) for places in kept} == expected


@pytest.mark.parametrize(
    ("rows", "down", "late"),
    [
        (["1", "2", "3"], False, []),
        (["1", "3", "2"], False, ["2"]),
        (["2", "1", "1", "3"], False, ["1", "1"]),
        (["3", "2", "1"], True, []),
        (["3", "1", "2"], True, ["2"]),
        # A string is in no order with numbers.
        (["1", "'x'", "2"], False, []),
        (["2", "'x'", "1"], False, ["1"]),
        (["'y'", "1", "'x'", "2"], False, ["'x'"]),
        ([], False, []),
    ],
)
def test_a_row_is_misplaced_where_it_follows_one_that_it_has_to_precede(rows, down, late):
    given = [("<urn:other>", term(cell)) for cell in rows]
    assert [row[1] for row in misplaced(given, [(1, down)])] == [term(cell) for cell in late]


def test_equal_first_keys_are_decided_by_the_second():
    given = [(term(one), term(two)) for one, two in (("1", "'x'"), ("1", "'y'"), ("2", "'x'"), ("1", "'x'"))]
    assert misplaced(given, [(0, False), (1, False)]) == [given[3]]
    assert misplaced(given, [(0, False), (1, True)]) == [given[1], given[3]]
    assert misplaced(given, [(0, False)]) == [given[3]]


@pytest.mark.parametrize(("rows", "limit", "cut_off"), [(200, 2, False), (201, 2, True), (201, 0, False)])
def test_more_than_twenty_thousand_combinations_are_not_tried(rows, limit, cut_off):
    precedence = Precedence(keys([("1",)] * rows, (False,)))
    if cut_off:
        with pytest.raises(CutOffError, match=r"2,000 legal answers .* open are: the rows that LIMIT and OFFSET keep"):
            precedence.slices(slice_of(limit, 0))
    else:
        assert len(precedence.slices(slice_of(limit, 0))) == (rows * (rows - 1) // 2 if limit else 1)


@pytest.mark.parametrize(
    ("text", "columns", "ordered"),
    [
        ("SELECT ?s ?v { ?s ?p ?v } ORDER BY ?v", ((1, False),), True),
        ("SELECT ?s ?v { ?s ?p ?v } ORDER BY DESC(?v) ?s", ((1, True), (0, False)), True),
        ("SELECT DISTINCT ?v { ?s ?p ?v } ORDER BY ?v LIMIT 3", ((0, False),), True),
        ("SELECT REDUCED ?v { ?s ?p ?v } ORDER BY ?v OFFSET 3", ((0, False),), True),
        ("SELECT ?s { ?s ?p ?v } ORDER BY ?v", (), True),
        ("SELECT ?s { ?s ?p ?v } ORDER BY ?s ?v", (), True),
        ("SELECT ?v { ?s ?p ?v } ORDER BY (?v + 1)", (), True),
        ("SELECT ?s { ?s ?p ?v }", (), False),
        ("SELECT ?s { { SELECT ?s { ?s ?p ?v } ORDER BY ?s } }", (), False),
        ("CONSTRUCT { ?s ?p ?v } WHERE { ?s ?p ?v } ORDER BY ?s", (), False),
    ],
)
def test_the_columns_of_order_by(text, columns, ordered):
    form = parse_sparql(text)
    assert (order_keys(form), answer_order(form) is not None) == (columns, ordered)
