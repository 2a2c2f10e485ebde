"""CQELS on the pipe: every match that arrives is a row, once; what it needs and what it refuses is said."""

from collections import Counter

import pytest

from streamgauge.engines import load
from streamgauge.query import parse
from streamgauge.semantics.profiles import CQELS_1, RSPQL
from tests.engines.foreign.given import AVERAGE, SELECT, asked, here, said, weather
from tests.notation import STREAM, stream

pytestmark = pytest.mark.server


def test_every_match_is_a_row_once():
    here("cqels")
    elements = tuple(weather(20, 20))
    answers = said("cqels", asked(), CQELS_1, elements, 20_000)
    above = [element for element in elements if float(element.added[2][2].split('"')[1]) > 50]
    assert [answer.added for answer in answers] == [((item.added[0][0], item.added[2][2]),) for item in above]
    assert {answer.instant for answer in answers} == {None}


def test_an_aggregate_is_sent_again_for_every_match():
    here("cqels")
    elements = tuple(weather(5, 5))
    answers = said("cqels", asked(AVERAGE), CQELS_1, elements, 5000)
    values = [value for element in elements if (value := float(element.added[2][2].split('"')[1])) > 50]
    means = [sum(values[: number + 1]) / (number + 1) for number in range(len(values))]
    results = [float(answer.added[0][0].split('"')[1]) for answer in answers]
    assert results == pytest.approx(means, rel=1e-5)


def test_an_aggregate_over_a_single_pattern_is_over_nothing():
    here("cqels")
    query = parse(f"SELECT (COUNT(*) AS ?n) WHERE {{ STREAM <{STREAM}> [RANGE 5s] {{ ?s <urn:p> ?o }} }}")
    (answer,) = said("cqels", query, CQELS_1, stream("1: a p b."), 5)
    assert answer.added == (('"0"^^<http://www.w3.org/2001/XMLSchema#integer>',),)


def test_patterns_outside_of_a_stream_read_the_static_data():
    here("cqels")
    text = f"SELECT ?s WHERE {{ STREAM <{STREAM}> [RANGE 5s] {{ ?s <urn:p> ?o }} ?o <urn:is> <urn:hot> }}"
    query = parse(text).with_static((("<urn:b>", "<urn:is>", "<urn:hot>"),))
    (answer,) = said("cqels", query, CQELS_1, stream("1: a p b. | 2: c p d."), 5)
    assert answer.added == (("<urn:a>",),)


def test_a_string_in_a_pattern_is_the_one_in_the_data():
    here("cqels")
    query = parse(f'SELECT ?s WHERE {{ STREAM <{STREAM}> [RANGE 5s] {{ ?s <urn:p> "T1" ; <urn:q> ?o }} }}')
    answers = said("cqels", query, CQELS_1, stream("1: a p 'T1'. a q 'x'. | 2: b p 'T2'. b q 'x'."), 5)
    assert [answer.added for answer in answers] == [(("<urn:a>",),)]


def test_construct_sends_a_graph_for_every_match():
    here("cqels")
    query = parse(f"CONSTRUCT {{ ?o <urn:q> ?s }} WHERE {{ STREAM <{STREAM}> [RANGE 5s] {{ ?s <urn:p> ?o }} }}")
    (answer,) = said("cqels", query, CQELS_1, stream("1: a p b."), 5)
    assert (answer.kind, answer.added) == ("triples", (("<urn:b>", "<urn:q>", "<urn:a>"),))


WHERE = f"STREAM <{STREAM}> [RANGE 5s] {{ ?s <urn:p> ?o %s }}"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (f"ASK {{ {WHERE % ''} }}", "no ASK"),
        (f"SELECT * {{ {WHERE % 'OPTIONAL { ?o <urn:q> ?z }'} }}", "no OPTIONAL"),
        (f"SELECT * {{ {WHERE % '{ ?o <urn:q> ?z } UNION { ?o <urn:r> ?z }'} }}", "no UNION"),
        (f"SELECT * {{ {WHERE % '; <urn:a>/<urn:b>* ?z'} }}", "no property paths"),
        (f"SELECT * {{ {WHERE % 'BIND(1 AS ?z)'} }}", "no BIND"),
        (f"SELECT * {{ {WHERE % 'FILTER EXISTS { ?o ?p ?s }'} }}", "no EXISTS"),
    ],
)
def test_what_it_would_skip_or_stop_at_is_refused(text, sentence):
    assert sentence in load("cqels").refuse(parse(text), CQELS_1)


def test_it_has_no_other_semantics_and_no_static_data_inside_stream():
    refuse = load("cqels").refuse
    assert "use cqels-1.x" in refuse(asked(SELECT), RSPQL)
    beside = asked(SELECT).with_static((("<urn:a>", "<urn:p>", "<urn:b>"),))
    assert "keep patterns on static data outside" in refuse(beside, CQELS_1)
    assert refuse(asked(SELECT), CQELS_1) is None


def test_a_filter_is_written_where_it_is_seen():
    from streamgauge.query import print_query

    text = print_query(asked(), "cqels")
    assert text.index("}") < text.index("FILTER")
    assert parse(text, "cqels").form == asked().form
    assert Counter(text)["{"] == 2
