from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import count, product

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.formats.canonical import Canonical
from streamgauge.model.algebra import Node, TriplePattern, Var
from streamgauge.model.fact import Fact
from streamgauge.servers.fragments import Quad
from streamgauge.servers.fragments.annotations import AnnotatedForm, PathError, UnknownMethodError, method, methods
from streamgauge.servers.fragments.labels import (
    FIRST,
    LAST,
    PAPER,
    VOCABULARIES,
    Border,
    Label,
    LabelError,
    Style,
    as_labelled,
    read_bounds,
)
from tests.examples import examples

STYLES = [
    Style(name, label, vocabulary, grouped, border)
    for name, label, vocabulary, grouped, border in product(
        methods(), Label, VOCABULARIES.values(), (True, False), Border
    )
]
T, STRING = "<http://example.org/train#%s>", '"%s"'
SUBJECTS = [T % "d1", "<http://example.org/d/2?a=b&c=%25#é>"]
PREDICATES = [T % "delay", T % "platform"]
OBJECTS = [
    T % "p1",
    STRING % "P10S",
    '"a \\"b\\" & \\n"',
    '"x"@en-gb',
    '"42"^^<http://www.w3.org/2001/XMLSchema#integer>',
]


def triples() -> st.SearchStrategy[tuple[str, str, str]]:
    return st.tuples(st.sampled_from(SUBJECTS), st.sampled_from(PREDICATES), st.sampled_from(OBJECTS))


def times(label: Label) -> st.SearchStrategy[tuple[int | None, int | None]]:
    small = st.integers(0, 5)
    ends = st.one_of(st.none(), small.map(lambda at: at * 1500))
    if label is Label.INSTANT:
        return small.map(lambda at: (at, at + 1))
    if label is Label.EXPIRATION:
        return ends.filter(lambda end: end is not None).map(lambda end: (None, end))
    return st.tuples(ends, ends).filter(lambda both: both != (None, None) and (None in both or both[0] < both[1]))


@st.composite
def told(draw, label: Label) -> list[Fact]:
    """Facts as labels can say them; no triple both always and for a time."""
    held = draw(st.dictionaries(triples(), st.lists(times(label), max_size=3, unique=True), max_size=8))
    return [Fact(triple, *item) for triple, result in held.items() for item in result or [(None, None)]]


def names():
    numbers = count(1)
    return lambda _facts: f"n{next(numbers)}"


def annotated(facts: list[Fact], style: Style) -> list[Quad]:
    return [quad for quad, _ in method(style.method).annotate(facts, style, names())]


def named(style: Style) -> str:
    grouped = "grouped" if style.grouped else "apart"
    return f"{style.method}-{style.label}-{style.vocabulary.name}-{grouped}-{style.border}"


@pytest.mark.slow
@examples(100, prove=2000)
@given(style=st.sampled_from(STYLES), data=st.data())
def test_what_is_annotated_is_read_again(style: Style, data: st.DataObject) -> None:
    facts = data.draw(told(style.label))
    quads = annotated(facts, style)
    assert len(quads) == len(set(quads))
    assert Counter(method(style.method).facts(quads, style)) == Counter(facts)


@pytest.mark.slow
@examples(100, prove=2000)
@given(style=st.sampled_from(STYLES), data=st.data())
def test_the_form_finds_exactly_the_facts_with_times(style: Style, data: st.DataObject) -> None:
    facts = data.draw(told(style.label))
    pattern = TriplePattern(
        data.draw(st.sampled_from([Var("s"), *SUBJECTS])),
        data.draw(st.sampled_from([Var("p"), *PREDICATES])),
        data.draw(st.sampled_from([Var("o"), *OBJECTS])),
    )
    rows = evaluated(annotated(facts, style), method(style.method).form(pattern, 3, style), pattern, style)
    assert Counter(rows) == Counter(fact for fact in facts if not fact.static and matches(fact, pattern))


def matches(fact: Fact, pattern: TriplePattern) -> bool:
    nodes = pattern.subject, pattern.predicate, pattern.object
    return all(isinstance(node, Var) or node == term for node, term in zip(nodes, fact.triple, strict=True))


