"""Queries whose answers need lexical forms and exact numbers, with the answers by hand: for every evaluator.

``CASES``: name -> (objects of ``<urn:s> <urn:v>``, query, rows). Terms are short: ``1`` is an xsd:integer, ``1.0`` an
xsd:decimal, ``1e0`` an xsd:double, ``?f`` after a number an xsd:float.
"""

import re

from streamgauge.model.terms import XSD

_KINDS = {r"[+-]?[0-9]+": "integer", r"[+-]?[0-9]*\.[0-9]+": "decimal", r"[+-]?[0-9.]+e[+-]?[0-9]+|NaN|INF": "double"}


def term(text):
    """The term of a short text."""
    if text is None or text[0] in '"<_':
        return text
    if text[-1] == "f":
        return f'"{text[:-1]}"^^<{XSD}float>'
    if "T" in text:
        return f'"{text}"^^<{XSD}dateTime>'
    kind = next(kind for form, kind in _KINDS.items() if re.fullmatch(form, text))
    return f'"{text}"^^<{XSD}{kind}>'


MOST = str(2**63 - 1)
AFTER = str(2**63)
ALL = "{ ?s <urn:v> ?v "
CASES = {
    "lexical forms": (
        ["01", "1", "1.0", "1.00"],
        "SELECT (COUNT(DISTINCT ?v) AS ?n) (COUNT(DISTINCT STR(?v)) AS ?m) (SUM(?v) AS ?t) (MIN(?v) AS ?l) "
        + ALL
        + "}",
        [("4", "4", f'"4"^^<{XSD}decimal>', "01")],
    ),
    "groups by term": (
        ["01", "1", "+1"],
        "SELECT ?v (COUNT(*) AS ?n) " + ALL + "FILTER(?v = 1) } GROUP BY ?v",
        [("01", "1"), ("1", "1"), ("+1", "1")],
    ),
    "STR and STRLEN": (
        ["01", "1.50", '"a"'],
        "SELECT ?v (STRLEN(STR(?v)) AS ?n) " + ALL + "FILTER(STR(?v) != 'a') }",
        [("01", "2"), ("1.50", "4")],
    ),
    "sameTerm": (
        ["01", "1"],
        "SELECT ?v " + ALL + ". ?s <urn:v> ?w FILTER(?v = ?w && !sameTerm(?v, ?w)) }",
        [("01",), ("1",)],
    ),
    "integers beyond 63 bits": (
        [AFTER, "5", "6"],
        "SELECT ?v (?v + 1 AS ?w) " + ALL + "FILTER(?v > 5) }",
        [(AFTER, str(2**63 + 1)), ("6", "7")],
    ),
    "a product beyond 63 bits": (
        ["999999999", "2"],
        "SELECT (?v * ?v * ?v AS ?w) " + ALL + "}",
        [(str(999999999**3),), ("8",)],
    ),
    "a sum beyond 63 bits": (
        [MOST, "1"],
        "SELECT (SUM(?v) AS ?t) (AVG(?v) AS ?a) (MAX(?v) AS ?m) " + ALL + "}",
        [(AFTER, f'"{2**62}"^^<{XSD}decimal>', MOST)],
    ),
    "a product that is summed": (
        ["999999999", "999999998"],
        "SELECT (SUM(?v * ?v * 100) AS ?t) " + ALL + "}",
        [(str(100 * (999999999**2 + 999999998**2)),)],
    ),
    "decimals": (
        ["0.1", "0.20", "0.000000000000000000001"],
        "SELECT (SUM(?v) AS ?t) (MAX(?v) AS ?m) " + ALL + "}",
        [("0.300000000000000000001", "0.20")],
    ),
    "doubles that cancel": (
        ["1e16", "1.0e0", "-1e16"],
        "SELECT (SUM(?v) AS ?t) " + ALL + "}",
        [(f'"1"^^<{XSD}double>',)],
    ),
    "NaN": (
        ["NaN", "1.0e0", "2.50e0"],
        "SELECT ?v " + ALL + "FILTER(!(?v > 2)) }",
        [("NaN",), ("1.0e0",)],
    ),
    "extremes keep their form": (
        ["01f", "1.0f", "2.50f", "2.5f"],
        "SELECT (MIN(?v) AS ?l) (MAX(?v) AS ?m) (SUM(?v) AS ?t) " + ALL + "}",
        [("01f", "2.5f", f'"7"^^<{XSD}float>')],
    ),
    "equal integers": (
        ["007", "7", "3", "03"],
        "SELECT (MIN(?v) AS ?l) (MAX(?v) AS ?m) (SUM(?v) AS ?t) (COUNT(?v) AS ?n) " + ALL + "}",
        [("03", "007", "20", "4")],
    ),
    "dates without and with zone": (
        ["2020-01-01T00:00:00", "2020-01-01T12:00:00Z", "2020-01-03T00:00:00Z"],
        "SELECT ?v " + ALL + f"FILTER(?v != '2020-01-01T00:00:00'^^<{XSD}dateTime>) }}",
        [("2020-01-03T00:00:00Z",)],
    ),
    "no values": (
        ["1", f'"x"^^<{XSD}integer>', f'" 2"^^<{XSD}integer>', f'"300"^^<{XSD}byte>'],
        "SELECT ?v " + ALL + "FILTER(?v + 1 > 0) }",
        [("1",)],
    ),
}


def triples(name):
    """The triples of a case."""
    return tuple(("<urn:s>", "<urn:v>", term(text)) for text in CASES[name][0])


def rows(name):
    """The rows of a case, sorted."""
    return sorted(tuple(map(term, row)) for row in CASES[name][2])
