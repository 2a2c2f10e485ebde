"""What is due in memory: queries of every form over states, and what a condition or a nested query must not lose."""

import pytest

from streamgauge.servers.broker.contract import Publication
from streamgauge.suites.sepbm import About, SepbmChannel, read, triples_text, write
from streamgauge.suites.sepbm.local import due_in_memory, sequential
from tests.suites.sepbm.campus import ONTOLOGY, drawn
from tests.suites.sepbm.test_distributed import as_sets

FORMS = {
    "blank": "SELECT ?x { ?x :takes [ :name ?n ] }",
    "same": "SELECT ?x { ?x :near ?x }",
    "any-property": "SELECT ?p ?y { :s1 ?p ?y }",
    "path": "SELECT ?x { ?x :partOf+ :d3 }",
    "nested": "SELECT ?x ?n { ?x a :Student { SELECT ?x { ?x :name ?n FILTER(?n != 'A1') } } }",
    "filter-of-a-part": "SELECT ?x ?c { ?x :takes ?c { ?x :name ?n FILTER(?c = :c1) } }",
    "filter-of-both": "SELECT ?x { { ?x :takes ?c } UNION { ?x :teaches ?c } FILTER(?c = :c1) }",
    "filter-of-one": "SELECT ?x { { ?x :takes ?c } UNION { ?x :mail ?m } FILTER(?c = :c1) }",
    "minus": "SELECT ?x { ?x a :Person MINUS { ?x :mail ?m } }",
    "exists": "SELECT ?x { ?x a :Person FILTER NOT EXISTS { ?x :takes :c0 } }",
    "count": "SELECT (COUNT(*) AS ?n) { ?x a :Student }",
    "twice": "SELECT DISTINCT ?n { ?x :name ?n . ?y :name ?n }",
    "values": "SELECT ?x { VALUES ?x { :s0 :s2 } ?x a :Professor }",
    "optional": "SELECT ?x ?m { ?x a :Student OPTIONAL { ?x :mail ?m } }",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMS)
def test_every_form_is_answered_as_one_by_one(tmp_path, name):
    drawn(tmp_path, 17, 40, ("students",))
    (tmp_path / "channels" / "students.rq").write_text(f"PREFIX : <urn:t:> {FORMS[name]}")
    made = read(tmp_path)
    expected = as_sets(list(sequential(made)))
    assert as_sets(due_in_memory(made)) == expected
    assert bool(expected) is (name not in {"filter-of-a-part"})


def test_numbers_that_are_not_canonical_are_no_obstacle(tmp_path):
    number = '"01"^^<http://www.w3.org/2001/XMLSchema#integer>'
    channel, text = SepbmChannel("all", "SELECT ?o { ?s <urn:p> ?o }"), ("<urn:a>", "<urn:p>", '"x"')
    write(tmp_path, About({}), ONTOLOGY, [channel], [Publication(1, (text,))])
    (tmp_path / "base.nt").write_text(triples_text([("<urn:a>", "<urn:p>", number)]))
    (one,) = due_in_memory(read(tmp_path))
    assert (one.publication, one.added, one.removed) == (1, (('"x"',),), ())
