"""Rules from an ontology: RDFS and OWL 2 RL (OWL 2 Profiles, 4.3); other axioms are refused or listed, one by one.

Rules for axioms about properties and about equal individuals are in tables 4, 5 and 7 there.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, product
from typing import Final, Literal, TypeAlias

from streamgauge.model.algebra import TriplePattern, Var
from streamgauge.model.terms import RDF_TYPE, XSD, Term, Triple, is_blank, is_iri
from streamgauge.reasoning.expressions import (
    EQUALITY,
    FORMS,
    IS_CONCLUSION,
    IS_CONDITION,
    Body,
    Classes,
    X,
    member,
)
from streamgauge.reasoning.graph import NOTHING, OWL, THING, VOCABULARY, OntologyGraph, short
from streamgauge.reasoning.rules import RDF, RDFS, SAME, LeftOut, OntologyError, Rule, Rules, is_class, is_unnamed

_NOTES: Final = {
    *(f"<{RDFS}{name}>" for name in ("label", "comment", "seeAlso", "isDefinedBy")),
    *(f"<{OWL}{name}>" for name in ("versionInfo", "versionIRI", "priorVersion", "backwardCompatibleWith")),
    *(f"<{OWL}{name}>" for name in ("incompatibleWith", "deprecated")),
    *(f"<{OWL}{name}>" for name in ("annotatedSource", "annotatedProperty", "annotatedTarget")),
}
_NOTED: Final = (f"<{RDFS}seeAlso>", f"<{RDFS}isDefinedBy>")
_TERMS: Final = (
    "Class", "Datatype", "Property", "Ontology", "ObjectProperty", "DatatypeProperty", "AnnotationProperty",
    "OntologyProperty", "FunctionalProperty", "InverseFunctionalProperty", "TransitiveProperty", "SymmetricProperty",
    "IrreflexiveProperty", "AsymmetricProperty", "ReflexiveProperty", "Restriction", "Axiom", "Annotation",
    "AllDifferent", "AllDisjointClasses", "AllDisjointProperties", "NegativePropertyAssertion", "DeprecatedClass",
    "DeprecatedProperty", "DataRange",
)  # fmt: skip


def is_annotation(graph: OntologyGraph, subject: Term, predicate: Term) -> bool:
    """Whether a triple with these terms is an annotation (OWL 2 Structural Specification, 10).

    Its predicate makes it one, or its subject, if that is a class, a property or the ontology. A triple about an
    individual is an annotation if the ontology does not declare the predicate.
    """
    if predicate in _NOTES or graph.has_type(predicate, "AnnotationProperty", "OntologyProperty"):
        return True
    if predicate.startswith(VOCABULARY):
        return False
    if graph.has_type(subject, *_TERMS):
        return True
    return bool(graph.values(subject, RDF_TYPE)) and not graph.values(predicate, RDF_TYPE)


def noted_nodes(graph: OntologyGraph, triples: Iterable[Triple]) -> set[Term]:
    """The blank nodes that only annotations refer to; their triples are annotations too."""
    leads: dict[Term, list[tuple[Term, Term]]] = {}
    for subject, predicate, end in triples:
        if is_blank(end):
            leads.setdefault(end, []).append((subject, predicate))
    noted, size = set[Term](), -1
    # To the fixpoint: an annotation's value may refer to further blank nodes, as with annotations of annotations.
    while size != len(noted):
        size = len(noted)
        noted |= {
            node
            for node, ways in leads.items()
            if all(subject in noted or _is_note(graph, subject, predicate) for subject, predicate in ways)
        }
    return noted


def _is_note(graph: OntologyGraph, subject: Term, predicate: Term) -> bool:
    return predicate in (*_NOTED, *_NOTES) or (predicate != SAME and is_annotation(graph, subject, predicate))


Y: Final = Var("y")
_Z: Final = Var("z")
_W: Final = Var("w")
_P, _Q = Var("p"), Var("q")
DIFFERENT: Final[Term] = f"<{OWL}differentFrom>"


def hierarchy(classes: Classes, kind: str, one: Term, two: Term, axiom: str) -> list[Rule]:
    """Rules prp-spo1, prp-eqp1 and -2, prp-inv1 and -2."""
    pair = classes.graph.pair
    lower, upper = pair(one, X, Y), pair(two, Y, X) if kind == "inverseOf" else pair(two, X, Y)
    rules = [Rule(upper, (lower,), axiom)]
    return rules if kind == "subPropertyOf" else [*rules, Rule(lower, (upper,), axiom)]


def chain(classes: Classes, on: Term, steps: Sequence[Term], axiom: str) -> list[Rule]:
    """Rule prp-spo2: the ends of a property chain are a pair of the property."""
    nodes = [X, *(classes.fresh() for _ in steps)]
    body = tuple(classes.graph.pair(step, nodes[at], nodes[at + 1]) for at, step in enumerate(steps))
    return [Rule(classes.graph.pair(on, X, nodes[-1]), body, axiom)] if steps else []


def key(classes: Classes, node: Term, on: Sequence[Term], axiom: str) -> list[Rule]:
    """Rule prp-key: members of a class with the same values of all properties are the same."""
    values = [classes.fresh() for _ in on]
    links = [
        Body(tuple(classes.graph.pair(property_, at, value) for property_, value in zip(on, values, strict=True)))
        for at in (X, Y)
    ]
    choices = product(classes.conditions(node, X), classes.conditions(node, Y)) if on else ()
    return [
        rule
        for one, two in choices
        for rule in classes.alike((X, Y), one & links[0] & two & links[1], ("prp-key", axiom), X)
    ]


def characteristic(classes: Classes, kind: str, on: Term, axiom: str) -> list[Rule]:
    """Rules prp-trp, prp-symp, prp-fp, prp-ifp, prp-irp and prp-asyp."""
    pair = classes.graph.pair
    match kind:
        case "TransitiveProperty":
            return [Rule(pair(on, X, _Z), (pair(on, X, Y), pair(on, Y, _Z)), axiom)]
        case "SymmetricProperty":
            return [Rule(pair(on, Y, X), (pair(on, X, Y),), axiom)]
        case "FunctionalProperty":
            alike = classes.alike((Y, _Z), Body((pair(on, X, Y), pair(on, X, _Z))), ("prp-fp", axiom), X, on)
            return [*alike, *_apart_by_one(classes, on, (X, Y), axiom)]
        case "InverseFunctionalProperty":
            alike = classes.alike((X, _Z), Body((pair(on, X, Y), pair(on, _Z, Y))), ("prp-ifp", axiom), X)
            return [*alike, *_apart_by_one(classes, on, (Y, X), axiom)]
        case "ReflexiveProperty" if classes.beyond:
            return _reflexive(classes, on, axiom)
        case "IrreflexiveProperty":
            return [Body((pair(on, X, X),)).violation("prp-irp", axiom, X)]
        case "AsymmetricProperty":
            return [Body((pair(on, X, Y), pair(on, Y, X))).violation("prp-asyp", axiom, X)]
    raise OntologyError(f"{kind} is outside OWL 2 RL")


CHARACTERISTICS: Final = (
    "TransitiveProperty", "SymmetricProperty", "FunctionalProperty", "InverseFunctionalProperty",
    "IrreflexiveProperty", "AsymmetricProperty", "ReflexiveProperty",
)  # fmt: skip


def disjoint_classes(classes: Classes, several: Sequence[Term], name: str, axiom: str) -> list[Rule]:
    """Rules cax-dw and cax-adc: no member of one is a member of another."""
    return [
        (left & right).violation(name, axiom, X)
        for one, two in combinations(several, 2)
        for left, right in product(classes.conditions(one, X), classes.conditions(two, X))
    ]


def disjoint_properties(classes: Classes, several: Sequence[Term], name: str, axiom: str) -> list[Rule]:
    """Rules prp-pdw and prp-adp: no pair of one is a pair of another."""
    pair, rules = classes.graph.pair, list[Rule]()
    for one, two in combinations(several, 2):
        rules.append(Body((pair(one, X, Y), pair(two, X, Y))).violation(name, axiom, X))
        if classes.beyond:
            rules.append(Rule(TriplePattern(X, DIFFERENT, _Z), (pair(one, X, Y), pair(two, _Z, Y)), axiom))
        if classes.beyond and all(classes.graph.has_type(property_, "ObjectProperty") for property_ in (one, two)):
            rules.append(Rule(TriplePattern(Y, DIFFERENT, _Z), (pair(one, X, Y), pair(two, X, _Z)), axiom))
    return rules


def _apart_by_one(classes: Classes, on: Term, ends: tuple[Var, Var], axiom: str) -> list[Rule]:
    """Resources with different values of a functional property differ; values of different resources, of its inverse.

    ``ends`` are the end that the rule concludes to be different and the end whose difference is its condition.
    """
    if not classes.beyond:
        return []
    other = {X: _Z, Y: _W}
    links = classes.graph.pair(on, X, Y), classes.graph.pair(on, _Z, _W)
    different, by = (TriplePattern(end, DIFFERENT, other[end]) for end in ends)
    return [Rule(different, (*links, by), axiom)]


def _reflexive(classes: Classes, on: Term, axiom: str) -> list[Rule]:
    """A reflexive property links every subject of a fact, and every value of an object property, with itself."""
    graph = classes.graph
    linked = [predicate for predicate in graph.predicates if graph.has_type(predicate, "ObjectProperty")]
    # Values of other properties may be literals, which cannot be subjects.
    bodies = [TriplePattern(X, _P, Y), *(graph.pair(property_, Y, X) for property_ in sorted(linked))]
    return [Rule(graph.pair(on, X, X), (body,), axiom) for body in bodies]


def all_different(several: Sequence[Term], axiom: str) -> list[Rule]:
    """Rules eq-diff2 and eq-diff3: no two of the individuals are the same."""
    return [
        Body((TriplePattern(one, SAME, two),)).violation("eq-diff2", axiom, one)
        for pair in combinations(several, 2)
        # Both orders: without the rules of equality owl:sameAs is not symmetric here.
        for one, two in (pair, pair[::-1])
    ]


def equality() -> Iterator[Rule]:
    """Rules eq-sym, eq-trans, eq-rep-s, eq-rep-p and eq-rep-o; eq-ref (x owl:sameAs x, for every term) is left out."""
    same, fact = TriplePattern(X, SAME, Y), TriplePattern(X, _P, _Z)
    yield Rule(TriplePattern(Y, SAME, X), (same,), "eq-sym")
    yield Rule(TriplePattern(X, SAME, _Z), (same, TriplePattern(Y, SAME, _Z)), "eq-trans")
    yield Rule(TriplePattern(Y, _P, _Z), (same, fact), "eq-rep-s")
    yield Rule(TriplePattern(X, _Q, _Z), (TriplePattern(_P, SAME, _Q), fact), "eq-rep-p")
    yield Rule(TriplePattern(_Z, _P, Y), (same, TriplePattern(_Z, _P, X)), "eq-rep-o")


Extent: TypeAlias = Literal["named", "full"]
"""Memberships of named classes only, or also of owl:Thing and of the ontology's unnamed classes (OWL RL, Horst)."""

