"""Horn rules over triple patterns, with tests of literals; rules with a single triple as body are steps.

A literal's value is in a datatype or outside it (OWL 2 Profiles, table 8; XML Schema 1.1 Datatypes, 3.3). Value spaces
of primitive datatypes are disjoint (OWL 2 Structural Specification, 4): a string is not a number, a float no decimal. A
test with an unknown datatype fails.

Steps derive facts from one fact: hierarchies of classes and properties, inverses, domains and ranges. Their closure is
computed once for each property and class, so that a fact's consequences are a look-up.
Transitive properties are derived edge by edge. The rule p(x, y), p(y, z) -> p(x, z) derives the pair from one end of a
chain of n to the other n - 1 times, once for each place at which the chain can be split, so that a chain costs
n ** 3 / 6 derivations. If the second pair must be an edge, a pair that does not come from this rule alone, it is
derived once for each edge that it can end with:

    p(x, y), base(y, z) -> chain(x, z)

``base`` is a hidden property; its pairs are the pairs of p that are explicit, that a step derives or that another rule
derives. ``chain`` implies pairs of p and all that p implies, but no edges of p (it may imply edges of another
transitive property).
Both rules have the same closure: p is the transitive closure of its edges (Bancilhon and Ramakrishnan, SIGMOD 1986).

A worked example: a p b. b p c. c p d. The quadratic rule derives a p d twice, from a p b, b p d and from a p c, c p d;
here it is derived once, from a p c and the edge c p d.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from streamgauge.incremental.facts.facts import HIDDEN, Class, Facts, Property
from streamgauge.model.algebra import Node, TriplePattern, Var
from streamgauge.model.mistake import MistakeError
from streamgauge.model.terms import RDF_TYPE, XSD, Term, Triple, is_literal, is_triple_of, lexical
from streamgauge.sparql.comparison import equal
from streamgauge.sparql.values import DECIMAL, ILL, INTEGER, LANG_STRING, TAGGED, read

RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS: Final = "http://www.w3.org/2000/01/rdf-schema#"
LITERAL: Final = f"<{RDFS}Literal>"
_NAME: Final = r"[^\W\d][\w.\-·]*"
_TEXTS: Final = {
    "string": re.compile(r".*", re.DOTALL),
    "normalizedString": re.compile(r"[^\t\n\r]*"),
    "token": re.compile(r"(?:[^\s]+(?: [^\s]+)*)?"),
    "language": re.compile(r"[a-zA-Z]{1,8}(?:-[a-zA-Z0-9]{1,8})*"),
    "Name": re.compile(rf"[:]?{_NAME}(?::[\w.\-·]*)*"),
    "NCName": re.compile(_NAME),
    "NMTOKEN": re.compile(r"[\w.\-:·]+"),
}
_WHOLE: Final[dict[str, tuple[int | None, int | None]]] = {
    "integer": (None, None),
    "nonNegativeInteger": (0, None),
    "nonPositiveInteger": (None, 0),
    "positiveInteger": (1, None),
    "negativeInteger": (None, -1),
    # `-` binds more tightly than `<<`: a long is from -2^63 to 2^63 - 1.
    **{name: (-(1 << bits - 1), (1 << bits - 1) - 1) for name, bits in (("long", 64), ("int", 32), ("short", 16))},
    "byte": (-128, 127),
    **{f"unsigned{name}": (0, (1 << bits) - 1) for name, bits in (("Long", 64), ("Int", 32), ("Short", 16))},
    "unsignedByte": (0, 255),
}
_ALONE: Final = (
    "float", "double", "boolean", "date", "time", "gYear", "gYearMonth", "gMonth", "gMonthDay", "gDay", "hexBinary",
    "base64Binary", "anyURI", "duration",
)  # fmt: skip
_FAMILIES: Final = {
    **{XSD + name: "string" for name in _TEXTS},
    **{XSD + name: "decimal" for name in (*_WHOLE, "decimal")},
    **{XSD + name: "dateTime" for name in ("dateTime", "dateTimeStamp")},
    **{XSD + name: "duration" for name in ("yearMonthDuration", "dayTimeDuration")},
    **{XSD + name: name for name in _ALONE},
    **{RDF + name: name for name in ("XMLLiteral", "HTML")},
    LANG_STRING: "langString",
}
"""The primitive datatype of each datatype."""


def is_datatype(term: Term) -> bool:
    """Whether a class is a datatype whose values are known, or all literals."""
    return term in (LITERAL, f"<{RDF}PlainLiteral>") or term[1:-1] in _FAMILIES


def inside(literal: Term, datatype: Term) -> bool:
    """Whether a term is a literal with a value in the datatype (rule dt-type2)."""
    return is_literal(literal) and _has(literal, datatype) is True


def outside(literal: Term, datatype: Term) -> bool:
    """Whether a term is a literal with a value outside the datatype (rule dt-not-type)."""
    return is_literal(literal) and _has(literal, datatype) is False


def unequal(one: Term, other: Term) -> bool:
    """Whether two terms are literals with different values (rule dt-diff); false if a value is unknown."""
    if one == other or not (is_literal(one) and is_literal(other)):
        return False
    families = _family(one), _family(other)
    # Unknown is not different: a violation must be certain.
    if None in families or ILL in (read(one).kind, read(other).kind):
        return False
    if families[0] != families[1]:
        return True
    # ``equal`` does not know the datatypes derived from xsd:string, whose values are strings too.
    if families[0] == "string":
        return lexical(one) != lexical(other)
    return equal(one, other) is not True


def _has(literal: Term, datatype: Term) -> bool | None:
    """Whether a literal's value is in a datatype; ``None`` if the value or the datatype is unknown."""
    family = _family(literal)
    if datatype == LITERAL:
        return True
    if read(literal).kind == ILL:
        return False
    if datatype == f"<{RDF}PlainLiteral>":
        return None if family is None else family in ("string", "langString")
    primitive = _FAMILIES.get(datatype[1:-1])
    if primitive is None or family is None:
        return None
    return primitive == family and _within(literal, datatype.removeprefix(f"<{XSD}")[:-1])


