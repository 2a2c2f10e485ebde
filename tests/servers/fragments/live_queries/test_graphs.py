"""GRAPH is over the data's own named graphs: those that are annotations are not among them; both plans agree."""

import asyncio
from dataclasses import replace
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from streamgauge.model import algebra as al
from streamgauge.model.fact import Fact
from streamgauge.query import parse_sparql
from streamgauge.query.printer import sparql
from streamgauge.query.traversal import every_pattern
from streamgauge.servers.fragments.annotations import methods
from streamgauge.servers.fragments.client import LinkedDataError
from streamgauge.servers.fragments.labels import Label, Style
from streamgauge.servers.fragments.live_queries import live_query
from streamgauge.servers.fragments.live_queries.incremental import MAX_GRAPHS, IncrementalPlan
from streamgauge.servers.fragments.live_queries.poll_loop import Failed
from streamgauge.servers.fragments.live_queries.watch import watch
from tests.examples import examples
from tests.servers.fragments.live_queries import simulated
from tests.servers.fragments.live_queries.fakes import FakeSource, FakeWeb
from tests.servers.fragments.live_queries.simulated import BASE, Served, Wire, run
from tests.servers.fragments.live_queries.test_plans import START, facts, plans, shown
from tests.sparql import draw
from tests.sparql.pyoxigraph.restated import restated
from tests.sparql.suite import Case, Result, difference, evaluate
from tests.sparql.wide import NAMES, pyoxigraph_differs, widened

FORMS = widened(draw.queries(draw.OPERATORS), frozenset(("GRAPH",)))
NAMED = st.fixed_dictionaries({}, optional=dict.fromkeys(NAMES, draw.triples(max_size=8)))


def expected(form, held, named, at, style):
    """The definition: pyoxigraph over what holds and the named graphs, facts too where facts are in graphs."""
    triples = {fact.triple for fact in held if fact.holds(at)}
    if style.method == "graphs":
        triples.update(*named.values())
    graphs = {name: rows for name, rows in named.items() if rows}
    return evaluate(Case("drawn", "", sparql(restated(form)), tuple(triples), graphs, Result("solutions", (), ())))


def takes_all_as_graphs(form, states):
    """Whether pyoxigraph counts, or looks into another graph, in one that is not there: to it, that is an empty one."""
    counts = (
        isinstance(inner, al.Group | al.Graph)
        for item in every_pattern(form.pattern)
        if isinstance(item, al.Graph)
        for inner in every_pattern(item.pattern)
    )
    return any(counts) and not all(named.get(name) for _, named in states for name in NAMES)


@pytest.mark.slow
@examples(12, prove=1000)
@given(st.data(), FORMS, st.lists(st.tuples(facts(), NAMED), min_size=1, max_size=2), st.sampled_from(methods()))
def test_each_poll_of_each_plan_is_the_query_over_facts_and_named_graphs(data, form, states, name):
    assume(pyoxigraph_differs(form) is None)
    assume(any(isinstance(item, al.Graph) for item in every_pattern(form.pattern)))
    assume(not takes_all_as_graphs(form, states))
    style = Style(method=name, label=Label.INTERVAL)
    web = FakeWeb(START)
    sources = [FakeSource(web, style), FakeSource(web, style, address="http://other/")]
    asking = list(plans(form, sources, style, web))

    async def polls():
        for held, named in states:
            sources[0].put(held, {graph: rows[::2] for graph, rows in named.items()})
            sources[1].put((), {graph: rows[1::2] for graph, rows in named.items()})
            for _ in range(data.draw(st.integers(1, 2))):
                for plan in asking:
                    polled = await plan.poll()
                    told = difference(
                        expected(form, held, named, polled.instant, style), shown(live_query(form), polled)
                    )
                    assert not told, (plan, told, sparql(form))
                web.now += 1000 * data.draw(st.integers(1, 4))

    asyncio.run(polls())


def at_once(text, quads, style, settings):
    """The rows of the first answer over a server's quads."""

    async def first():
        served = Served(style)
        served.add(settings)
        served.dataset.change([], [(quad, None) for quad in quads])
        wire = Wire(served.app, Random(0), (0.0, 0.001))
        answers = watch(text, [f"{BASE}/trains"], web=simulated.web(wire), random=wire.random, style=style)
        answer = await asyncio.wait_for(anext(answers), 10)
        await answers.aclose()
        return set(answer.added), len(wire.log)

    return run(first())


def quads(*lines):
    return [tuple(f"<urn:{name}>" for name in line.split()) for line in lines]


