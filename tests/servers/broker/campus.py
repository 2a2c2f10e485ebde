"""A university to publish in: descriptions that the generator draws, an ontology of its kind, the twenty queries."""

from importlib.resources import files

from streamgauge.reasoning import read_rules
from streamgauge.workloads.university import descriptions, extended, words
from tests.reasoning.ontology import triples

UB = "http://www.lehigh.edu/~zhp2/2004/0401/univ-bench.owl#"
TEXTS = {
    path.name[:3]: path.read_text("utf-8")
    for path in files("streamgauge.workloads").joinpath("university", "queries").iterdir()
    if path.name.endswith(".rq")
}
_PREFIX = f"PREFIX ub: <{UB}> "
MORE = {
    **{
        f"of department {n}": f"{_PREFIX}SELECT ?x ?c {{ ?x a ub:Student ; ub:takesCourse ?c ; "
        f"ub:memberOf <http://www.Department{n}.University0.edu> }}"
        for n in range(3)
    },
    "optional": _PREFIX + "SELECT ?x ?y { ?x a ub:Professor OPTIONAL { ?x ub:headOf ?y } }",
    "minus": _PREFIX + "SELECT ?x { ?x a ub:GraduateStudent MINUS { ?x a ub:TeachingAssistant } }",
    "missing": _PREFIX + "SELECT ?x { ?x a ub:Course FILTER NOT EXISTS { ?y ub:takesCourse ?x } }",
    "union": _PREFIX + "SELECT ?x ?n { { ?x a ub:Chair ; ub:name ?n } UNION { ?x a ub:Lecturer ; ub:name ?n } }",
    "counted": _PREFIX + "SELECT ?d (COUNT(DISTINCT ?x) AS ?n) { ?x a ub:Faculty ; ub:worksFor ?d } GROUP BY ?d",
    "path": _PREFIX + "SELECT ?x { ?x ub:subOrganizationOf+ <http://www.University0.edu> }",
    "any": _PREFIX + "SELECT ?p ?o { <http://www.Department0.University0.edu/FullProfessor0> ?p ?o }",
    "heads": _PREFIX + "SELECT DISTINCT ?u { ?x ub:headOf ?d . ?d ub:subOrganizationOf ?u }",
}
"""Queries beside the twenty: other constants, other operators."""

_AXIOMS = """
@prefix ub: <http://www.lehigh.edu/~zhp2/2004/0401/univ-bench.owl#> .
ub:Employee rdfs:subClassOf ub:Person . ub:Faculty rdfs:subClassOf ub:Employee .
ub:Professor rdfs:subClassOf ub:Faculty . ub:Lecturer rdfs:subClassOf ub:Faculty .
ub:FullProfessor rdfs:subClassOf ub:Professor . ub:AssociateProfessor rdfs:subClassOf ub:Professor .
ub:AssistantProfessor rdfs:subClassOf ub:Professor . ub:Chair rdfs:subClassOf ub:Professor .
ub:UndergraduateStudent rdfs:subClassOf ub:Student . ub:GraduateStudent rdfs:subClassOf ub:Person .
ub:GraduateCourse rdfs:subClassOf ub:Course . ub:Department rdfs:subClassOf ub:Organization .
ub:University rdfs:subClassOf ub:Organization . ub:ResearchGroup rdfs:subClassOf ub:Organization .
ub:Student owl:intersectionOf ( ub:Person [ owl:onProperty ub:takesCourse ; owl:someValuesFrom ub:Course ] ) .
ub:Chair owl:intersectionOf ( ub:Person [ owl:onProperty ub:headOf ; owl:someValuesFrom ub:Department ] ) .
ub:TeachingAssistant owl:intersectionOf
  ( ub:Person [ owl:onProperty ub:teachingAssistantOf ; owl:someValuesFrom ub:Course ] ) .
ub:headOf rdfs:subPropertyOf ub:worksFor . ub:worksFor rdfs:subPropertyOf ub:memberOf .
ub:memberOf owl:inverseOf ub:member . ub:subOrganizationOf a owl:TransitiveProperty .
ub:degreeFrom owl:inverseOf ub:hasAlumnus . ub:doctoralDegreeFrom rdfs:subPropertyOf ub:degreeFrom .
ub:mastersDegreeFrom rdfs:subPropertyOf ub:degreeFrom . ub:undergraduateDegreeFrom rdfs:subPropertyOf ub:degreeFrom .
ub:degreeFrom rdfs:domain ub:Person ; rdfs:range ub:University .
ub:advisor rdfs:domain ub:Person ; rdfs:range ub:Professor .
ub:teacherOf rdfs:domain ub:Faculty ; rdfs:range ub:Course .
"""


def rules():
    """The rules of an ontology of univ-bench's shape."""
    return read_rules(triples(_AXIOMS))


def described(departments=None, number=0, seed=0):
    """The descriptions of a university's resources, all or those of its first departments, extended."""
    results = list(extended(descriptions(number, seed), seed, words("own")))
    if departments is None:
        return results
    last = next(at for at, entry in enumerate(results) if f"Department{departments}." in entry[0][0])
    return results[:last]
