"""Contents looked at whole: pyoxigraph's answers at every look, and the W3C SPARQL 1.1 tests."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from streamgauge.incremental import (
    SnapshotContents,
    Snapshots,
    id_joins,
    list_joins,
    ordered_rows,
    refuse,
    snapshot,
)
from streamgauge.incremental.crossovers import BY_NUMBERS, FEW_ROWS
from streamgauge.incremental.drivers.content import WindowContent
from streamgauge.incremental.plan import unheard
from streamgauge.query import QueryError, parse_sparql
from streamgauge.query.instants import uses_now
from streamgauge.query.printer import sparql
from tests.examples import examples
from tests.incremental.evaluation import Evaluator
from tests.incremental.test_bands import CONDITIONS, NUMBERS, VALUES, typed
from tests.incremental.test_evaluator import OPERATORS, answer, reference
from tests.sparql import draw
from tests.sparql.suite import Result, cases, difference
from tests.sparql.wide import pyoxigraph_differs

LEASTS = st.sampled_from([0, 8, BY_NUMBERS])
"""Contents by the numbers of their terms, now one and now the other, as terms."""


class Looked:
    """Snapshots over a content that the test replaces; ``least`` triples are joined by numbers."""

    def __init__(self, form, names=(), least=BY_NUMBERS):
        self.held = {name: WindowContent(unheard, unheard) for name in (None, *names)}
        self.contents = SnapshotContents(again=True, least=least, in_columns=True)
        self.evaluator, self.time = Snapshots(form, self.contents, names=names), 0
        for name, content in self.held.items():
            self.contents.bind(name, content)

    def hold(self, triples, graph=None):
        self.time += 1
        self.held[graph].drop(self.time)
        self.held[graph].enter(self.time, tuple(triples), None)

    def look(self, triples):
        self.hold(triples)
        self.contents.look()
        delta = self.evaluator.settle()
        self.contents.release()
        return delta

    def rows(self):
        """The rows at another look at what is held."""
        self.contents.look()
        rows = self.evaluator.rows()
        self.contents.release()
        return rows


PLAIN = [operators - {"EXISTS"} for operators in OPERATORS]
"""pyoxigraph lets the pattern of EXISTS in a branch of UNION take variables that are only joined with the branch."""


@pytest.mark.slow
@pytest.mark.parametrize("operators", PLAIN, ids=lambda names: "+".join(sorted(names)) or "BGP")
def test_every_look_gives_what_pyoxigraph_says(operators):
    @examples(8, prove=2000)
    @given(draw.queries(operators), st.lists(draw.triples(max_size=12), min_size=1, max_size=4), LEASTS)
    def check(form, contents, least):
        assume(pyoxigraph_differs(form) is None)
        looked, total = Looked(form, (), least), Counter()
        for triples in contents:
            total.update(looked.look(triples + triples[:2]))
            assert not difference(reference(form, set(triples)), answer(looked.evaluator)), sparql(form)
            assert {row: count for row, count in total.items() if count} == looked.evaluator.solutions()
            assert Counter(looked.rows()) == looked.evaluator.solutions()

    check()


SHAPES = [
    "SELECT ?a ?c { ?a <urn:p> ?b . ?b <urn:p> ?c }",
    "SELECT ?a { ?a <urn:p> ?b . ?b <urn:q> ?c . ?c ?p ?a }",
    "SELECT ?a ?p ?q { ?a ?p ?b . ?b ?q ?a }",
    "SELECT ?a ?x { ?a <urn:p> <urn:1> . ?x <urn:q> ?x }",
    "SELECT ?a ?b ?x ?y { ?a <urn:p> ?b . ?x <urn:q> ?y . <urn:0> <urn:q> <urn:1> }",
    "SELECT ?b { ?a <urn:p> ?b . ?a <urn:q> ?c . ?c <urn:p> ?d . FILTER(?b != ?d) }",
    "SELECT (COUNT(*) AS ?n) { ?a <urn:p> ?b . ?c <urn:p> ?b . ?a ?p ?c }",
    "ASK { <urn:0> <urn:p> <urn:1> . <urn:1> <urn:p> <urn:2> }",
]
NODES = st.sampled_from([f"<urn:{n}>" for n in range(4)])
EDGES = st.lists(st.tuples(NODES, st.sampled_from(["<urn:p>", "<urn:q>"]), NODES), max_size=20)


@pytest.mark.slow
@pytest.mark.parametrize("text", SHAPES)
def test_joins_over_few_nodes(text):
    """Keys of one and two columns, with one and several values, cycles, products, loops, constants."""

    @given(EDGES, EDGES, LEASTS)
    def check(one, two, least):
        form = parse_sparql(text)
        looked, changing = Looked(form, (), least), Evaluator(form)
        looked.look(one)
        looked.look(two)
        changing.enter(two)
        assert looked.evaluator.solutions() == dict(changing.answer())
        assert Counter(looked.rows()) == Counter(changing.rows()) == changing.answer()

    check()


KEYED = [
    "?s <urn:k> ?k ; <urn:v> ?v . ?o <urn:k> ?k ; <urn:w> ?w FILTER({})",
    "?s <urn:k> ?k ; <urn:v> ?v . ?o <urn:k> ?k ; <urn:w> ?w FILTER(?s != ?o) FILTER({})",
    "?s <urn:k> ?k ; <urn:v> ?v . ?o <urn:k> ?k ; <urn:w> ?w ; <urn:l> ?l . ?s <urn:l> ?l FILTER({})",
    "?s <urn:k> ?k ; <urn:v> ?v . ?o <urn:k> ?k ; <urn:w> ?w ; <urn:v> ?x FILTER({}) FILTER(?v + ?w > ?x)",
]


@st.composite
def crowds(draw):
    """Subjects with two keys, whose values are few, of one kind or of all."""
    kind = draw(st.sampled_from([typed("integer", 0, 1, 2, 3), typed("float", 0, "0.5", 1, 2), NUMBERS, VALUES]))
    values = st.sampled_from(draw(st.lists(st.sampled_from(kind), min_size=1, max_size=5)))
    keys = st.sampled_from(["<urn:x>", "<urn:x>", "<urn:y>"])
    asked = {"<urn:k>": keys, "<urn:l>": keys, "<urn:v>": values, "<urn:w>": values}
    return [
        (f"<urn:{subject}>", name, draw(drawn))
        for subject in draw(st.sampled_from(["ab", "abcd", "abcdefg"]))
        for name, drawn in asked.items()
        if draw(st.integers(0, 7))
    ]


@pytest.mark.slow
@examples(200, prove=4000)
@given(
    st.sampled_from(KEYED),
    st.sampled_from(CONDITIONS),
    crowds(),
    st.sampled_from([0, BY_NUMBERS]),
    st.sampled_from([(-1, False), (FEW_ROWS, True), (FEW_ROWS, False)]),
)
def test_pairs_within_a_comparison_are_those_of_all_pairs(query, condition, triples, least, searched):
    """Beside joins that follow each change: rows of one key are searched for by their values, however few there are;
    pairs are tested by searches; pairs are tested one by one.
    """
    form = parse_sparql(f"SELECT * {{ {query.format(condition)} }}")
    looked, changing = Looked(form, (), least), Evaluator(form)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshot, "FEW_ROWS", searched[0])
        patch.setattr(ordered_rows.ValueSpans, "worth", lambda *_: searched[1])
        looked.look(triples)
    changing.enter(dict.fromkeys(triples))
    assert looked.evaluator.solutions() == dict(changing.answer())


@pytest.mark.parametrize("least", [0, BY_NUMBERS])
def test_many_rows_of_one_key_are_not_paired(least, monkeypatch):
    """With n rows of a key on both sides, of which none passes beside another, no pair is made."""
    form = parse_sparql("SELECT ?s ?o { ?s <urn:k> ?k ; <urn:v> ?v . ?o <urn:k> ?k ; <urn:v> ?w FILTER(?v - ?w > 98) }")
    made = []
    within = list_joins.pairs_within
    for module in (list_joins, id_joins):
        monkeypatch.setattr(module, "pairs_within", lambda *given: (made.append(result := within(*given)), result)[1])
    value = '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    looked = Looked(form, (), least)
    looked.look(
        [
            (f"<urn:{n}>", *item)
            for n in range(300)
            for item in (("<urn:k>", "<urn:x>"), ("<urn:v>", value.format(n % 99)))
        ]
    )
    assert looked.evaluator.solutions() == {}
    assert made == [([], [])]


def test_a_look_holds_nothing_of_the_one_before():
    looked = Looked(parse_sparql("SELECT ?x { { ?x <urn:p> ?y } MINUS { ?x <urn:q> ?y } }"))
    looked.look([("<urn:a>", "<urn:q>", "<urn:b>")])
    looked.look([("<urn:a>", "<urn:p>", "<urn:b>")])
    assert looked.evaluator.solutions() == {("<urn:a>",): 1}
    looked.look([])
    assert looked.evaluator.solutions() == {}


@pytest.mark.slow
def test_every_w3c_test_that_is_not_refused_passes(shared_data):
    wrong = {}
    for case in cases(shared_data / "w3c-sparql11"):
        try:
            form = parse_sparql(case.query)
            if refuse(form) or uses_now(form):  # the instant is fed by what makes reports (test_w3c.py)
                continue
        except QueryError:
            continue
        if told := evaluated(case):
            wrong[case.name] = told
    assert not wrong


def evaluated(case):
    """What differs when half of the data was looked at before."""
    looked = Looked(parse_sparql(case.query), tuple(case.graphs), len(case.data) // 2 + 1)
    for name, triples in case.graphs.items():
        looked.hold(triples, name)
    looked.look(case.data[: len(case.data) // 2])
    looked.look(case.data)
    rows = tuple(Counter(looked.evaluator.solutions()).elements())
    return difference(
        replace(case.expected, ordered=False), Result(case.expected.kind, looked.evaluator.variables, rows)
    )


@pytest.mark.parametrize(
    ("query", "numbered"), [("?s <urn:k> ?k ; <urn:v> ?v", False), ("?s <urn:k> ?k . ?o <urn:k> ?k", True)]
)
def test_elements_are_joined_by_numbers_once_joins_multiply_them(query, numbered):
    form = parse_sparql(f"SELECT * {{ {query} }}")
    looked, changing = Looked(form), Evaluator(form)
    looked.contents = looked.contents.__class__(again=True, least=0)
    looked.evaluator = Snapshots(form, looked.contents)
    looked.contents.bind(None, looked.held[None])
    triples = [(f"<urn:{n}>", *more) for n in range(30) for more in (("<urn:k>", f"<urn:k{n % 3}>"), ("<urn:v>", "1"))]
    changing.enter(triples)
    for _ in range(3):
        looked.look(triples)
        assert looked.evaluator.solutions() == changing.answer()
    assert (looked.contents._numbers is not None) is numbered


def test_relations_that_differ_in_a_constant_find_the_same_as_alone():
    forms = [parse_sparql(f"SELECT * {{ ?s <urn:k> {k} ; <urn:v> ?v }}") for k in ("<urn:a>", "<urn:b>", "<urn:none>")]
    forms.append(
        parse_sparql("SELECT * { <urn:0> <urn:k> ?k . <urn:1> <urn:k> <urn:b> . ?s ?p <urn:a> . ?t ?q <urn:b> }")
    )
    triples = [
        (f"<urn:{n}>", *more) for n in range(9) for more in (("<urn:k>", f"<urn:{'ab'[n % 2]}>"), ("<urn:v>", "1"))
    ]
    contents, content = SnapshotContents(), WindowContent(unheard, unheard)
    together = [Snapshots(form, contents) for form in forms]
    contents.bind(None, content)
    content.enter(0, tuple(triples), None)
    contents.look()
    assert [item.answer() for item in together] == [alone(form, triples) for form in forms]


def alone(form, triples):
    evaluator = Evaluator(form)
    evaluator.enter(triples)
    return evaluator.answer()
