"""Axioms about properties, and about which things are the same, as rules (OWL 2 Profiles, 4.3, tables 4, 5 and 7)."""

from collections.abc import Iterator, Sequence
from itertools import combinations, product
from typing import Final

from streamgauge.model.algebra import TriplePattern, Var
from streamgauge.model.terms import Term
from streamgauge.reasoning.expressions import Body, Classes, X, member
from streamgauge.reasoning.graph import NOTHING, OWL
from streamgauge.reasoning.rules import SAME, OntologyError, Rule

Y: Final = Var("y")
_Z: Final = Var("z")
_P, _Q = Var("p"), Var("q")
DIFFERENT: Final[Term] = f"<{OWL}differentFrom>"


def hierarchy(classes: Classes, kind: str, one: Term, two: Term, axiom: str) -> list[Rule]:
    """Rules prp-spo1, prp-eqp1 and -2, prp-inv1 and -2."""
    pair = classes.graph.pair
    ends = (Y, X) if kind == "inverseOf" else (X, Y)
    lower, upper = pair(one, X, Y), pair(two, *ends)
    rules = [Rule(upper, (lower,), axiom)]
    return rules if kind == "subPropertyOf" else [*rules, Rule(lower, (upper,), axiom)]


def domain(classes: Classes, on: Term, end: Term, axiom: str) -> list[Rule]:
    """Rule prp-dom."""
    return classes.conclusions(end, Body((classes.graph.pair(on, X, Y),)), axiom)


def range_(classes: Classes, on: Term, end: Term, axiom: str) -> list[Rule]:
    """Rule prp-rng; of a datatype, dt-not-type."""
    return classes.conclusions(end, Body((classes.graph.pair(on, Y, X),)), axiom, X, Y)


def chain(classes: Classes, on: Term, steps: Sequence[Term], axiom: str) -> list[Rule]:
    """Rule prp-spo2: the pairs of a property that its chain leads to."""
    nodes = [X, *(classes.fresh() for _ in steps)]
    body = tuple(classes.graph.pair(step, nodes[at], nodes[at + 1]) for at, step in enumerate(steps))
    return [Rule(classes.graph.pair(on, X, nodes[-1]), body, axiom)] if steps else []


def key(classes: Classes, node: Term, on: Sequence[Term], axiom: str) -> list[Rule]:
    """Rule prp-key: members of a class with the same values of all properties are the same."""
    values = [classes.fresh() for _ in on]
    links = [
        Body(tuple(classes.graph.pair(each, at, value) for each, value in zip(on, values, strict=True)))
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
            return classes.alike((Y, _Z), Body((pair(on, X, Y), pair(on, X, _Z))), ("prp-fp", axiom), X, on)
        case "InverseFunctionalProperty":
            return classes.alike((X, _Z), Body((pair(on, X, Y), pair(on, _Z, Y))), ("prp-ifp", axiom), X)
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
    pair = classes.graph.pair
    return [Body((pair(one, X, Y), pair(two, X, Y))).violation(name, axiom, X) for one, two in combinations(several, 2)]


def all_different(several: Sequence[Term], axiom: str) -> list[Rule]:
    """Rules eq-diff2 and eq-diff3: no two of the individuals are the same."""
    return [
        Body((TriplePattern(one, SAME, two),)).violation("eq-diff2", axiom, one)
        for pair in combinations(several, 2)
        for one, two in (pair, pair[::-1])
    ]


def denied(classes: Classes, subject: Term, on: Term, value: Term, axiom: str) -> list[Rule]:
    """Rules prp-npa1 and -2: a pair is not in a property."""
    return [Body((classes.graph.pair(on, subject, value),)).violation("prp-npa1", axiom, subject)]


def nothing() -> Rule:
    """Rule cls-nothing2: no resource is a member of owl:Nothing."""
    return member(X, NOTHING).violation("cls-nothing2", "owl:Nothing has no members", X)


def different() -> list[Rule]:
    """Rule eq-diff1, in both directions of owl:sameAs, and what is different from itself (eq-ref)."""
    said = "owl:differentFrom"
    apart = TriplePattern(X, DIFFERENT, Y)
    return [
        Body((TriplePattern(X, SAME, Y), apart)).violation("eq-diff1", said, X),
        Body((TriplePattern(Y, SAME, X), apart)).violation("eq-diff1", said, X),
        Body((TriplePattern(X, DIFFERENT, X),)).violation("eq-diff1", said, X),
    ]


def equality() -> Iterator[Rule]:
    """Rules eq-sym, eq-trans, eq-rep-s, eq-rep-p and eq-rep-o; eq-ref is left to whoever asks."""
    same, fact = TriplePattern(X, SAME, Y), TriplePattern(X, _P, _Z)
    yield Rule(TriplePattern(Y, SAME, X), (same,), "eq-sym")
    yield Rule(TriplePattern(X, SAME, _Z), (same, TriplePattern(Y, SAME, _Z)), "eq-trans")
    yield Rule(TriplePattern(Y, _P, _Z), (same, fact), "eq-rep-s")
    yield Rule(TriplePattern(X, _Q, _Z), (TriplePattern(_P, SAME, _Q), fact), "eq-rep-p")
    yield Rule(TriplePattern(_Z, _P, Y), (same, TriplePattern(_Z, _P, X)), "eq-rep-o")