_LENIENT: Final = "`--ontology-lenient` lists and leaves out what is outside the rules"
_KINDS: Final = {
    *(f"<{RDFS}{name}>" for name in ("Class", "Datatype", "ContainerMembershipProperty")),
    *(f"<{RDF}{name}>" for name in ("Property", "List")),
    *(f"<{OWL}{name}>" for name in ("Class", "Restriction", "Ontology", "ObjectProperty", "DatatypeProperty")),
    *(f"<{OWL}{name}>" for name in ("AnnotationProperty", "OntologyProperty", "NamedIndividual", "Axiom")),
    *(f"<{OWL}{name}>" for name in ("Annotation", "DataRange", "DeprecatedClass", "DeprecatedProperty")),
    f"<{OWL}NegativePropertyAssertion>",
}
_PARTS: Final = {
    *(f"<{OWL}{name}>" for name in ("onProperty", "onProperties", "onClass", "onDataRange", "members")),
    *(f"<{OWL}{name}>" for name in ("distinctMembers", "assertionProperty", "targetIndividual", "targetValue")),
    *(f"<{OWL}{name}>" for name in ("onDatatype", "withRestrictions", "datatypeComplementOf")),
    *(f"<{RDF}{name}>" for name in ("first", "rest")),
    *FORMS,
}
_FACETS: Final = (f"<{XSD}", f"<{RDF}langRange>")


