"""The queries of LUBM and SEP-BM on LUBM(1,0): reference answers, published counts, exactness of notifications."""

import csv
import gzip
import json
import random
from importlib.resources import files
from pathlib import Path

import pytest

from streamgauge.compute.reasoning import read_rules
from streamgauge.query import parse_sparql
from streamgauge.services.broker.broker import Broker
from streamgauge.services.broker.strategies import begin
from streamgauge.wire.formats import read_triples
from tests.services.broker.world import Clock, by_updates, triples_in

TEXTS = {
    each.name[:3]: each.read_text("utf-8")
    for each in files("streamgauge.workloads").joinpath("university", "queries").iterdir()
    if each.name.endswith(".rq")
}


@pytest.fixture(scope="module")
def lubm(shared_data: Path) -> Path:
    return shared_data / "lubm"


@pytest.fixture(scope="module")
def made(lubm: Path) -> Broker:
    return university(lubm, "incremental")


def university(lubm, strategy):
    clock = Clock()
    rules = read_rules(read_triples(lubm / "univ-bench.owl"))
    made = Broker(begin(strategy, rules), clock.wall, clock.steady)
    made.load(read_triples(lubm / "lubm-1-0.nt.gz"))
    for name, text in sorted(TEXTS.items()):
        made.create_channel(name, text)
    return made


def test_the_answers_of_lubm_s_queries_are_the_reference_answers(made, lubm):
    for number in range(1, 15):
        name = f"q{number:02d}"
        with gzip.open(lubm / "answers-lubm-1-0" / f"{name}.csv.gz", "rt", encoding="utf-8", newline="") as file:
            _, *rows = csv.reader(file)
        expected = {tuple(row) for row in rows if row and row != ["NO ANSWERS."]}
        assert {tuple(cell.strip('<>"') for cell in row) for row in made.rows(name)[1]} == expected, name


def test_the_answers_of_all_queries_are_as_many_as_published(made, lubm):
    counts = json.loads((lubm / "counts.json").read_text())["LUBM(1,0)"]["with_inference"]
    assert {str(int(name[1:])): len(made.rows(name)[1]) for name in TEXTS} == counts


def test_the_closure_is_the_one_that_updates_make(lubm):
    rules, facts = read_rules(read_triples(lubm / "univ-bench.owl")), set(read_triples(lubm / "lubm-1-0.nt.gz"))
    assert len(by_updates(rules, facts)) == 137_931


def test_the_queries_say_what_the_published_ones_do(lubm):
    for name, text in TEXTS.items():
        assert parse_sparql(text).variables == parse_sparql((lubm / "queries" / f"{name}.rq").read_text()).variables


@pytest.mark.prove
def test_a_thousand_changes_are_told_as_answers_from_scratch_are_different(lubm):
    """Channels come and go; both strategies are told the same, one asks pyoxigraph everything again.

    Now and then the closure is made anew by SPARQL updates.
    """
    rules, facts = read_rules(read_triples(lubm / "univ-bench.owl")), set(read_triples(lubm / "lubm-1-0.nt.gz"))
    draw = random.Random(6)
    by: dict = {}
    for triple in read_triples(lubm / "lubm-1-0.nt.gz"):
        by.setdefault(triple[0], []).append(triple)
    descriptions = sorted(by.values())
    brokers = [university(lubm, name) for name in ("incremental", "reevaluate")]
    listening = {name: [each.subscribe(name, "me", lambda: None) for each in brokers] for name in TEXTS}
    for step in range(1000):
        name = draw.choice(sorted(TEXTS))
        if draw.random() < 0.1:
            for each in brokers:
                if name in listening:
                    each.delete_channel(name)
                else:
                    each.create_channel(name, TEXTS[name])
            if listening.pop(name, None) is None:
                listening[name] = [each.subscribe(name, "me", lambda: None) for each in brokers]
        graph = [triple for one in draw.sample(descriptions, draw.choice((1, 1, 3))) for triple in one]
        part = draw.sample(graph, draw.randint(1, len(graph)))
        added, removed = (graph, ()) if draw.random() < 0.5 else ((), draw.choice((graph, part)))
        for each in brokers:
            each.update(added, removed)
        facts = (facts - set(removed)) | set(added)
        if step % 100 == 99:
            assert set(brokers[0].facts()) == triples_in(by_updates(rules, facts))
        for channel, (one, two) in listening.items():
            told = [
                [(n.causes, frozenset(n.added), frozenset(n.removed)) for n in subscription.take()]
                for subscription in (one, two)
            ]
            assert told[0] == told[1], (step, channel)
