"""Thirty minutes in simulated time: each answer is the query over what the server held when it served that poll."""

import asyncio
from itertools import product
from random import Random

import pytest

from streamgauge.query import parse_sparql
from streamgauge.query.printer import sparql
from streamgauge.servers.fragments.annotations import methods
from streamgauge.servers.fragments.labels import Label, Style
from streamgauge.servers.fragments.live_queries.poll_loop import Failed
from streamgauge.servers.fragments.live_queries.watch import watch
from tests.servers.fragments.live_queries import simulated
from tests.servers.fragments.live_queries.boards import Boards
from tests.servers.fragments.live_queries.simulated import BASE, Served, Wire, clock, run
from tests.sparql.pyoxigraph.restated import restated
from tests.sparql.suite import Case, Result, difference, evaluate

PREFIX = "PREFIX t: <http://example.org/train#> "
QUERIES = (
    "SELECT * { ?id t:delay ?d; t:platform ?platform; t:headSign ?head; t:routeLabel ?route; t:departureTime ?time }",
    "SELECT ?id ?delay ?head { ?id t:headSign ?head OPTIONAL { ?id t:delay ?delay FILTER(?delay > 0) } }",
    "SELECT ?id { { ?id t:delay ?d FILTER(?d > 60) } UNION { ?id t:platform 1 } ?id t:headSign 'Gent' }",
    "SELECT ?head (COUNT(?id) AS ?n) (SUM(?d) AS ?sum) { ?id t:headSign ?head; t:delay ?d } GROUP BY ?head",
    "SELECT ?id ?d { ?id t:delay ?d; t:departureTime ?t MINUS { ?id t:platform 2 } } ORDER BY DESC(?d) ?t LIMIT 3",
)
MINUTES = 30


async def replayed(style, plan, cache, seed, minutes=MINUTES):
    """All answers of a replay: the query, how far each is from the definition, and how often polls failed.

    The plan as published asks for what is static after the rest: an update between them is not in its answer.
    """
    random = Random(repr((style, plan, cache, seed)))
    served = Served(style, page_size=random.choice((5, 100)))
    wire = Wire(served.app, random)
    skew = random.choice((-2000, 0, 2000))
    text = PREFIX + QUERIES[seed % len(QUERIES)]
    plain = sparql(restated(parse_sparql(text)))
    until = clock() + minutes * 60_000
    feeding = asyncio.create_task(Boards(random, 8 if cache == "on" else 4, label=style.label).run(served, until))
    told = []
    answers = watch(
        text,
        [f"{BASE}/trains"],
        plan=plan,
        cache=cache,
        whole=True,
        style=style,
        random=random,
        tell=told.append,
        web=simulated.web(wire, skew),
    )
    wrong, seen, count = [], 0, 0
    async for answer in answers:
        versions = [version for _, _, version, _, _ in wire.log[seen:]]
        seen, count = len(wire.log), count + 1
        if versions:
            polled = dict.fromkeys(versions if plan == "streamer" else versions[-1:])
        troubles = [apart(plain, served.history[version], answer) for version in polled]
        if all(troubles):
            wrong.append((answer.instant - simulated.START, troubles[-1]))
        if clock() >= until:
            break
    await answers.aclose()
    feeding.cancel()
    return count, wrong, [event for event in told if isinstance(event, Failed)]


def apart(text, facts, answer):
    """How an answer differs from the definition over what holds at its instant."""
    triples = tuple({fact.triple for fact in facts if fact.holds(answer.instant)})
    expected = evaluate(Case("replay", "", text, triples, {}, Result("solutions", (), ())))
    return difference(expected, Result(answer.kind, answer.columns, answer.added))


async def foreign(seed, minutes):
    """Answers of polls that no update fell into, of a server that says nothing of versions: how far they are off."""
    random = Random(seed)
    served = Served(Style(), page_size=20)
    wire = Wire(served.app, random, foreign=True)
    text = PREFIX + QUERIES[seed]
    plain = sparql(restated(parse_sparql(text)))
    until = clock() + minutes * 60_000
    feeding = asyncio.create_task(Boards(random).run(served, until))
    answers = watch(text, [f"{BASE}/trains"], whole=True, random=random, settled=0, web=simulated.web(wire))
    wrong, seen, count = [], 0, 0
    async for answer in answers:
        quiet = not any(wire.log[seen][0] <= at <= clock() for at in served.changed)
        seen, count = len(wire.log), count + quiet
        if quiet and (trouble := apart(plain, list(served.history.values())[-1], answer)):
            wrong.append(trouble)
        if clock() >= until:
            break
    await answers.aclose()
    feeding.cancel()
    return count, wrong


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(len(QUERIES)))
def test_a_server_that_says_nothing_of_versions_is_asked_page_by_page(seed):
    count, wrong = run(foreign(seed, 3))
    assert count > 5
    assert not wrong, wrong[:2]


PLANS = list(product(("incremental", "streamer"), ("on", "off")))
STYLES = list(product(methods(), (Label.EXPIRATION, Label.INTERVAL)))


def held(name, label, plan, cache, seed, minutes):
    count, wrong, failed = run(replayed(Style(name, label), plan, cache, seed, minutes))
    assert not wrong, wrong[:3]
    assert count > minutes * 60 / 40
    assert not failed


@pytest.mark.slow
@pytest.mark.parametrize(("place", "name", "label"), [(at, *style) for at, style in enumerate(STYLES)])
@pytest.mark.parametrize("seed", [0, 1])
def test_each_answer_is_what_the_server_held(place, name, label, seed):
    """Half of the settings a seed, so that the suite is quick; the proof does them all."""
    for plan, cache in PLANS[(place + seed) % 2 :: 2]:
        held(name, label, plan, cache, seed, 1)


@pytest.mark.slow
@pytest.mark.parametrize(("place", "name"), list(enumerate(methods())))
def test_each_answer_is_what_held_at_instants(place, name):
    held(name, Label.INSTANT, *PLANS[place % len(PLANS)], place, 1)


@pytest.mark.prove
@pytest.mark.parametrize(("name", "label"), list(product(methods(), Label)))
@pytest.mark.parametrize(("plan", "cache"), [*PLANS, ("streamer", "prototype")])
@pytest.mark.parametrize("seed", range(20))
def test_each_answer_of_half_an_hour_is_what_the_server_held(name, label, plan, cache, seed):
    held(name, label, plan, cache, seed, MINUTES)
