"""Rows of an evaluation that is stopped, or of a query that ends, are let go of in pieces."""

from itertools import product

import pytest

from streamgauge.incremental import release
from streamgauge.incremental.budget import TooMuchError
from streamgauge.incremental.drivers.landmark import Landmark
from streamgauge.incremental.operators import Index
from streamgauge.query import parse_sparql

RING = [(f"<urn:{n}>", "<urn:p>", f"<urn:{(n + 1) % 50}>") for n in range(50)]
PAIRS = 50 * 25
PATHS = "SELECT * { ?a (<urn:p>/<urn:p>)+ ?b }"


class Pieces:
    """The sizes of the tables that were emptied, in the place of ``release._empty``."""

    def __init__(self, patch):
        self.sizes, self._empty = [], release._empty
        patch.setattr(release, "PIECE", 100)
        patch.setattr(release, "_empty", self)

    def __call__(self, table):
        self.sizes.append(len(table))
        self._empty(table)
        assert not table


def test_tables_of_rows_and_of_tables_are_emptied_in_pieces(monkeypatch):
    monkeypatch.setattr(release, "PIECE", 3)
    rows, index = dict.fromkeys(product("abc", "def"), 1), Index(lambda row: row[:1])
    index.add(rows)
    bags = list(index.bags.values())
    assert [len(bag) for bag in bags] == [3, 3, 3]
    wide = {("a",): dict(rows), ("b",): {}}
    inner = wide[("a",)]
    release.let_go([rows, index, wide, None, 3])
    assert not rows
    assert not len(index)
    assert not wide
    assert not inner


def test_what_a_stopped_evaluation_was_making_is_let_go_of(monkeypatch):
    pieces = Pieces(monkeypatch)
    landmark = Landmark()
    landmark.limit(28_000, 1_000)
    landmark.load(RING)
    with pytest.raises(TooMuchError):
        landmark.ask(parse_sparql("SELECT * { ?a (<urn:p>/<urn:p>)+ ?b . ?b (<urn:p>/<urn:p>)+ ?c }"))
    assert max(pieces.sizes) >= PAIRS


def test_a_query_that_has_ended_lets_go_of_all(monkeypatch):
    landmark = Landmark()
    landmark.load(RING)
    standing = landmark.ask(parse_sparql(PATHS))
    assert len(standing.kept.solutions()) == PAIRS
    standing.end()
    pieces = Pieces(monkeypatch)
    standing.let_go()
    assert PAIRS in pieces.sizes
    assert not standing.kept.solutions()
    assert not any(map(len, standing.kept.tables()))