def _within(literal: Term, name: str) -> bool:
    """Whether a value of the right primitive datatype is in the derived one."""
    value = read(literal)
    if name in _TEXTS:
        return _TEXTS[name].fullmatch(lexical(literal)) is not None
    if name in _WHOLE:
        least, upper = _WHOLE[name]
        # ``"1.0"^^xsd:decimal`` is a value of xsd:integer: value spaces count, not lexical forms.
        if value.kind not in (INTEGER, DECIMAL) or value.value != int(value.value):
            return False
        return (least is None or least <= value.value) and (upper is None or value.value <= upper)
    if name == "dateTimeStamp":
        return re.search(r"(?:Z|[+-]\d\d:\d\d)$", lexical(literal)) is not None
    return True


def _family(literal: Term) -> str | None:
    """The primitive datatype of a literal's value."""
    # A plain literal, whose datatype is xsd:string.
    if literal[-1] == '"':
        return "string"
    if read(literal).kind == TAGGED:
        return "langString"
    return _FAMILIES.get(literal[literal.rindex('"') + 4 : -1])


LITERAL_TESTS: Final = {"inside": inside, "outside": outside, "unequal": unequal}
"""The tests of literals by name."""

SAME: Final[Term] = "<http://www.w3.org/2002/07/owl#sameAs>"
VIOLATES: Final[Term] = "<urn:streamgauge:violates>"
"""The property from a resource to a literal: the OWL 2 RL rule with conclusion ``false`` and the axiom it violates."""


class OntologyError(MistakeError, ValueError):
    """An axiom outside the supported rules; the sentence names it."""