def read_rules(
    ontology: Iterable[Triple],
    closure: Extent = "named",
    *,
    same_as: bool = False,
    subsumption: bool = False,
    beyond: bool = False,
    lenient: bool = False,
) -> Rules:
    """Translate an ontology to rules.

    ``same_as`` adds the rules of equality and the axioms that derive owl:sameAs; ``subsumption`` adds scm-svf1 and
    scm-svf2, which OWL Horst, and so the published closures of LUBM, do not have; ``beyond`` adds rules that OWL 2 RL
    does not have, for reflexive properties and for owl:differentFrom. OntologyError names the first axiom outside
    OWL 2 RL; with ``lenient`` the attribute ``left_out`` of the rules lists all of them instead.
    """
    # Sorted, so that hidden classes and rules have the same order in every process.
    triples = sorted(set(ontology))
    graph, refusals = OntologyGraph.of(triples), _Refusals(lenient)
    classes = Classes(graph, refusals.refuse, same_as, closure == "full", subsumption, beyond)
    reader = _Reader(triples, graph, classes, refusals)
    rules = dict.fromkeys(reader.rules())
    if closure == "full":
        rules |= dict.fromkeys(reader.unnamed())
        rules |= dict.fromkeys(_things([*rules]))
    if same_as:
        rules |= dict.fromkeys(equality())
    if beyond:
        apart = TriplePattern(Y, DIFFERENT, X), (TriplePattern(X, DIFFERENT, Y),)
        rules[Rule(*apart, "owl:differentFrom is symmetric")] = None
    # A rule whose head is in its body derives nothing new, as ``p subPropertyOf p``.
    kept = _used(rule for rule in rules if rule.head not in rule.body)
    equalities = (LeftOut(axiom, EQUALITY) for axiom in classes.equalities)
    left_out = (*refusals.axioms, *equalities)
    return Rules(kept, tuple(classes.silent), left_out, tuple(dict.fromkeys(reader.imports)))