def evaluated(quads: Iterable[Quad], form: AnnotatedForm, pattern: TriplePattern, style: Style) -> list[Fact]:
    """The solutions of a form by pyoxigraph, links held afterwards."""
    store = ox.Store()
    store.load(nquads(quads), format=ox.RdfFormat.N_QUADS)
    where = " ".join(clause(item.nodes) for item in (*form.patterns, *form.also))
    result, canonical = [], Canonical()
    for row in store.query(f"SELECT * {{ {where} }}"):

        def value(node: Node, row=row) -> str:
            return canonical.term(row[node.name]) if isinstance(node, Var) else node

        triple = tuple(value(node) for node in (pattern.subject, pattern.predicate, pattern.object))
        if all(value(link.variable) == link.term(triple) for link in form.links):
            borders = (None if item is None else value(item) for item in (form.initial, form.final))
            result.append(Fact(triple, *read_bounds(*borders, style)))
    return result


def clause(nodes: tuple[Node, Node, Node, Node]) -> str:
    s, p, o, g = (f"?{node.name}" if isinstance(node, Var) else node for node in nodes)
    return f"GRAPH {g} {{ {s} {p} {o} }}" if g else f"{s} {p} {o} ."


def nquads(quads: Iterable[Quad]) -> bytes:
    return "".join(f"{' '.join(quad).rstrip()} .\n" for quad in quads).encode()


@pytest.mark.parametrize("style", STYLES, ids=named)
def test_every_style(style: Style) -> None:
    """One annotation read again, found by its form, and canonical."""
    facts = [Fact((SUBJECTS[1], PREDICATES[0], item), 10, 11) for item in OBJECTS]
    pattern = TriplePattern(Var("s"), PREDICATES[0], Var("o"))
    quads, canonical = annotated(facts, style), Canonical()
    rows = evaluated(quads, method(style.method).form(pattern, 0, style), pattern, style)
    assert (
        set(rows) == set(method(style.method).facts(quads, style)) == {as_labelled(fact, style.label) for fact in facts}
    )
    read = list(ox.parse(nquads(quads), format=ox.RdfFormat.N_QUADS))
    terms = [tuple(canonical.term(term) for term in (quad.subject, quad.predicate, quad.object)) for quad in read]
    assert terms == [quad[:3] for quad in quads]


TRAINS = [Fact((T % f"d{n}", T % "delay", STRING % "0S"), 0, 1000) for n in range(3)]

COSTS = {  # quads for three facts that hold equally long: expiration, interval; grouped, apart
    "graphs": (3 + 1, 3 + 3, 3 + 3, 3 + 9),
    "singleton": (3 + 1 + 1, 3 + 1 + 3, 3 + 3 + 3, 3 + 3 + 9),
    "implicit": (3 + 3 + 1, 3 + 3 + 3, 3 + 3, 3 + 9),
    "reification": (12 + 3, 12 + 9, 12 + 3, 12 + 9),
    "reifiers": (3 + 3 + 1, 3 + 3 + 3, 3 + 3 + 3, 3 + 3 + 9),
}


@pytest.mark.parametrize("name", methods())
def test_costs_in_quads(name: str) -> None:
    styles = [Style(name, label, grouped=grouped) for grouped in (True, False) for label in list(Label)[:2]]
    assert tuple(len(annotated(TRAINS, style)) for style in styles) == COSTS[name]


def test_each_quad_lasts_as_long_as_the_last_of_its_facts() -> None:
    triple = TRAINS[0].triple
    facts = [Fact(triple, 0, 10), Fact(triple, 20, 30), Fact(TRAINS[1].triple, 20, None)]
    style = Style("implicit", Label.INTERVAL, grouped=False)
    ends = dict(method("implicit").annotate(facts, style, names()))
    assert ends[(*triple, "")] == 30
    assert ends[(*TRAINS[1].triple, "")] is None
    assert Counter(ends.values()) == Counter({10: 3, 30: 4, None: 4})