@dataclass(frozen=True, slots=True)
class LiteralTest:
    """A condition on two terms or variables; ``kind`` is a key of ``LITERAL_TESTS``."""

    kind: str
    nodes: tuple[Node, Node]

    @property
    def holds(self) -> Callable[[Term, Term], bool]:
        """The function that tests the two terms."""
        test: Callable[[Term, Term], bool] = LITERAL_TESTS[self.kind]
        return test


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: ``body`` and ``tests`` imply ``head``; ``axiom`` is the text of the axiom that the rule is from.

    A rule without a body states a fact. Predicates, and classes of rdf:type, may be variables (rules of equality).
    """

    head: TriplePattern
    body: tuple[TriplePattern, ...]
    axiom: str = ""
    tests: tuple[LiteralTest, ...] = ()

    @property
    def is_step(self) -> bool:
        """Whether one fact alone implies the head, without a join or a test: a step."""
        # owl:sameAs may not be a step: ``x owl:sameAs x`` must be left out, which tables of steps do not check.
        if len(self.body) != 1 or self.tests or self.head.predicate == SAME:
            return False
        (body,), head = self.body, self.head
        # Steps are C(x) -> D(x), p(x, y) -> C(x), p(x, y) -> C(y), p(x, y) -> q(x, y) and p(x, y) -> q(y, x). p(x, x)
        # -> C(x) is none, nor p(x, a) -> C(x) with a constant: they need a test of the fact.
        ends = _ends(body)
        if ends is None or (positions := _ends(head)) is None or not set(positions) <= set(ends):
            return False
        return is_class(head) or len(positions) == 2


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An axiom that is not translated to a rule, with the reason."""

    axiom: str
    reason: str

    def __str__(self) -> str:
        return f"{self.axiom}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of an ontology.

    ``silent`` are axioms from which no rule of OWL 2 RL derives a triple; ``left_out`` are those outside OWL 2 RL, if
    the reader is lenient, and those that derive owl:sameAs, without the rules of equality; ``imports`` are the
    ontologies that the ontology imports, which are not read.
    """

    rules: tuple[Rule, ...] = ()
    silent: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    imports: tuple[Term, ...] = ()

    @property
    def constrains(self) -> bool:
        """Whether facts can violate an axiom."""
        return any(rule.head.predicate == VIOLATES for rule in self.rules)


def unnamed(number: int) -> Term:
    """A hidden IRI for an unnamed class of the ontology; no IRI of data equals it."""
    return f"{HIDDEN}class{number}>"


def is_unnamed(term: Term) -> bool:
    """Whether a term is from ``unnamed``; the closure does not report members of such a class."""
    return term.startswith(HIDDEN)


def is_class(pattern: TriplePattern) -> bool:
    """Whether a pattern matches the members of one class."""
    return pattern.predicate == RDF_TYPE and isinstance(pattern.object, str)


def instance(pattern: TriplePattern, bound: Mapping[Node, Term]) -> Triple | None:
    """The triple of a head for these bindings; ``None`` for what is not a triple of RDF, and for x owl:sameAs x."""
    subject, predicate, end = (bound.get(node, node) for node in _nodes(pattern))
    if not (isinstance(subject, str) and isinstance(predicate, str) and isinstance(end, str)):
        return None
    if not is_triple_of(subject, predicate, end) or (predicate == SAME and subject == end):
        return None
    return subject, predicate, end


def bindings(pattern: TriplePattern, triple: Triple, bound: Mapping[Node, Term]) -> dict[Node, Term] | None:
    """Extend bindings so that a pattern matches a triple; ``None`` if they do not match."""
    extended = dict(bound)
    for node, term in zip(_nodes(pattern), triple, strict=True):
        if extended.setdefault(node, term) != term if isinstance(node, Var) else node != term:
            return None
    return extended


def passes(rule: Rule, bound: Mapping[Node, Term]) -> bool:
    """Whether a rule's tests hold under bindings."""
    return all(test.holds(*(str(bound.get(node, node)) for node in test.nodes)) for test in rule.tests)


def predicate_of(pattern: TriplePattern) -> Node:
    """The predicate of a rule's pattern; ValueError for a property path."""
    if not isinstance(pattern.predicate, Var | str):
        raise ValueError("a rule has no property paths")
    return pattern.predicate


