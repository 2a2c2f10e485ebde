"""Queries that compare computed numbers, and contents with numbers near one another, drawn from a seed.

    form, triples = drawn(random.Random(7))

Numbers are such that about one comparison in three may go either way; some have large values, some are no numbers.
"""

from random import Random

from streamgauge.model import algebra as al
from streamgauge.model.terms import XSD, Triple
from streamgauge.query import parse_sparql

NUMBERS = tuple(
    f'"{text}"^^<{XSD}{kind}>'
    for kind, texts in (
        ("integer", ("0", "1", "3", "-1", "10")),
        ("decimal", ("0.1", "0.3", "1.0", "-0.5")),
        ("float", ("0.1", "0.2", "0.3", "0.30000001", "1.0", "3", "-0.1")),
        ("double", ("0.1", "0.2", "0.3", "0.30000000000000004", "1.0", "3", "-1.0")),
    )
    for text in texts
)
LARGE = tuple(f'"{text}"^^<{XSD}{kind}>' for kind, text in (("integer", "9007199254740993"), ("double", "1e16")))
OTHERS = ('"a"', "<urn:a>", f'"NaN"^^<{XSD}double>', f'"2020-01-01T00:00:00Z"^^<{XSD}dateTime>')
CONSTANTS = ("0", "1", "0.3", "3", "1e0", "0.3e0", "0.6e0", f'"0.3"^^<{XSD}float>')
BODY = "?s <urn:p> ?v ; <urn:q> ?w"


class _Draw:
    def __init__(self, random: Random) -> None:
        self._random = random

    def one(self, *choices: str) -> str:
        return self._random.choice(choices)

    def number(self, *atoms: str, depth: int = 2) -> str:
        """An arithmetic expression over some variables."""
        if depth == 0 or self._random.random() < 0.3:
            return self.one(*atoms, *atoms, self.one(*CONSTANTS))
        inside = [self.number(*atoms, depth=depth - 1) for _ in range(2)]
        return self.one(f"({inside[0]} {self.one(*'+-*')} {inside[1]})", f"ABS({inside[0]})", f"-({inside[1]})")

    def test(self, *atoms: str, depth: int = 1) -> str:
        """A condition over computed numbers."""
        if depth and self._random.random() < 0.4:
            one, other = (self.test(*atoms, depth=depth - 1) for _ in range(2))
            return self.one(f"({one} && {other})", f"({one} || {other})", f"!({one})")
        left, right = self.number(*atoms), self.number(*atoms, depth=1)
        return self.one(
            *[f"{left} {self.one('<', '>', '<=', '>=', '=', '!=')} {right}"] * 6,
            f"{left} IN ({right}, {self.one(*CONSTANTS)})",
            f"{self.one(*atoms)} IN ({self.one(*CONSTANTS)})",
            f"DATATYPE({left}) = <{XSD}float>",
        )

    def aggregate(self) -> str:
        return f"{self.one('SUM', 'AVG', 'MIN', 'MAX', 'COUNT')}({self.one('?v', self.number('?v', '?w', depth=1))})"

    def query(self) -> str:
        filtered = f"{BODY} FILTER({self.test('?v', '?w')})"
        more = self.one(
            f"OPTIONAL {{ ?s <urn:q> ?x FILTER({self.test('?v', '?x')}) }}",
            f"MINUS {{ ?s <urn:p> ?x FILTER({self.test('?x')}) }}",
            f"FILTER NOT EXISTS {{ ?s <urn:q> ?x FILTER({self.test('?v', '?x')}) }}",
        )
        grouped = f"{{ {BODY} }} GROUP BY ?s HAVING({self.test(self.aggregate())})"
        inner = f"SELECT ?s ({self.aggregate()} AS ?m) {grouped}"
        return self.one(
            *[f"SELECT {self.one('', 'DISTINCT ')}{self.one('?s', '?s ?v', '?w')} {{ {filtered} }}"] * 3,
            *[f"SELECT ?s ({self.aggregate()} AS ?m) {grouped}"] * 3,
            f"SELECT * {{ {BODY} BIND({self.number('?v', '?w')} AS ?b) FILTER({self.test('?b', '?v')}) }}",
            f"SELECT ?s ?v {{ {{ {filtered} }} UNION {{ {filtered} }} }}",
            f"SELECT ?s ?v {{ {BODY} {more} FILTER({self.test('?v', '?w')}) }}",
            f"SELECT ?s ?w {{ {{ {inner} }} ?s <urn:q> ?w FILTER({self.test('?m', '?w')}) }}",
            f"SELECT ({self.aggregate()} AS ?m) {{ {filtered} }}",
        )

    def content(self) -> tuple[Triple, ...]:
        pool = NUMBERS * 8 + LARGE + OTHERS
        if self._random.random() < 0.5:
            pool = tuple(term for term in NUMBERS if self.one("float", "double") in term) or NUMBERS
        count = self._random.randint(3, 9)
        drawn = (
            (self.one("<urn:a>", "<urn:b>"), self.one("<urn:p>", "<urn:q>"), self.one(*pool)) for _ in range(count)
        )
        return tuple(dict.fromkeys(drawn))


def drawn(random: Random) -> tuple[al.QueryForm, tuple[Triple, ...]]:
    """A query and a content."""
    draw = _Draw(random)
    return parse_sparql(draw.query()), draw.content()
