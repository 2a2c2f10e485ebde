"""The W3C SPARQL 1.1 tests through our server with our client: each passes, or is refused by name as a file lists."""

import asyncio
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from streamgauge.model.fact import Fact
from streamgauge.query import QueryError
from streamgauge.servers.fragments.labels import Style
from streamgauge.servers.fragments.live_queries import RefusedQueryError, live_query
from streamgauge.servers.fragments.live_queries.watch import watch
from tests.servers.fragments.live_queries import simulated
from tests.servers.fragments.live_queries.simulated import BASE, Served, Wire, run
from tests.sparql.suite import Result, cases, difference

REFUSED = Path(__file__).parent / "w3c_refused.txt"


def reason(text):
    """What a refusal names, short."""
    try:
        live_query(text)
    except QueryError as error:
        return str(error).partition("column 1: ")[2].partition(" ")[0]
    except RefusedQueryError as error:
        return str(error).removeprefix("the incremental evaluator does not do ").partition(":")[0]
    return None


async def answered(case, plan):
    """The first answer of a watch over the case's data, half of which has a time.

    Where it has named graphs, times are no graphs: the default graph has its facts, and no others.
    """
    style = Style("reification" if case.graphs else "graphs")
    served = Served(style, page_size=20)
    every = [triple for each in (case.data, *case.graphs.values()) for triple in each]
    blanks = {term for triple in every for term in triple if term.startswith("_:")}
    names = {term: f"<http://data.test/.well-known/{term[2:]}>" for term in blanks}
    later = simulated.START + 60_000
    triples = renamed(case.data, names)
    served.add([Fact(triple, None, later if at % 2 else None) for at, triple in enumerate(triples)])
    quads = [(*triple, name) for name, graph in case.graphs.items() for triple in renamed(graph, names)]
    served.dataset.change([], [(quad, None) for quad in quads])
    wire = Wire(served.app, Random(0), (0.0, 0.001))
    answers = watch(
        case.query, [f"{BASE}/trains"], plan=plan, whole=True, web=simulated.web(wire), random=wire.random, style=style
    )
    answer = await asyncio.wait_for(anext(answers), 10)
    await answers.aclose()
    blank = {name: term for term, name in names.items()}
    rows = tuple(tuple(blank.get(cell, cell) for cell in row) for row in answer.added)
    return Result(answer.kind, answer.columns, rows)


def renamed(triples, names):
    return [tuple(names.get(term, term) for term in triple) for triple in triples]


@pytest.mark.slow
@pytest.mark.parametrize("plan", ["incremental", pytest.param("streamer", marks=pytest.mark.prove)])
def test_every_w3c_test_passes_or_is_refused_by_name(shared_data, plan):
    listed = dict(line.split("  ", 1) for line in REFUSED.read_text().splitlines() if line[:1] != "#")
    result, wrong = {}, {}
    for case in cases(shared_data / "w3c-sparql11"):
        if named := reason(case.query):
            result[case.name] = named
        elif told := difference(replace(case.expected, ordered=False), run(answered(case, plan))):
            wrong[case.name] = told
    assert not wrong
    assert result == listed
