"""Drawn queries over drawn facts that come, end and change: each poll is the query over the facts that hold."""

import asyncio

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from streamgauge.model import algebra as al
from streamgauge.model.fact import Fact
from streamgauge.query.printer import sparql
from streamgauge.servers.fragments.annotations import methods
from streamgauge.servers.fragments.labels import Label, Style
from streamgauge.servers.fragments.live_queries import Caching, live_query
from streamgauge.servers.fragments.live_queries.incremental import IncrementalPlan
from streamgauge.servers.fragments.live_queries.streamer import StreamerPlan
from tests.examples import examples
from tests.servers.fragments.live_queries.fakes import FakeSource, FakeWeb
from tests.sparql import draw
from tests.sparql.pyoxigraph.restated import restated
from tests.sparql.suite import Case, Result, difference, evaluate
from tests.sparql.wide import constructs, pyoxigraph_differs

START = 1_000_000


_SELECTS = draw.queries(draw.OPERATORS)
FORMS = st.one_of(_SELECTS, _SELECTS, _SELECTS, constructs(_SELECTS), _SELECTS.map(lambda form: al.Ask(form.pattern)))


@st.composite
def facts(draws):
    """Facts of the small vocabulary: some always, some from a time and until another, seconds around START."""
    triples = draws(draw.triples(max_size=14))
    results = []
    for triple in triples:
        if draws(st.booleans()):
            results.append(Fact(triple))
        else:
            initial = START + 1000 * draws(st.integers(-5, 3))
            results.append(Fact(triple, initial, initial + 1000 * draws(st.integers(1, 8))))
    return tuple(results)


def expected(form, held, at):
    """The definition: pyoxigraph over what holds."""
    triples = tuple({fact.triple for fact in held if fact.holds(at)})
    return evaluate(Case("drawn", "", sparql(restated(form)), triples, {}, Result("solutions", (), ())))


def shown(understood, polled):
    rows = tuple(row for row, many in polled.bag.items() for _ in range(many))
    return Result(understood.kind, understood.columns, rows)


def plans(form, sources, style, web):
    """Both plans, the published one under every setting of its cache."""
    yield IncrementalPlan(live_query(form), sources, style, web, 0)
    for caching in Caching:
        yield StreamerPlan(live_query(form), sources, style, web, 0, caching)


@pytest.mark.slow
@examples(12, prove=2000)
@given(st.data(), FORMS, st.lists(facts(), min_size=1, max_size=3), st.sampled_from(methods()))
def test_each_poll_of_each_plan_is_the_query_over_what_holds(data, form, states, name):
    assume(pyoxigraph_differs(form) is None)
    style = Style(method=name, label=Label.INTERVAL)
    web = FakeWeb(START)
    sources = [FakeSource(web, style), FakeSource(web, style, address="http://other/")]
    asking = list(plans(form, sources, style, web))

    async def polls():
        for state in states:
            part = data.draw(st.integers(0, len(state)))
            sources[0].put(state[:part])
            sources[1].put(state[part:])
            for _ in range(data.draw(st.integers(1, 2))):
                for plan in asking:
                    polled = await plan.poll()
                    told = difference(expected(form, state, polled.instant), shown(live_query(form), polled))
                    assert not told, (plan, told, sparql(form))
                web.now += 1000 * data.draw(st.integers(1, 4))

    asyncio.run(polls())
