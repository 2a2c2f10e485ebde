"""Queries and contents drawn from a seed: every operator inside every other, over few terms, hard to tell apart.

    case = drawn(random.Random(7))              # Case(form, Dataset(default, named))
    case = drawn(random.Random(7), tame=True)   # only terms in canonical form, exact numbers

``printer.sparql`` of every drawn form is legal SPARQL 1.1 and parses back to it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from streamgauge.model import algebra as al
from tests.sparql.simple.patterns import Dataset, Triple
from tests.sparql.simple.values import XSD

NAMES = ("<urn:w1>", "<urn:w2>")
RESOURCES = ("<urn:a>", "<urn:b>", "_:n1")
PREDICATES = ("<urn:p>", "<urn:q>")
VARIABLES = tuple(al.Var(name) for name in ("x", "y", "v", "w", "g"))


def typed(kind: str, *texts: str) -> tuple[str, ...]:
    """Literals of an XSD type."""
    return tuple(f'"{text}"^^<{XSD}{kind}>' for text in texts)


TAME = {
    "numbers": (*typed("integer", "-1", "0", "1", "2"), *typed("decimal", "0.5", "2.5")),
    "texts": ('"a"', '"b"', '""', '"1"', '"a"@en', '"b"@de'),
    "mixed": (*typed("integer", "1", "2"), '"a"', *typed("boolean", "true", "false"), "<urn:a>"),
}
FAMILIES = TAME | {
    "ones": (
        *typed("integer", "1", "01", "+1"),
        *typed("decimal", "1.0", "1.00", "1"),
        *typed("double", "1", "1.0E0", "1e0"),
        *typed("float", "1", "1.0"),
        *typed("long", "1"),
        *typed("boolean", "1", "true"),
        '"1"',
        '"01"',
    ),
    "great": (
        *typed("integer", "2147483647", "2147483648", "9007199254740992", "9007199254740993"),
        *typed("integer", "9223372036854775807", "9223372036854775808", "-9223372036854775808"),
        *typed("integer", "1180591620717411303424", "1", "-1"),
        *typed("double", "9007199254740992", "1e0"),
        *typed("decimal", "9223372036854775808.5"),
    ),
    "floating": (
        *typed("double", "NaN", "INF", "-INF", "-0.0", "0.0", "0.5", "1e16", "-1e16", "1.0"),
        *typed("float", "NaN", "0.5", "16777216", "0.1"),
        *typed("integer", "0", "16777217"),
        *typed("decimal", "0.1", "-0.0"),
    ),
    "moments": (
        *typed("dateTime", "2020-01-01T00:00:00", "2020-01-01T00:00:00Z", "2020-01-01T02:00:00+02:00"),
        *typed("dateTime", "2020-01-03T00:00:00Z", "2019-12-31T24:00:00Z", "2020-01-01T00:00:00.0Z"),
        *typed("date", "2020-01-01", "2020-01-01Z", "2020-01-01+02:00", "2020-01-05"),
        *typed("time", "10:00:00", "10:00:00Z", "12:00:00+02:00"),
    ),
    "tags": ('"a"', '"a"@en', '"a"@en-gb', '"a"@en-us', '"b"@en', '"A"'),
    "ill": (
        *typed("integer", "x", "1", ""),
        *typed("byte", "300", "1"),
        *typed("dateTime", "x", "2020-02-30T00:00:00Z"),
        *typed("boolean", "yes", "true"),
        '"1"^^<urn:type>',
        '"01"^^<urn:type>',
        *typed("decimal", "1e0"),
    ),
}


RDF12 = {
    "triples": (
        "<<( <urn:a> <urn:p> <urn:b> )>>",
        f'<<( <urn:a> <urn:p> "1"^^<{XSD}integer> )>>',
        f'<<( <urn:a> <urn:p> "1.0"^^<{XSD}decimal> )>>',
        "<<( _:n1 <urn:q> <urn:b> )>>",
        "<<( <urn:b> <urn:q> <<( <urn:a> <urn:p> <urn:b> )>> )>>",
        *typed("integer", "1"),
    ),
    "directions": ('"a"@en--ltr', '"a"@en--rtl', '"a"@en', '"a"', '<<( <urn:a> <urn:p> "a"@en--ltr )>>', '"b"@ar--rtl'),
}
"""Terms of RDF 1.2 among others."""


_PARTS_OF_TERMS = ("ISTRIPLE", "SUBJECT", "PREDICATE", "OBJECT", "LANGDIR", "HASLANG", "HASLANGDIR")


@dataclass(frozen=True)
class Case:
    """A query form and what its graphs hold."""

    form: al.QueryForm
    dataset: Dataset


def drawn(random: Random, tame: bool = False, rdf12: bool = False) -> Case:
    """One case; ``rdf12``: with triple terms and base directions among the data."""
    drawing = Drawing(random, tame, rdf12)
    return Case(drawing.form(), drawing.dataset())


def drawn_contents(random: Random, count: int, rdf12: bool = False) -> list[Case]:
    """One query over several contents of the same graphs: the case of ``drawn`` by the same seed, and others."""
    drawing = Drawing(random, tame=False, rdf12=rdf12)
    form = drawing.form()
    return [Case(form, drawing.dataset()) for _ in range(count)]


class Drawing:
    """The draws of one case, over a palette of its own."""

    def __init__(self, random: Random, tame: bool, rdf12: bool = False) -> None:
        self._random, self._numbers, self._rdf12 = random, 0, rdf12
        families = RDF12 if rdf12 else TAME if tame else FAMILIES
        literals = list(dict.fromkeys(families[random.choice(list(families))]))
        self._literals = random.sample(literals, min(4, len(literals)))
        self._graphs = random.random() < 0.4
        self._kinds: dict[str, Callable[[int], al.Pattern]] = {
            "BGP": lambda _depth: self._block(),
            "Join": lambda depth: al.Join(self.pattern(depth), self.pattern(depth)),
            "LeftJoin": self._optional,
            "Filter": self._filter,
            "Union": lambda depth: al.Union(self.pattern(depth), self.pattern(depth)),
            "Minus": lambda depth: al.Minus(self.pattern(depth), self.pattern(depth)),
            "Extend": self._bind,
            "Values": lambda _depth: self._values(),
            "Graph": self._graph,
            "Select": self.select,
        }

    def dataset(self) -> Dataset:
        """0 to 8 triples in all graphs."""
        named = {name: self._triples(3) for name in NAMES} if self._graphs else {}
        return Dataset(self._triples(5 if named else 8), named)

    def _triples(self, most: int) -> tuple[Triple, ...]:
        count = self._random.randint(most // 2, most) if self._random.random() < 0.85 else self._random.randint(0, 1)
        results = [self._triple() for _ in range(count)]
        return tuple(dict.fromkeys(results))

    def _triple(self) -> Triple:
        return self._one(RESOURCES), self._one(PREDICATES), self._one((*self._literals, *self._literals, *RESOURCES))

    def _one(self, items: Sequence[str]) -> str:
        return self._random.choice(items)

    def _name(self) -> al.Var:
        self._numbers += 1
        return al.Var(f"n{self._numbers}")

    def form(self) -> al.QueryForm:
        """A SELECT mostly."""
        kind = self._random.random()
        if kind < 0.06:
            return al.Ask(self.pattern(3))
        if kind < 0.12:
            where = self.pattern(3)
            ends = (*_seen(where), *VARIABLES[:1])
            template = al.TriplePattern(self._random.choice(ends), "<urn:made>", self._random.choice(ends))
            return al.Construct((template,), where)
        pattern = self.select(4)
        return al.Select(pattern, tuple(var.name for var in _columns(pattern)))

    def pattern(self, depth: int) -> al.Pattern:
        """Any operator over any others, at most so deep."""
        if depth <= 0 or self._random.random() < 0.2:
            return self._block() if self._random.random() < 0.85 else self._values()
        kind = self._one(list(self._kinds))
        if kind == "Graph" and not self._graphs and self._random.random() < 0.7:
            kind = "Filter"
        return self._kinds[kind](depth - 1)

    def _block(self) -> al.Pattern:
        count = self._random.choice((0, 1, 1, 1, 1, 2, 2))
        blank = al.Var(f"_:{self._numbers}")
        self._numbers += 1
        return al.BGP(tuple(self._pattern_triple(blank) for _ in range(count)))

    def _pattern_triple(self, blank: al.Var) -> al.TriplePattern:
        ends: list[al.Node] = [*VARIABLES[:2] * 4, self._one(RESOURCES[:2]), blank]
        items: list[al.Node] = [*VARIABLES[:4] * 2, *VARIABLES[1:3], self._one(self._literals), *ends[-2:]]
        if self._graphs:
            ends, items = [*ends, *VARIABLES[4:]], [*items, *VARIABLES[4:] * 2]
        predicate: al.Node | al.Path = self._one(PREDICATES)
        if self._random.random() < 0.25:
            predicate = self._path(self._random.choice((2, 2, 3))) if self._random.random() < 0.7 else VARIABLES[3]
        return al.TriplePattern(self._random.choice(ends), predicate, self._random.choice(items))

    def _path(self, depth: int) -> al.Path:
        kind = self._random.randint(0, 5) if depth else 0
        match kind:
            case 0:
                return self._one(PREDICATES)
            case 1:
                return al.Inverse(self._path(depth - 1))
            case 2:
                return _sequence(self._path(depth - 1), self._path(depth - 1))
            case 3:
                return _alternative(self._path(depth - 1), self._path(depth - 1))
            case 4:
                return al.Repeat(self._path(depth - 1), self._one("*+?"))
            case _:
                back = (self._one(PREDICATES),) if self._random.random() < 0.5 else ()
                return al.NegatedSet((self._one(PREDICATES),) if self._random.random() < 0.7 or not back else (), back)

    def _values(self) -> al.Values:
        names = tuple(self._random.sample(VARIABLES[:4], self._random.randint(1, 2)))
        cells = (*self._literals, *RESOURCES[:2], None, None)
        rows = tuple(
            tuple(self._random.choice(cells) for _ in names) for _ in range(self._random.choice((0, 1, 2, 2, 3, 3)))
        )
        return al.Values(names, rows)

    def _optional(self, depth: int) -> al.Pattern:
        left, right = self.pattern(depth), self.pattern(depth)
        condition = self._condition((*_seen(left), *_seen(right)), depth) if self._random.random() < 0.5 else None
        return al.LeftJoin(left, right, condition)

    def _filter(self, depth: int) -> al.Pattern:
        inner = self.pattern(depth)
        return al.Filter(self._condition(_seen(inner), depth), inner)

    def _bind(self, depth: int) -> al.Pattern:
        inner = self.pattern(depth)
        names = _seen(inner)
        tree = self._condition(names, depth) if self._random.random() < 0.2 else self._value(names, 2)
        return al.Extend(inner, self._fresh(inner), tree)

    def _fresh(self, inner: al.Pattern) -> al.Var:
        """A variable that the pattern does not have; often one that other patterns have too."""
        free = [var for var in VARIABLES[:4] if var not in _all_variables(inner)]
        return self._random.choice(free) if free and self._random.random() < 0.4 else self._name()

    def _graph(self, depth: int) -> al.Pattern:
        name = self._random.choice((*NAMES, *VARIABLES[4:] * 3, VARIABLES[0], "<urn:nowhere>"))
        return al.Graph(name, self.pattern(depth))

    def select(self, depth: int) -> al.Pattern:
        """A subquery, often grouped, ordered or cut."""
        where = self.pattern(depth)
        if self._random.random() < 0.35:
            pattern, names = self._grouping(where)
        else:
            seen = _seen(where) or VARIABLES[:1]
            pattern, names = where, tuple(self._random.sample(seen, self._random.randint(1, len(seen))))
            if self._random.random() < 0.2:  # also what only a FILTER, OPTIONAL, MINUS or nothing reads inside
                names = tuple(dict.fromkeys((*names, self._random.choice(VARIABLES[:4]))))
        cut = self._random.random() < 0.25
        if self._random.random() < (0.7 if cut else 0.1):
            keys = [
                (self._key(_seen(pattern)), self._random.random() < 0.4) for _ in range(self._random.choice((1, 2)))
            ]
            pattern = al.OrderBy(pattern, tuple(keys))
        pattern = al.Project(pattern, names)
        if self._random.random() < 0.3:
            pattern = al.Distinct(pattern) if self._random.random() < 0.85 else al.Reduced(pattern)
        return (
            al.Slice(pattern, self._random.choice((0, 0, 1)), self._random.choice((1, 1, 2, 2, 3, 0)))
            if cut
            else pattern
        )

    def _key(self, names: tuple[al.Var, ...]) -> al.Expression:
        return self._random.choice(names or VARIABLES[:1])

    def _grouping(self, where: al.Pattern) -> tuple[al.Pattern, tuple[al.Var, ...]]:
        seen = _seen(where) or VARIABLES[:1]
        keys = [(var, var) for var in self._random.sample(seen, self._random.choice((0, 1, 1, min(2, len(seen)))))]
        if self._random.random() < 0.15:
            keys = [*keys, (self._name(), self._computed(seen))]
        computed = tuple((al.Var(f".agg{at}"), self._aggregate(seen)) for at in range(self._random.choice((1, 1, 2))))
        computed = computed[:1] if len({item for _, item in computed}) < len(computed) else computed
        pattern: al.Pattern = al.Group(where, tuple(keys), computed)
        if self._random.random() < 0.25:
            sign = self._one(("=", "!=", "<", ">", "<=", ">="))
            pattern = al.Filter(al.Call(sign, (computed[0][0], self._literal())), pattern)
        outputs = tuple(self._name() for _ in computed)
        for output, (var, _) in zip(outputs, computed, strict=True):
            pattern = al.Extend(pattern, output, var)
        return pattern, (*(var for var, _ in keys), *outputs)

    def _computed(self, names: Sequence[al.Var]) -> al.Expression:
        """An expression that is more than a variable."""
        tree = self._value(names, 1)
        return al.Call("STR", (tree,)) if isinstance(tree, al.Var | str) else tree

    def _aggregate(self, names: tuple[al.Var, ...]) -> al.Aggregate:
        function = self._one(("COUNT", "COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE", "GROUP_CONCAT"))
        distinct = self._random.random() < 0.3
        if function == "COUNT" and self._random.random() < 0.3:
            return al.Aggregate("COUNT", None, distinct)
        argument = self._value(names, 1)
        return al.Aggregate(function, argument, distinct, "|" if function == "GROUP_CONCAT" else " ")

    def _condition(self, names: Sequence[al.Var], depth: int) -> al.Expression:
        kind = self._random.random()
        if kind < 0.15 and depth > 0:
            exists = al.Exists(self.pattern(min(depth, 2)))
            return exists if self._random.random() < 0.5 else al.Call("!", (exists,))
        if kind < 0.3:
            return al.Call(self._one(("&&", "||")), (self._condition(names, 0), self._condition(names, 0)))
        if kind < 0.37:
            return al.Call("!", (self._condition(names, 0),))
        if kind < 0.47:
            return al.Call("BOUND", (self._variable(names),))
        if kind < 0.55:
            return self._value(names, 1)
        if kind < 0.62:
            return al.Call("IN", (self._variable(names), self._literal(), self._value(names, 1)))
        return self._comparison(names, 2)

    def _comparison(self, names: Sequence[al.Var], depth: int) -> al.Expression:
        sign = self._one(("=", "!=", "<", ">", "<=", ">=", "SAMETERM"))
        return al.Call(sign, (self._value(names, depth), self._value(names, depth)))

    def _variable(self, names: Sequence[al.Var]) -> al.Var:
        others = VARIABLES if self._graphs else VARIABLES[:4]
        return self._random.choice((*names, *names, *others))

    def _literal(self) -> str:
        return self._one((*self._literals, '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'))

    def _value(self, names: Sequence[al.Var], depth: int) -> al.Expression:
        kind = self._random.random()
        if self._rdf12 and depth and self._random.random() < 0.25:
            name = self._one((*_PARTS_OF_TERMS, "TRIPLE"))
            count = 3 if name == "TRIPLE" else 1
            return al.Call(name, tuple(self._value(names, depth - 1) for _ in range(count)))
        if depth == 0 or kind < 0.5:
            return self._variable(names) if self._random.random() < 0.8 else self._literal()
        if kind < 0.68:
            return al.Call(self._one("+-*/"), (self._value(names, depth - 1), self._value(names, depth - 1)))
        if kind < 0.9:
            name = self._one(("STR", "DATATYPE", "LANG", "ABS", "CEIL", "FLOOR", "ROUND", "ISNUMERIC", "ISIRI", "-",
                              "ISBLANK", "ISLITERAL", "UCASE", "!"))  # fmt: skip
            return al.Call(name, (self._value(names, depth - 1),))
        pair = (self._value(names, depth - 1), self._value(names, depth - 1))
        match self._random.randint(0, 6):
            case 0:
                return al.Call("COALESCE", pair)
            case 1:
                return al.Call("IF", (self._comparison(names, depth - 1), *pair))
            case 2:
                return al.Call("STRLEN", (al.Call("STR", pair[:1]),))
            case 3:
                return al.Call(f"<{XSD}{self._one(('integer', 'decimal', 'double', 'float', 'boolean'))}>", pair[:1])
            case 4:
                return al.Call("REGEX", (al.Call("STR", pair[:1]), '"^[a1]"'))
            case 5:
                return al.Call("CONCAT", (pair[0], al.Call("STR", pair[1:])))
            case _:
                return al.Call("LANGMATCHES", (al.Call("LANG", pair[:1]), self._one(('"en"', '"*"', '"EN"'))))


def _sequence(*steps: al.Path) -> al.Path:
    flat = [inner for step in steps for inner in (step.steps if isinstance(step, al.Sequence) else (step,))]
    return al.Sequence(tuple(flat))


def _alternative(*choices: al.Path) -> al.Path:
    flat = [
        inner for choice in choices for inner in (choice.choices if isinstance(choice, al.Alternative) else (choice,))
    ]
    return al.Alternative(tuple(flat))


def _columns(pattern: al.Pattern) -> tuple[al.Var, ...]:
    while not isinstance(pattern, al.Project):
        assert isinstance(pattern, al.Slice | al.Distinct | al.Reduced)
        pattern = pattern.pattern
    return pattern.variables


def _seen(pattern: al.Pattern) -> tuple[al.Var, ...]:
    """The variables in scope that a query can name."""
    return tuple(var for var in al.pattern_variables(pattern) if not var.name.startswith(("_:", ".")))


def _all_variables(pattern: al.Pattern) -> frozenset[al.Var]:
    return frozenset(_seen(pattern))
