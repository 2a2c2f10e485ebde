"""The queries of LUBM and SEP-BM on LUBM(1,0): reference answers, published counts, exactness of notifications."""

import csv
import gzip
import json
from pathlib import Path

import pytest

from streamgauge.formats.streams import read_triples
from streamgauge.query import parse_sparql
from streamgauge.reasoning import read_rules
from streamgauge.servers.broker.broker import Broker
from streamgauge.servers.broker.strategies import begin
from tests.servers.broker.campus import TEXTS
from tests.servers.broker.world import Clock, by_updates


@pytest.fixture(scope="module")
def lubm(shared_data: Path) -> Path:
    return shared_data / "lubm"


@pytest.fixture(scope="module")
def made(lubm: Path) -> Broker:
    return university(lubm, "incremental")


def university(lubm, strategy):
    clock = Clock()
    rules = read_rules(read_triples(lubm / "univ-bench.owl"))
    broker = Broker(begin(strategy, rules), clock.wall, clock.steady)
    broker.load(read_triples(lubm / "lubm-1-0.nt.gz"))
    for name, text in sorted(TEXTS.items()):
        broker.create_channel(name, text)
    return broker


@pytest.mark.slow
def test_the_answers_of_lubm_s_queries_are_the_reference_answers(made, lubm):
    for number in range(1, 15):
        name = f"q{number:02d}"
        with gzip.open(lubm / "answers-lubm-1-0" / f"{name}.csv.gz", "rt", encoding="utf-8", newline="") as file:
            _, *rows = csv.reader(file)
        expected = {tuple(row) for row in rows if row and row != ["NO ANSWERS."]}
        assert {tuple(cell.strip('<>"') for cell in row) for row in made.rows(name)[1]} == expected, name


@pytest.mark.slow
def test_the_answers_of_all_queries_are_as_many_as_published(made, lubm):
    counts = json.loads((lubm / "counts.json").read_text())["LUBM(1,0)"]["with_inference"]
    assert {str(int(name[1:])): len(made.rows(name)[1]) for name in TEXTS} == counts


@pytest.mark.prove
def test_the_closure_is_the_one_that_updates_make(lubm):
    rules, facts = read_rules(read_triples(lubm / "univ-bench.owl")), set(read_triples(lubm / "lubm-1-0.nt.gz"))
    assert len(by_updates(rules, facts)) == 137_931


def test_the_queries_say_what_the_published_ones_do(lubm):
    for name, text in TEXTS.items():
        assert parse_sparql(text).variables == parse_sparql((lubm / "queries" / f"{name}.rq").read_text()).variables
