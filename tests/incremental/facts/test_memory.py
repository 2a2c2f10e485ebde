"""What is kept is told by the sizes of tables: near what is there, and gone with it."""

from streamgauge.incremental.drivers.landmark import Landmark, answer_bytes, fact_bytes, terms
from streamgauge.model.terms import RDF_TYPE
from streamgauge.query import parse_sparql

FACTS = [(f"<urn:s{n}>", "<urn:p>", f"<urn:o{n % 10}>") for n in range(1000)]


def test_terms_are_counted_once_wherever_they_are():
    driver = Landmark()
    driver.load([*FACTS, ("<urn:s1>", RDF_TYPE, "<urn:A>"), ("<urn:new>", RDF_TYPE, "<urn:A>")])
    assert terms(driver.closure.facts) == 1000 + 10 + 1
    driver.closure.facts.property_of("<urn:p>").backward()
    assert terms(driver.closure.facts) == 1000 + 10 + 1


def test_bytes_follow_facts_and_answers():
    driver = Landmark()
    empty = fact_bytes(driver.closure.facts)
    driver.load(FACTS)
    full = fact_bytes(driver.closure.facts)
    assert full - empty > 1000 * 56
    simple = driver.ask(parse_sparql("SELECT * { ?x <urn:p> ?y }"))
    once = answer_bytes([simple])
    joined = driver.ask(parse_sparql("SELECT * { ?x <urn:p> ?y OPTIONAL { ?y <urn:q> ?z } }"))
    assert 1000 * 64 < once < 1000 * 400
    assert answer_bytes([simple, joined]) > 2.5 * once
    list(driver.change([], FACTS))
    assert (
        answer_bytes([simple, joined]) <= answer_bytes([driver.ask(parse_sparql("SELECT * { ?x <urn:n> ?y }"))]) + once
    )
