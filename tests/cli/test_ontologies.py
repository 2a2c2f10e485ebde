"""Ontologies on the command line: what is refused, listed, taken."""

import re
import subprocess
import sys

import httpx
import pytest

from streamgauge.cli.options import read_ontologies
from streamgauge.reasoning import OntologyError

PREFIXES = """@prefix : <urn:t:> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> ."""
ONTOLOGY = f"""{PREFIXES}
<urn:o> a owl:Ontology ; owl:imports <urn:other> .
:A rdfs:subClassOf :B , [ owl:unionOf ( :C :D ) ] . :A owl:disjointWith :C . :p a owl:FunctionalProperty ."""


@pytest.fixture
def ontology(tmp_path):
    file = tmp_path / "o.ttl"
    file.write_text(ONTOLOGY)
    return file


def test_an_axiom_outside_is_refused_with_the_option_that_leaves_it_out(command, ontology):
    output = command("broker", "serve", "--ontology", ontology)
    assert output.code == 2
    assert "<urn:t:A> rdfs:subClassOf [ owl:unionOf ( <urn:t:C> <urn:t:D> ) ]" in output.err.replace("\n", " ")
    assert "--ontology-lenient" in output.err


def test_what_is_left_out_is_said(ontology):
    said, union = [], "[ owl:unionOf ( <urn:t:C> <urn:t:D> ) ]"
    with pytest.raises(OntologyError):
        read_ontologies((ontology,), "named", said.append)
    rules = read_ontologies((ontology,), "named", said.append, lenient=True)
    assert said == [
        "the ontology imports <urn:other>, which is not fetched: name its file as another ontology",
        f"left out of the ontology: <urn:t:A> rdfs:subClassOf {union}: the class expression {union} with owl:unionOf "
        "as a conclusion is outside OWL 2 RL",
        "left out of the ontology without --same-as: axioms that derive owl:sameAs (1)",
    ]
    assert len(rules.rules) == 3, "the rest is read: a subclass, a disjointness, different values of :p"
    said.clear()
    assert len(read_ontologies((ontology,), "named", said.append, lenient=True, same_as=True).rules) > len(rules.rules)
    assert not any("--same-as" in item for item in said)


@pytest.mark.server
def test_a_broker_serves_an_ontology_in_part_and_its_violations(ontology, tmp_path):
    (tmp_path / "data.ttl").write_text(f"{PREFIXES} :u a :A , :C .")
    words = ("broker", "serve", str(tmp_path / "data.ttl"), "--port", "0", "--ontology", str(ontology))
    program = [sys.executable, "-m", "streamgauge.cli.main", *words, "--ontology-lenient", "--same-as", "--subsumption"]
    with subprocess.Popen(program, stderr=subprocess.PIPE, text=True) as running:
        try:
            lines = []
            while not lines or not (match := re.search(r" at (http://127\.0\.0\.1:\d+)/\n", lines[-1])):
                lines.append(running.stderr.readline())
                assert lines[-1]
            assert [line.partition(":")[0] for line in lines[:-1]] == [
                "the ontology imports <urn",
                "left out of the ontology",
                "1 violation of the ontology",
            ]
            rows = httpx.get(f"{match[1]}/channels/violations/rows").text
            assert "urn:t:u" in rows
            assert "cax-dw" in rows
        finally:
            running.kill()