def _used(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """The rules except those that conclude membership of a hidden class that is a condition of no rule."""
    kept, size = tuple(rules), -1
    # To the fixpoint: a rule that goes may have been the only one with another hidden class as its condition.
    while size != len(kept):
        size = len(kept)
        read = {pattern.object for rule in kept for pattern in rule.body}
        kept = tuple(rule for rule in kept if not is_unnamed(str(rule.head.object)) or rule.head.object in read)
    return kept


class _Refusals:
    """Axioms outside OWL 2 RL: the first is an error, unless the reader is lenient and collects them."""

    def __init__(self, lenient: bool) -> None:
        self.lenient = lenient
        self.axioms: dict[LeftOut, None] = {}

    def refuse(self, axiom: str, error: OntologyError) -> None:
        """Collect an axiom; raises the error unless the reader is lenient."""
        if not self.lenient:
            raise error
        self.axioms[LeftOut(axiom, str(error))] = None


class _Reader:
    """Translates the axioms of one ontology one by one."""

    def __init__(self, triples: list[Triple], graph: OntologyGraph, classes: Classes, refusals: _Refusals) -> None:
        self._triples, self._graph, self.classes, self._refusals = triples, graph, classes, refusals
        self._noted = noted_nodes(graph, triples)
        self.imports: list[Term] = []

    def rules(self) -> Iterator[Rule]:
        """The rules of all axioms, and those that detect inconsistent facts."""
        for triple in self._triples:
            yield from self._attempt(triple)
        try:
            yield from filter(self._is_about_terms, self.classes.pending())
        except OntologyError as error:
            raise OntologyError(f"{error}; {_LENIENT}") from error
        mentioned = {term for triple in self._triples for term in triple}
        if NOTHING in mentioned:
            yield member(X, NOTHING).violation("cls-nothing2", "owl:Nothing has no members", X)
        if self.classes.same_as or self.classes.beyond or {SAME, DIFFERENT} & mentioned:
            apart = TriplePattern(X, DIFFERENT, Y)
            same = TriplePattern(X, SAME, Y), TriplePattern(Y, SAME, X)
            # Both directions, as data may state owl:sameAs without the rules that make it symmetric.
            for patterns in (*((pattern, apart) for pattern in same), (TriplePattern(X, DIFFERENT, X),)):
                yield Body(patterns).violation("eq-diff1", "owl:differentFrom", X)

    def _attempt(self, triple: Triple) -> list[Rule]:
        """The rules of a triple of the ontology; OntologyError with its axiom unless the reader is lenient."""
        subject, predicate, end = triple
        axiom = self._graph.text(subject, predicate, end)
        if subject in self._noted:
            return []
        try:
            return [rule for rule in self._axiom(subject, predicate, end, axiom) if self._is_about_terms(rule)]
        except OntologyError as error:
            if not self._refusals.lenient:
                raise OntologyError(f"the axiom {axiom}: {error}; {_LENIENT}") from error
            self._refusals.refuse(axiom, error)
            return []

    def _axiom(self, subject: Term, predicate: Term, end: Term, axiom: str) -> Iterable[Rule]:
        classes = self.classes
        match predicate.removeprefix(f"<{OWL}").removeprefix(f"<{RDFS}").removesuffix(">"):
            case "subClassOf":
                return self._subclass(subject, end, axiom)
            case "equivalentClass":
                return self._both_ways(subject, end, axiom)
            case "subPropertyOf" | "equivalentProperty" as kind:
                return hierarchy(classes, kind, subject, end, axiom)
            case "inverseOf":
                # A blank subject is a property expression (``[ owl:inverseOf p ]``), which ``pair`` reads where it is
                # used.
                return [] if is_blank(subject) else hierarchy(classes, "inverseOf", subject, end, axiom)
            case "domain":  # prp-dom
                return classes.conclusions(end, Body((self._graph.pair(subject, X, Y),)), axiom)
            case "range":  # prp-rng; of a datatype, dt-not-type
                return classes.conclusions(end, Body((self._graph.pair(subject, Y, X),)), axiom, X, Y)
            case "propertyChainAxiom":
                return chain(classes, subject, list(self._graph.items(end)), axiom)
            case "hasKey":
                return key(classes, subject, list(self._graph.items(end)), axiom)
            case "disjointWith":
                return disjoint_classes(classes, (subject, end), "cax-dw", axiom)
            case "propertyDisjointWith":
                return disjoint_properties(classes, (subject, end), "prp-pdw", axiom)
            case _:
                return self._other(subject, predicate, end, axiom)

    def _other(self, subject: Term, predicate: Term, end: Term, axiom: str) -> Iterable[Rule]:
        if predicate == RDF_TYPE:
            return self._kind(subject, end, axiom)
        if predicate in FORMS and is_iri(subject):
            return self._defined(subject, predicate, axiom)
        if predicate in _PARTS or (predicate.startswith(_FACETS) and is_blank(subject)):
            return []
        if predicate == f"<{OWL}imports>":
            # An imported ontology that was read into the same graph declares itself there.
            if not self._graph.has_type(end, "Ontology"):
                self.imports.append(end)
            return []
        if predicate == f"<{OWL}sourceIndividual>":
            return self._denied(subject, end)
        if is_annotation(self._graph, subject, predicate):
            return []
        # A fact about individuals in the ontology: it holds without conditions.
        if predicate in (SAME, DIFFERENT) or self._graph.values(predicate, RDF_TYPE):
            return [Rule(TriplePattern(subject, predicate, end), (), axiom)]
        if predicate.startswith(VOCABULARY):
            raise OntologyError(f"{short(predicate)} is outside OWL 2 RL")
        raise OntologyError(f"{predicate} is not a declared property: give it a type, owl:ObjectProperty for instance")

    def _kind(self, subject: Term, end: Term, axiom: str) -> Iterable[Rule]:
        """The rules of an rdf:type triple: a property's characteristic, an n-ary axiom, or an individual's class."""
        name = end.removeprefix(f"<{OWL}").removesuffix(">")
        if end in (*_KINDS, THING) or self._graph.has_type(subject, "Ontology"):
            return []
        if name in CHARACTERISTICS:
            return characteristic(self.classes, name, subject, axiom)
        if name in ("AllDisjointClasses", "AllDisjointProperties", "AllDifferent"):
            return self._all_apart(name, subject)
        if end.startswith(VOCABULARY) and end != NOTHING:
            raise OntologyError(f"{short(end)} is outside OWL 2 RL")
        return self.classes.conclusions(end, Body(fixed=((X, subject),)), axiom)

    def _all_apart(self, name: str, subject: Term) -> list[Rule]:
        """Rules cax-adc, prp-adp, eq-diff2 and eq-diff3."""
        graph, text = self._graph, f"{self._graph.text(subject)} a owl:{name}"
        lists = [f"<{OWL}members>", f"<{OWL}distinctMembers>"]
        several = [member for part in lists if graph.values(subject, part) for member in graph.members(subject, part)]
        if name == "AllDisjointClasses":
            return disjoint_classes(self.classes, several, "cax-adc", text)
        if name == "AllDisjointProperties":
            return disjoint_properties(self.classes, several, "prp-adp", text)
        return all_different(several, text)

    def _denied(self, axiom: Term, subject: Term) -> list[Rule]:
        """Rules prp-npa1 and -2: a negative property assertion, which the fact that it denies violates."""
        graph, on = self._graph, self._graph.one(axiom, f"<{OWL}assertionProperty>")
        parts = (f"<{OWL}targetIndividual>", f"<{OWL}targetValue>")
        values = [value for part in parts for value in graph.values(axiom, part)]
        text = graph.text(axiom)
        return [Body((graph.pair(on, subject, value),)).violation("prp-npa1", text, subject) for value in values]

    def unnamed(self) -> Iterator[Rule]:
        """The rules that conclude membership of the ontology's unnamed classes."""
        for node in [
            predicate for predicate in self._graph.predicates if is_blank(predicate) and self.classes.forms(predicate)
        ]:
            try:
                bodies = self.classes.described(node)
            except OntologyError:
                continue
            for body in bodies:
                # Without patterns it is an enumeration of individuals, or everything.
                if body.patterns:
                    yield body.rule(TriplePattern(X, RDF_TYPE, node), f"members of {node}")

    def _subclass(self, lower: Term, upper: Term, axiom: str) -> list[Rule]:
        return [rule for body in self._bodies(lower) for rule in self.classes.conclusions(upper, body, axiom)]

    def _bodies(self, node: Term) -> list[Body]:
        """The conditions of a class; OntologyError if there are none, so that everything would be a member."""
        bodies = self.classes.conditions(node)
        if any(not (body.patterns or body.fixed) for body in bodies):
            raise OntologyError("it would apply to every resource: name the classes that it applies to")
        return bodies

    def _both_ways(self, one: Term, two: Term, axiom: str) -> list[Rule]:
        """Equivalent classes (cax-eqc1 and -2); a lenient reader keeps a direction that OWL 2 RL allows."""
        rules_: list[Rule] = []
        for lower, upper in ((one, two), (two, one)):
            try:
                rules_ += self._subclass(lower, upper, axiom)
            except OntologyError as error:
                self._refusals.refuse(axiom, OntologyError(f"{self._graph.text(lower)} as its subclass: {error}"))
        return rules_

    def _defined(self, node: Term, form: Term, axiom: str) -> list[Rule]:
        """A named class with a constructor of its own: the rules in each direction that OWL 2 RL allows."""
        if form not in IS_CONDITION | IS_CONCLUSION:
            raise OntologyError(f"{short(form)} is outside OWL 2 RL")
        rules_: list[Rule] = []
        if form in IS_CONDITION:
            bodies = self.classes.described_by(node, form)
            rules_ += [body.rule(TriplePattern(X, RDF_TYPE, node), axiom) for body in bodies]
        if form in IS_CONCLUSION:
            rules_ += self.classes.concluded_by(node, form, member(X, node), axiom)
        if form not in IS_CONDITION & IS_CONCLUSION:
            self.classes.silent[axiom] = None
        return rules_

    def _is_about_terms(self, rule: Rule) -> bool:
        """True if the rule names its classes; OntologyError if it uses rdf:type like a property of the ontology."""
        for pattern in (rule.head, *rule.body):
            if pattern.predicate == RDF_TYPE and not is_class(pattern):
                raise OntologyError("it is about rdf:type itself: state it for classes, or leave it out")
        return True


def _things(rules: list[Rule]) -> Iterator[Rule]:
    """Every member of a class of the ontology is an owl:Thing."""
    patterns = [pattern for rule in rules for pattern in (rule.head, *rule.body)]
    for term in dict.fromkeys(pattern.object for pattern in patterns if pattern.predicate == RDF_TYPE):
        if term not in (THING, NOTHING):
            head = TriplePattern(X, RDF_TYPE, THING)
            yield Rule(head, (TriplePattern(X, RDF_TYPE, term),), "every member of a class is an owl:Thing")