def _ends(pattern: TriplePattern) -> tuple[Var, ...] | None:
    """The variables of a pattern of one class or property; ``None`` if an end is a constant or both are the same."""
    if is_class(pattern):
        return (pattern.subject,) if isinstance(pattern.subject, Var) else None
    one, two = pattern.subject, pattern.object
    named = isinstance(pattern.predicate, str) and pattern.predicate != RDF_TYPE
    return (one, two) if named and isinstance(one, Var) and isinstance(two, Var) and one != two else None


def _nodes(pattern: TriplePattern) -> Iterator[Node]:
    yield from (pattern.subject, predicate_of(pattern), pattern.object)


def base_of(name: Term) -> Term:
    """The hidden property with the edges of a transitive property."""
    # The space keeps it apart from every IRI of data.
    return f"{HIDDEN}edge {name}"


def chain_of(name: Term) -> Term:
    """The hidden property that the rule for a transitive property derives; its pairs are counted, not stored."""
    return f"{HIDDEN}chain {name}"


def transitive(rule: Rule) -> Term | None:
    """The property that a rule makes transitive; ``None`` for other rules, and for owl:sameAs."""
    name = rule.head.predicate
    if not isinstance(name, str) or name in (RDF_TYPE, SAME) or rule.tests or len(rule.body) != 2:
        return None
    start, end = rule.head.subject, rule.head.object
    # Axioms may state the two patterns in either order.
    for one, two in (rule.body, rule.body[::-1]):
        middle = one.object
        if (
            one == TriplePattern(start, name, middle)
            and two == TriplePattern(middle, name, end)
            and not isinstance(middle, str)
            and len({start, middle, end}) == 3
            and not (isinstance(start, str) or isinstance(end, str))
        ):
            return name
    return None


def edge_by_edge(rule: Rule, name: Term) -> tuple[TriplePattern, TriplePattern]:
    """The linear body that replaces the quadratic one of a ``transitive`` rule: the second pair is an edge."""
    one, two = rule.body if rule.body[0].subject == rule.head.subject else rule.body[::-1]
    return one, TriplePattern(two.subject, base_of(name), two.object)


_Value = TypeVar("_Value")
Consequence = tuple[str, Term]
"""A consequence of a pair: ``same`` or ``turned`` and a property, or ``subject``, ``object`` and a class of it."""


@dataclass(frozen=True, slots=True, eq=False)
class PropertyLinks:
    """The consequences of each pair of a property: pairs of other properties, turned or not, and classes of its ends.

    ``lone`` is true if its pairs imply nothing and nothing implies them. ``literal`` is what a pair with a literal
    implies: a turned pair would have the literal as its subject, so no step leads through one.
    """

    property: Property
    same: tuple[Property, ...]
    turned: tuple[Property, ...]
    of_subject: tuple[Class, ...]
    of_object: tuple[Class, ...]
    lone: bool
    literal: "PropertyLinks | None" = None


class _LazyTable(dict[Term, _Value]):
    """Values by name, each computed at its first look-up; ``__missing__`` keeps later look-ups free of a call."""

    def __init__(self, make: Callable[[Term], _Value]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, name: Term) -> _Value:
        value = self[name] = self._make(name)
        return value


