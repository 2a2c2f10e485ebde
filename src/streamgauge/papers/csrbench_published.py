"""CSRBench's table 2 (Dell'Aglio, Calbimonte, Balduini, Corcho, Della Valle: On Correctness in RDF Stream Processor
Benchmarking, ISWC 2013) as data: which engine answers which query correctly.
"""

SOURCE = "Dell'Aglio et al., On Correctness in RDF Stream Processor Benchmarking, ISWC 2013, table 2"

QUERIES = ("q1", "q2", "q3", "q4", "q5", "q6", "q7")

OK, FAIL = "ok", "fail"

TABLE_2 = {
    "csparql": (OK, OK, OK, OK, FAIL, OK, OK),
    "cqels": (OK, OK, OK, FAIL, OK, FAIL, FAIL),
    "sparqlstream": (OK, OK, OK, FAIL, OK, OK, OK),
}
"""A verdict for each query, in order."""

NAMES = {"csparql": "C-SPARQL", "cqels": "CQELS", "sparqlstream": "SPARQLstream"}

REASONS = {
    ("csparql", "q5"): "it reports partial windows before the first full one",
    ("cqels", "q4"): "content is not removed from the window correctly",
    ("cqels", "q6"): "content is not removed from the window correctly",
    ("cqels", "q7"): "content is not removed from the window correctly",
    ("sparqlstream", "q4"): "null instead of 0 for the average of no rows",
}
"""Why a cell fails, as the paper says."""
