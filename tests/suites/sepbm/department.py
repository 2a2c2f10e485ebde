"""The first department of a university of our own generator, and what univ-bench says that the queries need."""

from itertools import takewhile

from streamgauge.suites.sepbm import triples_text
from streamgauge.workloads.university import UB, described
from tests.reasoning.ontology import triples

ONTOLOGY = [
    tuple(term.replace("urn:t:", UB) for term in triple)
    for triple in triples(
        ":Student rdfs:subClassOf :Person . :Employee rdfs:subClassOf :Person . :Faculty rdfs:subClassOf :Employee ."
        ":Professor rdfs:subClassOf :Faculty . :FullProfessor rdfs:subClassOf :Professor ."
        ":AssociateProfessor rdfs:subClassOf :Professor . :AssistantProfessor rdfs:subClassOf :Professor ."
        ":Lecturer rdfs:subClassOf :Faculty . :UndergraduateStudent rdfs:subClassOf :Student ."
        ":GraduateStudent rdfs:subClassOf :Person . :GraduateCourse rdfs:subClassOf :Course ."
        ":Student owl:intersectionOf ( :Person [ owl:onProperty :takesCourse ; owl:someValuesFrom :Course ] ) ."
        ":Chair owl:intersectionOf ( :Person [ owl:onProperty :headOf ; owl:someValuesFrom :Department ] ) ."
        ":headOf rdfs:subPropertyOf :worksFor . :worksFor rdfs:subPropertyOf :memberOf ."
        ":subOrganizationOf a owl:TransitiveProperty . :hasAlumnus owl:inverseOf :degreeFrom ."
        ":undergraduateDegreeFrom rdfs:subPropertyOf :degreeFrom ."
    )
]


def facts(seed=0):
    """What is said of the university and its first department."""
    first = takewhile(lambda entry: "Department1." not in entry[0][0], described(0, seed, "own"))
    return dict.fromkeys(triple for entry in first for triple in entry)


def write(folder, seed=0):
    """The facts as a file."""
    file = folder / "department.nt"
    file.write_text(triples_text(facts(seed)), encoding="utf-8")
    return file
