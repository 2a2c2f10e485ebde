"""Facts that contradict the ontology are told in a channel, and stop nothing."""

import pytest

from streamgauge.reasoning import read_rules
from streamgauge.servers.broker.broker import VIOLATIONS, VIOLATIONS_QUERY, Broker, open_violations
from streamgauge.servers.broker.sqlite import SqliteJournal
from streamgauge.servers.broker.strategies import begin
from tests.reasoning.ontology import triples
from tests.servers.broker.world import fact, iri

RULES = read_rules(
    triples(
        ":Person owl:disjointWith :Course . :Student rdfs:subClassOf :Person . :age a owl:FunctionalProperty ."
        ":advisor a owl:IrreflexiveProperty . [] a owl:AllDifferent ; owl:members ( :c1 :c2 ) ."
    )
)
DISJOINT = f'"cax-dw: {iri("Person")} owl:disjointWith {iri("Course")}"'


def made(strategy="incremental", journal=None, rules=RULES):
    return Broker(begin(strategy, rules), lambda: 0, lambda: 0.0, journal)


def listening(broker):
    heard = broker.listen(VIOLATIONS, lambda: None)
    return lambda: [(set(notification.added), set(notification.removed)) for notification in heard.take()]


@pytest.mark.parametrize("strategy", ["incremental", "reevaluate"])
def test_a_violation_is_told_when_it_comes_and_when_it_goes(strategy):
    broker = made(strategy)
    assert open_violations(broker, RULES) == 0
    told = listening(broker)
    broker.publish([fact("u", "a", "Student")])
    assert told() == []
    broker.publish([fact("u", "a", "Course")])
    assert told() == [({(iri("u"), DISJOINT)}, set())]
    assert fact("u", "a", "Person") in broker.facts(), "the data go on"
    broker.publish([fact("u", "a", "Person")])
    broker.delete([fact("u", "a", "Student")])
    assert told() == []
    broker.delete([fact("u", "a", "Person")])
    assert told() == [(set(), {(iri("u"), DISJOINT)})]


def test_each_kind_of_violation_names_its_rule():
    broker = made()
    open_violations(broker, RULES)
    broker.publish([fact("u", "age", '"1"'), fact("u", "age", '"2"'), fact("v", "advisor", "v")])
    broker.publish([(iri("c1"), "<http://www.w3.org/2002/07/owl#sameAs>", iri("c2"))])
    _, rows = broker.rows(VIOLATIONS)
    assert sorted((subject, text[1:].partition(":")[0]) for subject, text in rows) == [
        (iri("c1"), "eq-diff2"),
        (iri("u"), "prp-fp"),
        (iri("v"), "prp-irp"),
    ]


def test_the_violations_of_data_that_were_loaded_are_counted():
    broker = made()
    broker.load([fact("u", "a", "Person"), fact("u", "a", "Course")])
    assert open_violations(broker, RULES) == 1


def test_an_ontology_that_nothing_contradicts_has_no_such_channel():
    rules = read_rules(triples(":A rdfs:subClassOf :B ."))
    broker = made(rules=rules)
    assert open_violations(broker, rules) == 0
    assert broker.channels() == []


def test_the_channel_survives_and_is_not_taken_from_another(tmp_path):
    broker = made(journal=SqliteJournal(tmp_path / "journal"))
    open_violations(broker, RULES)
    broker.subscribe(VIOLATIONS, "me", lambda: None)
    broker.publish([fact("u", "a", "Person"), fact("u", "a", "Course")])
    broker.close()
    again = made(journal=SqliteJournal(tmp_path / "journal"))
    assert open_violations(again, RULES) == 1
    assert [notification.number for notification in again.subscribe(VIOLATIONS, "me", lambda: None).take()] == [1]
    again.delete_channel(VIOLATIONS)
    again.create_channel(VIOLATIONS, VIOLATIONS_QUERY.replace("?subject ?violation", "?subject", 1))
    with pytest.raises(ValueError, match="channel violations with another query"):
        open_violations(again, RULES)


def test_what_the_ontology_states_is_in_answers_and_no_explicit_fact():
    rules = read_rules(triples(":Person owl:oneOf ( :u ) . :Person rdfs:subClassOf :Agent ."))
    for strategy in ("incremental", "reevaluate"):
        broker = made(strategy, rules=rules)
        broker.create_channel("agents", f"SELECT ?x {{ ?x a {iri('Agent')} }}")
        assert broker.rows("agents")[1] == [(iri("u"),)]
        assert broker.explicit == 0
        broker.publish([fact("u", "a", "Person")])
        broker.delete([fact("u", "a", "Person")])
        assert broker.rows("agents")[1] == [(iri("u"),)]
