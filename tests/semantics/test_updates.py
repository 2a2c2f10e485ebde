"""Updates by the definition: each element matched by itself, the groups of the newest one over its window."""

import re
from dataclasses import replace

import pytest

from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import R2S, Borders, Changes, Counting, Report, Tick
from streamgauge.query import parse_sparql
from streamgauge.semantics.definition import expected
from streamgauge.semantics.profiles import UPDATES
from streamgauge.semantics.refusal import RefusedError
from tests.notation import STREAM, rows, stream

SUM = "SELECT ?s (SUM(?v) AS ?n) { ?s <urn:v> ?v } GROUP BY ?s"
CAME = "0: a v 3. | 1: b v 4. | 2: a v 5. | 2: a v 5. | 6: a v 1. c v 1. | 7: a w 1."


def asked(text: str, size: int = 5, slide: int = 5, kind="time", name: str | None = None, **more) -> ContinuousQuery:
    return ContinuousQuery(parse_sparql(text), (StreamWindow(STREAM, Window(size, slide, kind), name),), **more)


def updates(text: str, came: str = CAME, semantics=UPDATES, **window) -> list[tuple[int, int, tuple]]:
    result = expected(stream(came), asked(text, **window), semantics, 20, 0)
    return [(report.due.instant, report.due.start, tuple(sorted(report.rows))) for report in result]


def test_the_groups_of_an_element_are_updated_and_no_others():
    assert updates(SUM) == [
        (0, 0, rows("a 3")),
        (1, 0, rows("b 4")),
        (2, 0, rows("a 8")),
        (2, 0, rows("a 13")),  # the same triple in another element is another solution
        (6, 5, rows("a 1; c 1")),
    ]


def test_without_aggregates_the_answer_is_over_the_newest_element():
    text = "SELECT ?s ?o { ?s <urn:v> ?v . ?s <urn:w> ?o FILTER(?v > 1) }"
    assert updates(text, "0: a v 3. | 1: a w 4. | 2: a v 5. a w 6. b v 1. b w 2.") == [(2, 0, rows("a 6"))]


def test_equal_rows_of_two_elements_are_sent_twice_also_where_a_window_ends():
    assert updates("SELECT ?s { ?s <urn:v> ?v }", "4: a v 3. | 5: a v 3.") == [(4, 0, rows("a")), (5, 5, rows("a"))]


def test_a_sliding_window_shows_the_active_one_and_a_landmark_all():
    count = "SELECT (COUNT(*) AS ?n) { ?s <urn:v> ?v }"
    came = "0: a v 3. | 1: b v 4. | 2: a v 5. | 6: a v 1. c v 1."
    assert updates(count, came, size=4, slide=2)[-1] == (6, 4, rows("2"))
    assert updates(count, came, size=4, slide=2)[-2] == (2, 0, rows("3"))
    assert updates(count, came, kind="landmark")[-1] == (6, 0, rows("5"))


def test_having_holds_back_a_group_that_does_not_pass():
    text = "SELECT ?s (SUM(?v) AS ?n) { ?s <urn:v> ?v } GROUP BY ?s HAVING(SUM(?v) > 4)"
    assert updates(text) == [(2, 0, rows("a 8")), (2, 0, rows("a 13"))]


def test_an_element_between_two_windows_updates_nothing():
    assert [at for at, _, _ in updates(SUM, "0: a v 1. | 3: a v 1. | 4: a v 1. | 9: a v 1.", size=2, slide=4)] == [
        0,
        4,
        9,
    ]


def test_a_window_with_a_name_is_read_by_it():
    text = "SELECT ?s (SUM(?v) AS ?n) { GRAPH <urn:w> { ?s <urn:v> ?v } } GROUP BY ?s"
    assert updates(text, name="urn:w") == updates(SUM)


REFUSED = {
    "DISTINCT": "SELECT DISTINCT ?s { ?s <urn:v> ?v }",
    "LIMIT": "SELECT ?s { ?s <urn:v> ?v } LIMIT 1",
    "subselect": "SELECT ?s { { SELECT ?s (COUNT(*) AS ?n) { ?s <urn:v> ?v } GROUP BY ?s } ?s <urn:w> ?o }",
    "EXISTS": "SELECT ?s { ?s <urn:v> ?v FILTER EXISTS { ?s <urn:w> ?o } }",
    "group by a variable": "SELECT ?k (COUNT(*) AS ?n) { ?s <urn:v> ?v } GROUP BY (STR(?s) AS ?k)",
    "OPTIONAL": "SELECT ?o (COUNT(*) AS ?n) { ?s <urn:v> ?v OPTIONAL { ?s <urn:w> ?o } } GROUP BY ?o",
    "use SELECT": "ASK { ?s <urn:v> ?v }",
    "GRAPH": "SELECT ?s { GRAPH ?g { ?s <urn:v> ?v } }",
}


@pytest.mark.parametrize("word", REFUSED)
def test_a_query_without_updates_is_refused_in_words(word):
    with pytest.raises(RefusedError, match="updates of") as refused:
        updates(REFUSED[word])
    assert re.search(rf"\b{word}\b", str(refused.value))


def test_windows_operators_and_static_data_are_refused_in_words():
    with pytest.raises(RefusedError, match="count-based"):
        updates(SUM, kind="count")
    istream = replace(UPDATES, r2s=R2S.ISTREAM, r2s_able=frozenset({R2S.ISTREAM}))
    with pytest.raises(RefusedError, match="Istream of updates"):
        updates(SUM, semantics=istream)
    with pytest.raises(RefusedError, match="beside static data"):
        expected(stream(CAME), asked(SUM, static=(("<urn:a>", "<urn:v>", "<urn:b>"),)), UPDATES, 20, 0)


@pytest.mark.parametrize(
    "other",
    [
        {"tick": Tick.TUPLE},
        {"changes": Changes.BOTH},
        {"report": frozenset({Report.CONTENT_CHANGE, Report.NON_EMPTY})},
        {"partial_head": False},
        {"lateness": 0},
        {"answers": Counting.UPDATES},
    ],
    ids=lambda other: next(iter(other)),
)
def test_a_semantics_in_which_updates_mean_nothing_is_refused(other):
    with pytest.raises(ValueError, match="updates"):
        replace(UPDATES, **other)
    assert replace(UPDATES, borders=Borders.OPEN_CLOSED)
