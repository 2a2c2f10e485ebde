"""Channels alike: what differs between them, and that one query with a column for it answers all of them."""

import pytest

from streamgauge import workloads
from streamgauge.model import algebra as al
from streamgauge.query import parse_sparql
from streamgauge.reasoning import read_rules
from streamgauge.sparql.algebra import answer
from streamgauge.sparql.bgp import Dataset
from streamgauge.suites.sepbm import SepbmChannel
from streamgauge.suites.sepbm.local import closed
from streamgauge.suites.sepbm.selection import varied
from tests.suites.sepbm.campus import CHANNELS, ONTOLOGY, pool

UNIVERSITY = workloads.load("university")
VARIED = {
    "q01": "<http://www.Department0.University0.edu/GraduateCourse0>",
    "q02": "Y",
    "q03": "<http://www.Department0.University0.edu/AssistantProfessor0>",
    "q04": "<http://www.Department0.University0.edu>",
    "q05": "<http://www.Department0.University0.edu>",
    "q06": None,
    "q07": "<http://www.Department0.University0.edu/AssociateProfessor0>",
    "q08": "<http://www.University0.edu>",
    "q09": "Y",
    "q10": "<http://www.Department0.University0.edu/GraduateCourse0>",
    "q11": "<http://www.University0.edu>",
    "q12": "<http://www.University0.edu>",
    "q13": "<http://www.University0.edu>",
    "q14": None,
    "q15": "N",
    "q16": "E",
    "q17": "U",
    "q18": "C",
    "q19": "N",
    "q20": "N",
}


def shape(name):
    return varied(SepbmChannel(name, workloads.query_text(UNIVERSITY, name)).form)


@pytest.mark.parametrize("name", workloads.queries(UNIVERSITY))
def test_what_differs_between_channels_like_the_university_s(name):
    result = shape(name)
    assert (result and (result.own or result.value.name)) == VARIED[name]


@pytest.mark.parametrize("name", [name for name, value in VARIED.items() if value and value[0] == "<"])
def test_with_its_own_constant_it_is_the_query(name):
    result = shape(name)
    own = parse_sparql(workloads.query_text(UNIVERSITY, name))
    assert parse_sparql(result.channel(name, result.own).query) == own


@pytest.mark.parametrize("name", [name for name, value in VARIED.items() if value and value[0] != "<"])
def test_the_variable_is_gone(name):
    result = shape(name).channel(name, "<urn:value>").query
    assert f"?{VARIED[name]}" not in result
    assert "<urn:value>" in result


def rows(dataset, form):
    return set(answer(form, dataset))


@pytest.mark.parametrize("channel", CHANNELS, ids=lambda channel: channel.name)
def test_one_query_answers_all_channels_alike(channel):
    dataset = Dataset(closed(read_rules(ONTOLOGY), pool()))
    result = varied(channel.form)
    if result is None:
        assert channel.name in ("students", "alone")
        return
    general = rows(dataset, result.general)
    values = {row[-1] for row in general}
    assert values
    for value in (*values, "<urn:nowhere>"):
        form = parse_sparql(result.channel("alike", value).query)
        assert rows(dataset, form) == {row[:-1] for row in general if row[-1] == value}


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ?x ?y { ?x <urn:p> ?z OPTIONAL { ?z <urn:q> ?y } }",
        "SELECT ?x ?y { ?x <urn:p> ?y FILTER NOT EXISTS { ?y <urn:q> ?x } }",
        "SELECT ?x (COUNT(?y) AS ?n) { ?x <urn:p> ?y } GROUP BY ?x",
        "SELECT ?x ?y { { ?x <urn:p> ?y } UNION { ?x <urn:q> ?z } } ORDER BY ?x LIMIT 1",
        "SELECT ?x { ?x a <urn:C> }",
    ],
)
def test_what_has_no_channels_alike(text):
    assert varied(SepbmChannel("c", text).form) is None


def test_a_constant_of_one_alternative_only_is_no_value():
    result = varied(
        SepbmChannel("c", "SELECT ?x ?y { { ?x <urn:p> <urn:c> ; <urn:r> ?y } UNION { ?x <urn:q> ?y } }").form
    )
    assert result.own is None
    assert result.value == al.Var("y")


def test_a_channel_is_a_select():
    with pytest.raises(ValueError, match="channel c: a channel needs a SELECT query"):
        varied(SepbmChannel("c", "ASK { ?x a <urn:C> }").form)
