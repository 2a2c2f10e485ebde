"""Paths, named windows, functions, EXISTS anywhere, LIMIT, GROUP_CONCAT and CONSTRUCT against pyoxigraph per report."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyoxigraph as ox
import pytest
from pyspark.sql import DataFrame, SparkSession
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.formats.canonical import parse_term
from streamgauge.formats.stream import SCHEMA
from streamgauge.model import algebra as al
from streamgauge.model.query import StreamWindow, Window
from streamgauge.model.report import DueReport, View
from streamgauge.model.terms import Term, Triple
from streamgauge.query.parser import parse_sparql
from streamgauge.query.printer import sparql
from streamgauge.query.traversal import every_pattern
from streamgauge.spark.answers import SWEPT_REPORTS_MIN, answers, columns, refuse
from streamgauge.spark.compiler import AMBIGUOUS
from streamgauge.spark.failures import JOB_ERRORS
from tests.examples import examples
from tests.spark.test_answers import TOGETHER
from tests.spark.together import together
from tests.sparql import draw, wide
from tests.sparql.pyoxigraph.restated import restated
from tests.sparql.suite import Result, difference, from_pyoxigraph

GRAPHS: tuple[Term | None, ...] = (None, *wide.NAMES)
STREAMS = {name: "urn:default" if name is None else name[1:-1] for name in GRAPHS}
SIMPLE = frozenset({"FILTER", "OPTIONAL", "UNION", "BIND"})


@dataclass(frozen=True)
class Run:
    """Elements (graph, time, triples), a window size for each graph, and the instants of the reports."""

    elements: tuple[tuple[Term | None, int, tuple[Triple, ...]], ...]
    sizes: tuple[int, ...]
    instants: tuple[int, ...]
    static: tuple[Triple, ...] = ()

    @property
    def windows(self) -> tuple[StreamWindow, ...]:
        return tuple(
            StreamWindow(STREAMS[name], Window(size, size), name and name[1:-1])
            for name, size in zip(GRAPHS, self.sizes, strict=True)
        )

    @property
    def due(self) -> tuple[DueReport, ...]:
        return tuple(
            DueReport(at, tuple(View(at - size, at, at - size, at - 1, 1 << 40) for size in self.sizes))
            for at in self.instants
        )

    def store(self, at: int) -> ox.Store:
        """What each graph holds at an instant."""
        store = ox.Store()
        for name, size in zip(GRAPHS, self.sizes, strict=True):
            graph = ox.DefaultGraph() if name is None else parse_term(name)
            if isinstance(graph, ox.NamedNode):
                store.add_graph(graph)
            held = [t for g, time, triples in self.elements if g == name and at - size <= time < at for t in triples]
            for triple in (*held, *(self.static if name is None else ())):
                store.add(ox.Quad(*map(parse_term, triple), graph))
        return store

    def table(self, spark: SparkSession) -> DataFrame:
        rows = [
            (STREAMS[name], time, sequence, position, *triple)
            for sequence, (name, time, triples) in enumerate(self.elements)
            for position, triple in enumerate(triples)
        ]
        data = {name: [row[index] for row in rows] for index, name in enumerate(SCHEMA.names)}
        return spark.createDataFrame(pa.table(data, schema=SCHEMA))


@st.composite
def runs(draws: st.DrawFn) -> Run:
    end = draws(st.sampled_from((12, 24, 80)))
    element = st.tuples(st.sampled_from(GRAPHS), st.integers(0, end), draw.triples(max_size=6))
    elements = draws(st.lists(element, min_size=2, max_size=10))
    sizes = draws(st.tuples(*(st.integers(1, 12) for _ in GRAPHS)))
    slide = draws(st.integers(1, 4))
    return Run(tuple(elements), sizes, tuple(range(1, end + 6, slide)), draws(draw.triples(max_size=6)))


def check(spark: SparkSession, run: Run, form: al.QueryForm, many: int) -> None:
    compare(run, form, answers(spark, run.table(spark), run.due, form, run.static, many, run.windows).collect())


def check_all(spark: SparkSession, cases: Sequence[tuple[Run, al.QueryForm, int]]) -> None:
    """One job answers all cases."""
    tables = {run: run.table(spark) for run in {run for run, _, _ in cases}}
    frames = [
        answers(spark, tables[run], run.due, form, run.static, many, run.windows).toDF(
            "report", *(f"c{index}" for index in range(len(columns(form))))
        )
        for run, form, many in cases
    ]
    for (run, form, _), rows in zip(cases, together(frames), strict=True):
        compare(run, form, rows)


def compare(run: Run, form: al.QueryForm, result: Sequence[tuple]) -> None:
    text, kind = sparql(form), {al.Ask: "boolean", al.Construct: "triples"}.get(type(form), "solutions")
    for index, at in enumerate(run.instants):
        rows = tuple(tuple(row[1:]) for row in result if row[0] == index)
        wanted, got = from_pyoxigraph(run.store(at).query(sparql(restated(form)))), Result(kind, columns(form), rows)
        assert not (told := difference(pieced(wanted), pieced(got))), f"at {at}: {told} of {text}"


def pieced(result: Result) -> Result:
    """The answer with the pieces of its concatenations in order."""
    at = [index for index, name in enumerate(result.variables) if name == "x_concat"]
    rows = [tuple(wide.sorted_pieces(cell) if i in at else cell for i, cell in enumerate(row)) for row in result.rows]
    return Result(result.kind, result.variables, tuple(rows), result.ordered)


QUERIES = {
    "PATH": wide.widened(draw.queries(SIMPLE), frozenset({"PATH"})),
    "EXISTS": wide.widened(draw.queries(SIMPLE | {"EXISTS", "SUBSELECT"}), frozenset({"EXISTS"})),
    "GRAPH": wide.widened(draw.queries(SIMPLE), frozenset({"GRAPH"})),
    "ALL": wide.widened(draw.queries(draw.OPERATORS)),
    "CONCAT": wide.concatenations(SIMPLE),
    "CONSTRUCT": wide.constructs(draw.queries(SIMPLE)),
    "LIMIT": wide.sliced(draw.queries(SIMPLE)),
}
FORMS = st.sampled_from(sorted(QUERIES)).flatmap(QUERIES.__getitem__)


Drawn = tuple[Run, al.QueryForm, int]


def possible(drawn: Drawn) -> bool:
    return refuse(drawn[1]) is None and wide.pyoxigraph_differs(drawn[1]) is None


def is_cut(form: al.QueryForm) -> bool:
    return any(isinstance(pattern, al.Slice) for pattern in every_pattern(form.pattern))


@examples(1, prove=80)
@given(
    st.lists(
        st.tuples(runs(), FORMS, st.sampled_from((0, SWEPT_REPORTS_MIN))).filter(possible),
        min_size=TOGETHER,
        max_size=TOGETHER,
    )
)
def test_drawn(tiny: SparkSession, drawn: list[Drawn]) -> None:
    """One job for all; a cut that ORDER BY leaves open fails a job, so each query with a LIMIT has a job of its own."""
    check_all(tiny, [entry for entry in drawn if not is_cut(entry[1])])
    for run, form, many in drawn:
        if is_cut(form):
            try:
                check(tiny, run, form, many)
            except JOB_ERRORS as error:
                if AMBIGUOUS not in str(error):
                    raise


def link(start: str, name: str, end: str) -> Triple:
    return f"<urn:{start}>", f"<urn:{name}>", f"<urn:{end}>"


def number(start: str, value: int) -> Triple:
    return f"<urn:{start}>", "<urn:v>", f'"{value}"^^<http://www.w3.org/2001/XMLSchema#integer>'


CHAIN = Run(
    elements=(
        *(
            (None, at, (link(f"n{at % 5}", "p", f"n{at % 4 + 1}"), number(f"n{at % 5}", at * 7 % 11)))
            for at in range(80)
        ),
        *((wide.NAMES[0], at, (link(f"n{at % 3}", "q", f"n{at % 7}"),)) for at in range(0, 80, 2)),
        *((wide.NAMES[1], at, (link(f"n{at % 4}", "p", f"n{at % 5}"), number("n1", at % 3))) for at in range(0, 80, 3)),
    ),
    sizes=(3, 2, 4),
    instants=tuple(range(1, 84)),
    static=(
        link("A", "sub", "B"),
        link("B", "sub", "C"),
        link("C", "sub", "A"),
        link("n1", "a", "A"),
        link("n2", "a", "B"),
    ),
)
CASES = (
    "SELECT * { ?x <urn:p>+ ?y }",
    "SELECT * { ?x <urn:p>* <urn:n2> }",
    "SELECT * { ?x (<urn:p>|^<urn:p>)? ?y . ?y <urn:v> ?w }",
    "SELECT ?x ?c { ?x <urn:a>/<urn:sub>* ?c . ?x <urn:p> ?y }",
    "SELECT ?x ?y { ?x !(<urn:p>|^<urn:v>) ?y }",
    "SELECT ?x { ?x (<urn:p>/<urn:p>)+ ?x }",
    "SELECT ?x ?z { GRAPH <urn:x:w1> { ?x <urn:q> ?y } ?y <urn:p> ?z }",
    "SELECT ?g ?x ?v { GRAPH ?g { ?x ?p ?v OPTIONAL { ?v <urn:q>+ ?x } } }",
    "SELECT ?x { ?x <urn:p> ?y OPTIONAL { ?x <urn:v> ?v FILTER NOT EXISTS { ?y <urn:v> ?w FILTER(?w > ?v) } } "
    "FILTER(BOUND(?v) || EXISTS { ?y <urn:p> ?x }) }",
    "SELECT ?x ?f { ?x <urn:v> ?v BIND(EXISTS { ?x <urn:p> ?y OPTIONAL { ?y <urn:v> ?w FILTER(?w < ?v) } "
    "FILTER(!BOUND(?w)) } AS ?f) }",
    "SELECT ?x { ?x <urn:p> ?y FILTER EXISTS { SELECT ?x (COUNT(*) AS ?n) { ?x <urn:p> ?z } GROUP BY ?x "
    "HAVING(COUNT(*) > 1) } }",
    "SELECT ?x { ?x <urn:p> ?y FILTER NOT EXISTS { { SELECT (MAX(?w) AS ?m) { ?z <urn:v> ?w } } FILTER(?m > 5) } }",
    "SELECT ?x { ?x <urn:p> ?y FILTER EXISTS { { ?x <urn:v> 0 } UNION "
    "{ ?y <urn:v> ?w FILTER(EXISTS { ?x <urn:p>+ ?x }) } } }",
    "SELECT (SUM(IF(EXISTS { ?x <urn:p> ?x }, 1, 0)) AS ?n) (COUNT(?v > 4) AS ?c) { ?x <urn:v> ?v }",
    "SELECT ?x ?v { ?x <urn:v> ?v } ORDER BY DESC(?v) ?x LIMIT 2",
    "SELECT ?x ?y { ?x <urn:p> ?y { SELECT DISTINCT ?x { ?x <urn:p> ?z } ORDER BY ?x OFFSET 1 LIMIT 1 } }",
    "SELECT ?x { ?x <urn:p> ?y MINUS { ?x <urn:v> ?v FILTER(?v > 5) } }",
    "SELECT DISTINCT ?x { { ?x <urn:p> ?y } UNION { ?y <urn:p> ?x } }",
    "ASK { ?x <urn:p>+ ?x }",
    "CONSTRUCT { ?x <urn:near> ?y . [] <urn:of> ?x } { ?x <urn:p>/<urn:p> ?y }",
)


@pytest.mark.heavy("three plans over 83 reports")
@pytest.mark.parametrize("first", [0, *(pytest.param(first, marks=pytest.mark.prove) for first in range(1, 8))])
def test_cases_over_intervals(tiny: SparkSession, first: int) -> None:
    """Every eighth case in the suite: a plan takes a second to make."""
    check_all(tiny, [(CHAIN, parse_sparql(text), 0) for text in CASES[first::8]])


@pytest.mark.prove
@pytest.mark.parametrize("text", CASES)
def test_cases_report_by_report(tiny: SparkSession, text: str) -> None:
    check(tiny, CHAIN, parse_sparql(text), SWEPT_REPORTS_MIN)


def test_a_cut_that_order_by_leaves_open_is_an_error(tiny: SparkSession) -> None:
    with pytest.raises(JOB_ERRORS, match=AMBIGUOUS):
        check(tiny, CHAIN, parse_sparql("SELECT ?x ?y { ?x <urn:p> ?y } ORDER BY ?z LIMIT 1"), SWEPT_REPORTS_MIN)


@pytest.mark.parametrize(
    ("condition", "named"),
    [
        ("?x = RAND()", r"RAND\(\)"),
        ("EXISTS { ?y ?q ?z FILTER(?z = STRUUID()) }", r"STRUUID\(\)"),
        ("EXISTS { ?y ?q ?z BIND(1 AS ?x) }", r"EXISTS that assigns \?x, a variable of the pattern around it"),
        ("EXISTS { { SELECT (COUNT(*) AS ?x) { ?y ?q ?z } } }", r"EXISTS that assigns \?x"),
    ],
)
def test_refused_by_name(tiny: SparkSession, condition: str, named: str) -> None:
    with pytest.raises(ValueError, match=f"spark does not evaluate {named}"):
        check(tiny, CHAIN, parse_sparql(f"SELECT * {{ ?x ?p ?y FILTER({condition}) }}"), SWEPT_REPORTS_MIN)


def test_what_a_subquery_hides_is_its_own(tiny: SparkSession) -> None:
    form = parse_sparql("SELECT * { ?x <urn:p> ?y FILTER EXISTS { SELECT ?y { ?y ?q ?z BIND(1 AS ?x) } } }")
    assert refuse(form) is None
    check(tiny, CHAIN, form, SWEPT_REPORTS_MIN)


SPECIFIED = (  # where pyoxigraph answers otherwise than SPARQL 1.1 says
    ("EXISTS { ?x <urn:p> ?z MINUS { ?x <urn:v> ?w } }", True),  # 18.6: a value put for ?x is not a shared variable
    ("EXISTS { VALUES ?k { 7 } ?k <urn:p>* ?k }", True),  # 18.6: ?k is a constant, which reaches itself
    ("EXISTS { VALUES ?l { 7 } ?l <urn:p>* ?l }", False),  # 9.3: a variable ranges over the nodes of the graph
    ("EXISTS { { SELECT (COUNT(1 / 0) AS ?n) { ?a <urn:p> ?b } } FILTER(?n = 0) }", True),  # 18.5.1.2: no error counts
)


def test_as_sparql_says(tiny: SparkSession) -> None:
    """One job for all; each is right by itself."""
    seven = '"7"^^<http://www.w3.org/2001/XMLSchema#integer>'
    run = Run(((None, 0, (link("s", "p", "o"), link("s", "v", "o"))),), (1, 1, 1), (1,))
    stream = run.table(tiny)
    frames = [
        answers(tiny, stream, run.due, parse_sparql(text), run.static, SWEPT_REPORTS_MIN, run.windows)
        for text in (f"SELECT ?x ?k {{ ?x <urn:p> ?y VALUES ?k {{ 7 }} FILTER {item} }}" for item, _ in SPECIFIED)
    ]
    assert together(frames) == [[(0, "<urn:s>", seven)] if holds else [] for _, holds in SPECIFIED]
