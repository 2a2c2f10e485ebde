"""Class expressions of OWL 2 RL, as conditions (left of a subclass axiom) and as conclusions (right of it).

Rules are named as in OWL 2 Profiles (second edition), 4.3, table 6. An expression without a name that several axioms
share is a class with a hidden name, so that the conclusion of one axiom is a condition of the other:
``A subClassOf _:r. _:r subClassOf B.`` where ``_:r`` is ``p some C`` gives ``A -> (r)``, ``p, C -> (r)``, ``(r) -> B``.

Some existential restrictions are subclasses of others by the ontology alone (table 9). ``A subClassOf p some C``
implies no link, and yet A is a subclass of all superclasses of ``p some D``, where C is a subclass of D (scm-svf1),
and of those of ``q some C``, where p is a subproperty of q (scm-svf2).
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count, product
from math import prod
from typing import Final

from streamgauge.model.algebra import Node, TriplePattern, Var
from streamgauge.model.terms import RDF_TYPE, XSD, Term, is_blank, is_iri, is_literal, lexical, quoted
from streamgauge.reasoning.graph import OWL, THING, OntologyGraph, short
from streamgauge.reasoning.rules import (
    LITERAL,
    RDF,
    RDFS,
    SAME,
    VIOLATES,
    LiteralTest,
    OntologyError,
    Rule,
    is_datatype,
    unnamed,
)

Edges = dict[Term, set[Term]]

_SOME: Final = f"<{OWL}someValuesFrom>"
_ON: Final = f"<{OWL}onProperty>"
_BOTH, _EITHER = f"<{OWL}intersectionOf>", f"<{OWL}unionOf>"
_ONLY_RIGHT: Final = {f"<{RDFS}{name}>" for name in ("subClassOf", "domain", "range")}


def wider(graph: OntologyGraph) -> Mapping[Term, tuple[Term, ...]]:
    """For each existential restriction its superclasses among the other restrictions that occur as conditions."""
    restrictions = {node: place for node in graph.predicates if (place := _place(graph, node)) is not None}
    if len(restrictions) < 2:
        return {}
    above, properties = _classes(graph), _properties(graph)
    by_place = defaultdict[tuple[Term, Term], list[Term]](list)
    for node, place in restrictions.items():
        by_place[place].append(node)
    # A fixpoint, as a new superclass of one restriction may make others superclasses.
    grown = True
    while grown:
        grown = False
        for node, place in restrictions.items():
            fresh = _next(place, above, properties, by_place) - above[node] - {node}
            above[node] |= fresh
            grown = grown or bool(fresh)
    used = _conditions(graph, restrictions)
    widened = {node: tuple(sorted((_reached(node, above) & used) - {node})) for node in restrictions}
    return {node: others for node, others in widened.items() if others}


def _place(graph: OntologyGraph, node: Term) -> tuple[Term, Term] | None:
    """The property and the class of an existential restriction."""
    on, some = graph.values(node, _ON), graph.values(node, _SOME)
    return (on[0], some[0]) if len(on) == len(some) == 1 else None


def _next(
    place: tuple[Term, Term], above: Edges, properties: Edges, by_place: Mapping[tuple[Term, Term], list[Term]]
) -> set[Term]:
    """One application of scm-svf1 and scm-svf2; every class is a subclass of owl:Thing and of itself (scm-cls)."""
    on, filler = place
    # scm-svf1 widens the class, scm-svf2 the property; a pair that is wider in both takes two rounds of the fixpoint.
    fillers = {(on, wider_filler) for wider_filler in (*_reached(filler, above), THING)}
    ons = {(wider_property, filler) for wider_property in _reached(on, properties)}
    return {node for filler in fillers | ons for node in by_place.get(filler, ())}


def _classes(graph: OntologyGraph) -> Edges:
    """The asserted superclasses of each class (scm-sco, scm-eqc1, scm-int, scm-uni)."""
    edges = defaultdict[Term, set[Term]](set)
    for (subject, predicate), ends in graph.objects.items():
        if predicate in (f"<{RDFS}subClassOf>", f"<{OWL}equivalentClass>"):
            edges[subject].update(ends)
        # Equivalence is asserted in one direction and holds in both.
        if predicate == f"<{OWL}equivalentClass>":
            for end in ends:
                edges[end].add(subject)
        if predicate == _BOTH:
            edges[subject].update(_members(graph, ends))
        if predicate == _EITHER:
            for class_node in _members(graph, ends):
                edges[class_node].add(subject)
    return edges


def _members(graph: OntologyGraph, lists: Iterable[Term]) -> Iterator[Term]:
    for start in lists:
        try:
            yield from graph.items(start)
        # A broken list is reported where the axiom is read; here it only adds no superclass.
        except OntologyError:
            continue


def _properties(graph: OntologyGraph) -> Edges:
    """The asserted superproperties of each property (scm-spo, scm-eqp1)."""
    edges = defaultdict[Term, set[Term]](set)
    for (subject, predicate), ends in graph.objects.items():
        if predicate in (f"<{RDFS}subPropertyOf>", f"<{OWL}equivalentProperty>"):
            edges[subject].update(ends)
        if predicate == f"<{OWL}equivalentProperty>":
            for end in ends:
                edges[end].add(subject)
    return edges


def _reached(start: Term, edges: Edges) -> set[Term]:
    reached, waiting = {start}, [start]
    while waiting:
        fresh = edges.get(waiting.pop(), set()) - reached
        reached |= fresh
        waiting += fresh
    return reached


def _conditions(graph: OntologyGraph, restrictions: Iterable[Term]) -> set[Term]:
    """The restrictions that occur as conditions: named ones, and those not only on the right side of axioms."""
    nodes = set(restrictions)
    used = {node for node in nodes if not is_blank(node) or graph.values(node, f"<{RDFS}subClassOf>")}
    for (subject, predicate), ends in graph.objects.items():
        if predicate not in _ONLY_RIGHT:
            used |= nodes.intersection(ends)
        elif predicate == f"<{RDFS}subClassOf>" and subject in nodes:
            used.add(subject)
    # Either side of an equivalence is a condition for the other.
    return used | {node for node in nodes if graph.values(node, f"<{OWL}equivalentClass>")}


X: Final = Var("x")
SOME, ONLY, VALUE, BOTH, EITHER, NOT, ONE_OF, SELF = (
    f"<{OWL}{name}>"
    for name in (
        "someValuesFrom", "allValuesFrom", "hasValue", "intersectionOf", "unionOf", "complementOf", "oneOf", "hasSelf",
    )
)  # fmt: skip
_LEAST: Final = (f"<{OWL}minCardinality>", f"<{OWL}minQualifiedCardinality>")
_MAX_CARDINALITY: Final = (f"<{OWL}maxCardinality>", f"<{OWL}maxQualifiedCardinality>")
_EXACT: Final = (f"<{OWL}cardinality>", f"<{OWL}qualifiedCardinality>")
FORMS: Final = (SOME, ONLY, VALUE, BOTH, EITHER, NOT, ONE_OF, SELF, *_LEAST, *_MAX_CARDINALITY, *_EXACT)
"""Predicates that describe a class."""

IS_CONDITION: Final = frozenset((BOTH, EITHER, SOME, VALUE, ONE_OF))
IS_CONCLUSION: Final = frozenset(FORMS) - {EITHER, SELF}
"""Constructors allowed as conditions, and those allowed as conclusions or from which nothing follows."""

_SHARING: Final = {
    *(f"<{OWL}{name}>" for name in ("equivalentClass", "disjointWith", "onClass")),
    *(SOME, ONLY, NOT, RDF_TYPE),
    *(f"<{RDFS}{name}>" for name in ("subClassOf", "domain", "range")),
    f"<{RDF}first>",
}
_LEFT: Final = (f"<{RDFS}subClassOf>", f"<{OWL}equivalentClass>", f"<{OWL}disjointWith>", f"<{OWL}hasKey>")
_MAX_BODIES: Final = 64
"""Maximum number of rule bodies for an intersection of unions; beyond it unions get hidden class names."""

EQUALITY: Final = "it derives owl:sameAs, which needs --same-as"


@dataclass(frozen=True, slots=True)
class Body:
    """A conjunction of conditions; ``fixed`` are variables that are bound to a constant (owl:oneOf)."""

    patterns: tuple[TriplePattern, ...] = ()
    tests: tuple[LiteralTest, ...] = ()
    fixed: tuple[tuple[Var, Term], ...] = ()

    def __and__(self, other: "Body") -> "Body":
        """The conjunction; a variable fixed to two terms becomes the condition that they are owl:sameAs."""
        terms = dict(self.fixed)
        # ``x in {a}`` and ``x in {b}`` hold together if a and b are the same individual.
        same = [TriplePattern(terms[var], SAME, term) for var, term in other.fixed if terms.get(var, term) != term]
        fixed = tuple({**dict(other.fixed), **terms}.items())
        return Body((*self.patterns, *other.patterns, *same), (*self.tests, *other.tests), fixed)

    def rule(self, head: TriplePattern, axiom: str) -> Rule:
        """The rule from these conditions to a head."""
        terms: dict[Node, Term] = dict(self.fixed)

        def put(pattern: TriplePattern) -> TriplePattern:
            one, two = (terms.get(node, node) for node in (pattern.subject, pattern.object))
            return TriplePattern(one, pattern.predicate, two)

        tests = tuple(
            LiteralTest(test.kind, (terms.get(test.nodes[0], test.nodes[0]), terms.get(test.nodes[1], test.nodes[1])))
            for test in self.tests
        )
        return Rule(put(head), tuple(map(put, self.patterns)), axiom, tests)

    def violation(self, rule: str, axiom: str, subject: Node) -> Rule:
        """The rule by which a subject violates an axiom; ``rule`` is its name in the tables."""
        return self.rule(TriplePattern(subject, VIOLATES, quoted(f"{rule}: {axiom}")), axiom)


def member(at: Node, name: Term) -> Body:
    """The condition of being a member of a class."""
    return Body((TriplePattern(at, RDF_TYPE, name),))


Refuse = Callable[[str, OntologyError], None]
"""Called with an axiom outside the supported rules and its error; raises it unless the reader is lenient."""


@dataclass
class Classes:
    """Reads class expressions of a graph; fresh variables are numbered.

    ``same_as`` derives owl:sameAs; ``visible`` derives memberships of unnamed classes; ``subsumption`` derives that
    restrictions are subclasses of others (scm-svf1, scm-svf2); ``beyond`` adds sound rules that OWL 2 RL does not have.
    """

    graph: OntologyGraph
    refuse: Refuse
    same_as: bool = False
    visible: bool = False
    subsumption: bool = False
    beyond: bool = False
    equalities: dict[str, None] = field(default_factory=dict)
    """Axioms that would derive owl:sameAs, without ``same_as``."""
    silent: dict[str, None] = field(default_factory=dict)
    """Axioms with a part from which OWL 2 RL derives nothing."""
    _fresh: Iterator[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        """Find the expressions that are referred to more than once."""
        self._names: dict[Term, Term] = {}
        self._open: list[tuple[Term, bool]] = []
        self._met: set[tuple[Term, bool]] = set()
        used = Counter[Term]()
        for (subject, predicate), ends in self.graph.objects.items():
            used.update(end for end in ends if predicate in _SHARING and end.startswith("_:"))
            if predicate in _LEFT and subject.startswith("_:"):
                used[subject] += len(ends)
        self._wider = wider(self.graph) if self.subsumption else {}
        self._above = {node for others in self._wider.values() for node in others}
        # One that is used once is expanded in place, which saves a rule and the hidden membership between.
        self._shared = {node for node, times in used.items() if times > 1 and self.forms(node)}

    def forms(self, node: Term) -> list[Term]:
        """The constructors that describe a node; a named class may have some as well."""
        return [form for form in self.graph.predicates.get(node, ()) if form in FORMS]

    def fresh(self) -> Var:
        """A variable that no other expression uses."""
        return Var(f"y{next(self._fresh)}")

    def conditions(self, node: Term, at: Var = X) -> list[Body]:
        """Rule bodies, each of which suffices for ``at`` to be a member of a class, named or described."""
        # Every resource is an owl:Thing, so that nothing is left to test.
        if node == THING:
            return [Body()]
        if is_datatype(node):
            return [Body(tests=(LiteralTest("inside", (at, node)),))]
        if is_iri(node):
            return [member(at, node)]
        if node in self._shared:
            return [self._by_name(node, at)]
        concluded = [member(at, self._name(node))] if node in self._above else []
        return self.described(node, at) + concluded

    def _by_name(self, node: Term, at: Var) -> Body:
        """Membership of the hidden class of an expression; ``pending`` gives the rules that derive it."""
        self._meet(node, True)
        return member(at, self._name(node))

    def described(self, node: Term, at: Var = X) -> list[Body]:
        """Rule bodies for a class expression, which has exactly one constructor."""
        forms = self.forms(node)
        if len(forms) != 1:
            raise OntologyError(self._unsupported(node, "a condition"))
        return self.described_by(node, forms[0], at)

    def described_by(self, node: Term, form: Term, at: Var = X) -> list[Body]:
        """Rule bodies for one constructor of a node."""
        graph = self.graph
        if form == BOTH:
            return self._every(graph.members(node, form), at)
        if form == EITHER:
            return self._any(node, graph.members(node, form), at)
        if form == SOME:
            successor = self.fresh()
            link = Body((graph.pair(graph.one(node, _ON), at, successor),))
            return [link & rest for rest in self.conditions(graph.one(node, form), successor)]
        if form == VALUE:
            return [Body((graph.pair(graph.one(node, _ON), at, graph.one(node, form)),))]
        # OWL 2 RL allows enumerations of individuals only (Profiles, 4.2.3).
        if form == ONE_OF and not any(map(is_literal, items := graph.members(node, form))):
            return [Body(fixed=((at, item),)) for item in items]
        raise OntologyError(self._unsupported(node, "a condition"))

    def _every(self, members: list[Term], at: Var) -> list[Body]:
        parts = [self.conditions(member, at) for member in members]
        # The product of the unions: 3 unions of 10 classes would be 1,000 rules. With a hidden class for each union it
        # is one rule, and one for each of their members.
        if prod(map(len, parts)) > _MAX_BODIES:
            pairs = zip(members, parts, strict=True)
            parts = [part if len(part) == 1 else [self._by_name(node, at)] for node, part in pairs]
        return [_joined(choice) for choice in product(*parts)]

    def _any(self, node: Term, members: list[Term], at: Var) -> list[Body]:
        """Rule bodies of a union; a lenient reader skips members that OWL 2 RL does not allow as conditions."""
        bodies: list[Body] = []
        for part in members:
            try:
                bodies += self.conditions(part, at)
            except OntologyError as error:
                self.refuse(self.graph.text(node), error)
        return bodies

    def conclusions(
        self, node: Term, body: Body, axiom: str, at: Var = X, owner: Node | None = None
    ) -> list[Rule]:  # fmt: skip
        """The rules by which ``body`` implies that ``at`` is a member of ``node``.

        ``owner`` is the resource with the value ``at``, which may be a literal.
        """
        if node in (THING, LITERAL) or (node.startswith(f"<{XSD}") and not is_datatype(node)):
            return []
        if is_datatype(node):
            beyond = Body(tests=(LiteralTest("outside", (at, node)),))
            return [] if owner is None else [(body & beyond).violation("dt-not-type", axiom, owner)]
        if is_iri(node):
            return [body.rule(TriplePattern(at, RDF_TYPE, node), axiom)]
        named = [body.rule(TriplePattern(at, RDF_TYPE, self._name(node)), axiom)]
        if node in self._shared:
            self._meet(node, False)
            return named
        return (named if self.visible else []) + self.concluded(node, body, axiom, at)

    def concluded(self, node: Term, body: Body, axiom: str, at: Var = X) -> list[Rule]:
        """The rules from a body to all constructors of a node."""
        if not self.forms(node):
            raise OntologyError(self._unsupported(node, "a conclusion"))
        return [rule for form in self.forms(node) for rule in self.concluded_by(node, form, body, axiom, at)]

    def concluded_by(self, node: Term, form: Term, body: Body, axiom: str, at: Var = X) -> Iterable[Rule]:
        """The rules from a body to one constructor of a node."""
        graph = self.graph
        if form == BOTH:
            return self._all_of(graph.members(node, form), body, axiom, at)
        if form == VALUE:
            return [body.rule(graph.pair(graph.one(node, _ON), at, graph.one(node, form)), axiom)]
        if form == ONLY:
            successor = self.fresh()
            longer = body & Body((graph.pair(graph.one(node, _ON), at, successor),))
            return self.conclusions(graph.one(node, form), longer, axiom, successor, at)
        if form == NOT:
            others = self.conditions(graph.one(node, form), at)
            return [(body & other).violation("cls-com", axiom, at) for other in others]
        if form in (*_MAX_CARDINALITY, *_EXACT):
            return self._at_most(node, form, body, axiom, at)
        # These would assert that something exists, or one of several: no Horn rule follows.
        if form in (SOME, ONE_OF, *_LEAST):
            self.silent[axiom] = None
            above = self._wider.get(node, ()) if form == SOME else ()
            return [body.rule(TriplePattern(at, RDF_TYPE, self._name(node)), axiom) for node in above]
        raise OntologyError(self._unsupported(node, "a conclusion"))

    def _all_of(self, members: list[Term], body: Body, axiom: str, at: Var) -> list[Rule]:
        """The conclusions of an intersection; a lenient reader skips members that cannot be conclusions."""
        rules: list[Rule] = []
        for node in members:
            try:
                rules += self.conclusions(node, body, axiom, at)
            except OntologyError as error:
                self.refuse(axiom, error)
        return rules

    def _at_most(self, node: Term, form: Term, body: Body, axiom: str, at: Var) -> list[Rule]:
        """Rules for maximum cardinality 0 and 1: cls-maxc1 and -2, cls-maxqc1 to -4."""
        graph, qualified = self.graph, "Qualified" in form or "qualified" in form
        number, on = lexical(graph.one(node, form)), graph.one(node, _ON)
        # At most two values would need a disjunction: which two of three are the same?
        if number not in ("0", "1"):
            raise OntologyError(f"{short(form)} {number} is outside OWL 2 RL, which allows 0 and 1")
        ranges = [*graph.values(node, f"<{OWL}onClass>"), *graph.values(node, f"<{OWL}onDataRange>")]
        filler = ranges[0] if qualified and ranges else THING
        one, two = self.fresh(), self.fresh()
        ones = [body & Body((graph.pair(on, at, one),)) & rest for rest in self.conditions(filler, one)]
        if number == "0":
            return [one.violation("cls-maxqc1" if qualified else "cls-maxc1", axiom, at) for one in ones]
        twos = [Body((graph.pair(on, at, two),)) & rest for rest in self.conditions(filler, two)]
        name = "cls-maxqc3" if qualified else "cls-maxc2"
        return [
            rule
            for first, second in product(ones, twos)
            for rule in self.alike((one, two), first & second, (name, axiom), at, on)
        ]

    def alike(
        self, both: tuple[Var, Var], body: Body, texts: tuple[str, str], owner: Node, on: Term | None = None
    ) -> list[Rule]:
        """The rules that identify two terms: owl:sameAs with ``same_as``, a violation for different literals.

        ``texts`` are the rule's name in the tables and the axiom, ``on`` is the property whose values they are.
        """
        name, axiom = texts
        objects = on is None or not self.graph.has_type(on, "DatatypeProperty")
        literal = on is not None and is_iri(on) and not self.graph.has_type(on, "ObjectProperty")
        rules = []
        # Two different literals are never the same, so this is a violation even without the rules of equality.
        if literal:
            differ = Body(tests=(LiteralTest("unequal", both),))
            rules.append((body & differ).violation(name, axiom, owner))
        if objects and self.same_as:
            rules.append(body.rule(TriplePattern(both[0], SAME, both[1]), axiom))
        elif objects:
            self.equalities[axiom] = None
        return rules

    def pending(self) -> Iterator[Rule]:
        """The rules between the hidden classes of shared expressions and their constructors."""
        # Reading one expression may open others; they are appended meanwhile.
        while self._open:
            node, is_condition = self._open.pop()
            text, name = self.graph.text(node), TriplePattern(X, RDF_TYPE, self._name(node))
            try:
                if is_condition:
                    yield from [body.rule(name, text) for body in self.described(node)]
                else:
                    yield from self.concluded(node, Body((name,)), text)
            except OntologyError as error:
                self.refuse(text, error)

    def _meet(self, node: Term, is_condition: bool) -> None:
        if (node, is_condition) not in self._met:
            self._met.add((node, is_condition))
            self._open.append((node, is_condition))

    def _name(self, node: Term) -> Term:
        """The class IRI, visible or hidden, whose members are those of an expression."""
        if self.visible or is_iri(node):
            return node
        return self._names.setdefault(node, unnamed(len(self._names)))

    def _unsupported(self, node: Term, place: str) -> str:
        kinds = [short(form) for form in self.forms(node)]
        text = " and ".join(kinds) or "no known constructor"
        return f"the class expression {self.graph.text(node)} with {text} as {place} is outside OWL 2 RL"


def _joined(parts: Iterable[Body]) -> Body:
    body = Body()
    for part in parts:
        body = body & part
    return body