TIMED = [Fact(("<urn:a>", "<urn:p>", "<urn:timed>"), None, simulated.START + 60_000)]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT ?o { GRAPH <urn:g> { ?s <urn:p> ?o } }", {"b"}),
        ("SELECT ?g { GRAPH ?g { ?s <urn:p> ?o } }", {"g", "h"}),
        ("SELECT ?g { GRAPH ?g { ?s ?p ?o } }", {"g", "h", "i"}),
        ("SELECT ?o { ?s <urn:in> ?g GRAPH ?g { ?s <urn:p> ?o } }", {"c"}),
        ("SELECT ?g { GRAPH ?g { } }", {"g", "h", "i"}),
        ("SELECT ?g { GRAPH ?g { OPTIONAL { ?s <urn:none> ?o } } }", {"g", "h", "i"}),
        ("SELECT ?o { GRAPH <urn:nowhere> { SELECT (COUNT(*) AS ?o) { ?s ?p ?o } } }", set()),
        ("SELECT ?o { GRAPH <urn:nowhere> { GRAPH <urn:g> { ?s <urn:p> ?o } } }", set()),
        ("SELECT ?o { GRAPH <urn:h> { GRAPH <urn:g> { ?s <urn:p> ?o } } }", {"b"}),
    ],
)
@pytest.mark.parametrize("name", methods())
def test_named_graphs_are_the_datas_own(text, rows, name):
    own = quads("a p b g", "a p c h", "a q d i")
    result, _ = at_once(text, own, Style(name), [*TIMED, Fact(quads("a in h")[0])])
    assert {row[0] for row in result} == {f"<urn:{row}>" for row in rows}


@pytest.mark.parametrize("facts", [[], [Fact(("<urn:a>", "<urn:p>", "<urn:timed>"), None, START + 5000)]])
@pytest.mark.parametrize("label", [Label.EXPIRATION, Label.INTERVAL])
@pytest.mark.parametrize("name", methods())
def test_a_graph_without_a_label_is_found_whatever_labels_there_are(name, label, facts):
    style, web = Style(method=name, label=label), FakeWeb(START)
    source = FakeSource(web, style)
    source.put(facts, {"<urn:g>": [("<urn:a>", "<urn:p>", "<urn:b>"), ("<urn:a>", "<urn:q>", "<urn:c>")]})
    form = parse_sparql("SELECT ?g ?o { GRAPH ?g { ?s <urn:p> ?o } }")
    for plan in plans(form, [source], style, web):
        assert dict(asyncio.run(plan.poll()).bag) == {("<urn:g>", "<urn:b>"): 1}


def test_a_graph_with_a_label_is_an_annotation():
    style = Style("graphs")
    own = [*quads("a p b g"), ("<urn:g>", style.vocabulary.expiration, _time("2100-01-01T00:00:00Z"), "")]
    result, _ = at_once("SELECT * { GRAPH ?g { ?s <urn:p> ?o } }", own, style, [])
    assert result == set()
    result, _ = at_once("SELECT ?g { GRAPH ?g { ?s <urn:p> ?o } }", own, replace(style, method="singleton"), [])
    assert result == {("<urn:g>",)}


def _time(text):
    return f'"{text}"^^<http://www.w3.org/2001/XMLSchema#dateTime>'


def test_what_is_joined_with_a_graphs_name_is_all_that_is_asked_for():
    own = [quad for at in range(2_000) for quad in quads(f"a{at} p b{at} g{at}")]
    text = "SELECT ?o { <urn:a7> <urn:in> ?g GRAPH ?g { ?s <urn:p> ?o } }"
    result, requests = at_once(text, own, Style("singleton"), [Fact(quads("a7 in g7")[0])])
    assert result == {("<urn:b7>",)}
    assert requests <= 6


def test_too_many_graphs_are_a_failure_that_says_what_to_do():
    style, web = Style("singleton"), FakeWeb()
    source = FakeSource(web, style)
    source.put((), {f"<urn:g{at}>": [("<urn:a>", "<urn:p>", "<urn:b>")] for at in range(MAX_GRAPHS + 1)})
    plan = IncrementalPlan(live_query("SELECT ?g { GRAPH ?g { ?s <urn:p> ?o } }"), [source], style, web, 0)
    with pytest.raises(LinkedDataError, match="name the graph"):
        asyncio.run(plan.poll())


@pytest.mark.parametrize("plan", ["incremental", "streamer"])
def test_graphs_that_come_and_go_are_seen_without_being_read_anew(plan):
    async def watched():
        served, told, seen = Served(Style("singleton")), [], []
        wire = Wire(served.app, Random(0))
        answers = watch(
            "SELECT ?g { GRAPH ?g { <urn:a> <urn:p> ?o } }", [f"{BASE}/trains"], plan=plan, whole=True, period=10_000,
            web=simulated.web(wire), random=wire.random, style=Style("singleton"), tell=told.append,
        )  # fmt: skip
        for come, go in ((("a p b g", "a q b h"), ()), (("a p b i",), ()), ((), ("a p b g",))):
            served.dataset.change(quads(*go), [(quad, None) for quad in quads(*come)])
            seen.append({row[0] for row in (await anext(answers)).added})
        await answers.aclose()
        return seen, [event for event in told if isinstance(event, Failed)]

    seen, failed = run(watched())
    assert seen == [{"<urn:g>"}, {"<urn:g>", "<urn:i>"}, {"<urn:i>"}]
    assert not failed