class FactSteps:
    """The closure of the rules that are steps.

    Pairs of ``transitive`` properties imply edges too, as the text of this module explains.
    """

    def __init__(
        self, rules: Iterable[Rule], heads: Iterable[TriplePattern], facts: Facts, transitive: Iterable[Term] = ()
    ) -> None:
        self._facts = facts
        self._chains = {chain_of(name): name for name in transitive}
        self._next: dict[Consequence, set[Consequence]] = {}
        for rule in rules:
            for start, end in _step(rule):
                self._next.setdefault(start, set()).add(end)
        all_heads = list(heads)
        self._open = any(isinstance(head.predicate, Var) for head in all_heads)
        derived = {_of(head) for head in all_heads if isinstance(head.predicate, str)}
        self._implied = {end for ends in self._next.values() for end in ends} | derived
        self.links = _LazyTable(self._linked)
        """By the name of a property or a chain, what its pairs imply."""
        self.above = _LazyTable(self._classes)
        """By the name of a class, the class and then its superclasses."""

    def _linked(self, name: Term) -> PropertyLinks:
        return self._link(name, tuple(_TURN), self._link(name, ("same", "subject"), None))

    def _classes(self, name: Term) -> tuple[Class, ...]:
        reached = [term for kind, term in self._reach(("subject", name)) if kind == "subject" and term != name]
        return tuple(map(self._facts.class_of, (name, *sorted(reached))))

    def _link(self, name: Term, kinds: tuple[str, ...], literal: PropertyLinks | None) -> PropertyLinks:
        chained = self._chains.get(name)
        start = ("same", name if chained is None else chained)
        # A worked example: p is a subproperty of q, r is the inverse of q, and C is the domain of q. A pair of p
        # implies the same pair of q, the turned pair of r, and that its subject is a C.
        implied = self._reach(start, kinds)
        # Sorted below, so that the order of consequences does not depend on hashes.
        edges = {(kind, base_of(term)) for kind, term in implied if self._has_edges(kind, term, chained)}
        reached = sorted((implied - ({start} if chained is None else set())) | edges)

        def properties(kind: str) -> tuple[Property, ...]:
            return tuple(self._facts.property_of(term) for one, term in reached if one == kind)

        def classes(kind: str) -> tuple[Class, ...]:
            return tuple(self._facts.class_of(term) for one, term in reached if one == kind)

        # A rule with a variable predicate (``_open``) may derive a pair of any property.
        lone = not (reached or self._open or self._implied & {start, ("turned", name)})
        own, pairs = self._facts.property_of(name), (properties("same"), properties("turned"))
        return PropertyLinks(own, *pairs, classes("subject"), classes("object"), lone, literal)

    def _has_edges(self, kind: str, term: Term, chained: Term | None) -> bool:
        """Whether an implied pair is an edge: a pair of a transitive property that its own chain does not imply."""
        return kind in ("same", "turned") and term != chained and chain_of(term) in self._chains

    def _reach(self, start: Consequence, kinds: Iterable[str] = ("subject",)) -> set[Consequence]:
        """Everything that follows by steps, through consequences of these kinds only."""
        reached, waiting = {start}, [start]
        while waiting:
            for consequence in self._from(waiting.pop()):
                if consequence not in reached and consequence[0] in kinds:
                    reached.add(consequence)
                    waiting.append(consequence)
        return reached

    def _from(self, consequence: Consequence) -> Iterable[Consequence]:
        """The consequences by one step, with subject and object exchanged for a turned pair."""
        kind, term = consequence
        # A worked example: p(x, y) implies q(y, x). From a pair of p turned follows the pair of q that is not turned.
        if kind in ("turned", "object"):
            stem = "same" if kind == "turned" else "subject"
            return [(_TURN[condition], name) for condition, name in self._next.get((stem, term), ())]
        return self._next.get(consequence, ())


_TURN = {"same": "turned", "turned": "same", "subject": "object", "object": "subject"}


def _step(rule: Rule) -> Iterable[tuple[Consequence, Consequence]]:
    """A rule as a step: from a pair to a pair or to the class of one of its ends, or from a class to a class."""
    (body,), head = rule.body, rule.head
    if is_class(body):
        yield ("subject", _name(body.object)), ("subject", _name(head.object))
    elif is_class(head):
        yield (
            ("same", _name(body.predicate)),
            ("subject" if head.subject == body.subject else "object", _name(head.object)),
        )
    else:
        yield (
            ("same", _name(body.predicate)),
            ("same" if head.subject == body.subject else "turned", _name(head.predicate)),
        )


def _of(head: TriplePattern) -> Consequence:
    return ("subject", _name(head.object)) if head.predicate == RDF_TYPE else ("same", _name(head.predicate))


def _name(node: object) -> Term:
    if not isinstance(node, str):
        raise TypeError("a rule names its properties and classes")
    return node