def test_the_prototypes_quads_are_read() -> None:
    """As its server wrote them: flat, with a datatype whose prefix was never expanded."""
    style = Style("graphs", Label.INTERVAL, VOCABULARIES["prototype"], border=Border.INCLUSIVE)
    graph, time = "<http://example.org/graphs#4>", '"2015-12-08T10:20:0%d.000Z"^^<xsd:dateTimeStamp>'
    quads = [
        (T % "d1", T % "delay", STRING % "0S", graph),
        (graph, style.vocabulary.initial, time % 1, ""),
        (graph, style.vocabulary.final, time % 3, ""),
    ]
    at = 1_449_570_000_000
    assert method("graphs").facts(quads, style) == [Fact((T % "d1", T % "delay", STRING % "0S"), at + 1000, at + 3001)]


@pytest.mark.parametrize(
    ("object_", "given"),
    [
        (STRING % "0S", "%220S%22"),
        (T % "p/1", "http%3A%2F%2Fexample.org%2Ftrain%23p%2F1"),
        ('"x y"@en-gb', "%22x%20y%22%40en-gb"),
        ('"1"^^<http://a/b>', "%221%22%5E%5Ehttp%3A%2F%2Fa%2Fb"),
        ("<<( <urn:a> <urn:b> <urn:c> )>>", "%3C%3C%28%20%3Curn%3Aa%3E%20%3Curn%3Ab%3E%20%3Curn%3Ac%3E%20%29%3E%3E"),
    ],
)
def test_an_implicit_graph_is_named_by_the_address_of_its_fragment(object_: str, given: str) -> None:
    """Terms as forms take them (TPF specification, 4.2), expanded as RFC 6570 does."""
    style = Style("implicit", grouped=False, template="http://h/t{?subject,predicate,object,graph}")
    triple = "<urn:s>", "<urn:p>", object_
    (address,) = {quad[0] for quad in annotated([Fact(triple, None, 5)], style)} - {"<urn:s>"}
    assert address == f"<http://h/t?subject=urn%3As&predicate=urn%3Ap&object={given}>"


@pytest.mark.parametrize("name", ["implicit"])
@pytest.mark.parametrize("template", ["http://h/t", "http://h/t{?s,p}", "http://h/t{?s,p,o"])
def test_templates_that_are_none_are_refused(name: str, template: str) -> None:
    with pytest.raises(ValueError, match="is not a template: expected one like"):
        annotated(TRAINS, Style(name, template=template))


@pytest.mark.parametrize("name", methods())
def test_what_labels_cannot_say_is_refused(name: str) -> None:
    with pytest.raises(LabelError, match="does not hold for 1 ms"):
        annotated(TRAINS, Style(name, Label.INSTANT))
    with pytest.raises(LabelError, match="predicate of time labels"):
        annotated([Fact((T % "d", PAPER.expiration, STRING % ""))], Style(name))
    with pytest.raises(LabelError, match="within the years 1 to 9999"):
        annotated([Fact(TRAINS[0].triple, None, LAST + 10)], Style(name))


@pytest.mark.parametrize("name", methods())
def test_a_path_has_no_form(name: str) -> None:
    from streamgauge.model.algebra import Inverse

    with pytest.raises(PathError, match="property path"):
        method(name).form(TriplePattern(Var("s"), Inverse(T % "p"), Var("o")), 0, Style(name))


def test_an_expiration_leaves_out_the_beginning() -> None:
    facts = [Fact(TRAINS[0].triple, 5, 10), Fact(TRAINS[1].triple, FIRST, None)]
    style = Style()
    read = method("graphs").facts(annotated(facts, style), style)
    assert read == [as_labelled(fact, style.label) for fact in facts]
    assert replace(facts[0], initial=None) in read


def test_methods_are_found_by_listing() -> None:
    assert methods() == ("graphs", "implicit", "reification", "reifiers", "singleton")
    with pytest.raises(UnknownMethodError, match="there are graphs, implicit, "):
        method("colours")
