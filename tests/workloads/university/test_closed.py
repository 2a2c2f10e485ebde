"""What follows from universities: the closure on Spark of our own data, and the twenty queries answered from it."""

import csv
import gzip
import json

import pytest
from pyspark import StorageLevel
from typer.testing import CliRunner

from streamgauge.cli.main import app
from streamgauge.formats.streams import FormatError, read_triples
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.report import DueReport, View
from streamgauge.query import parse_sparql
from streamgauge.reasoning import Closure, Rules, read_rules
from streamgauge.semantics.evaluate import Snapshot
from streamgauge.servers.broker.broker import Broker
from streamgauge.servers.broker.strategies import begin
from streamgauge.spark.answers import ContentChoices, answers
from streamgauge.spark.entailment import entailed
from streamgauge.spark.facts import profiled
from streamgauge.sparql.bgp import Dataset, IndexedGraph
from streamgauge.workloads import load, queries, query_text
from streamgauge.workloads.university import described
from tests.reasoning.naive import closure
from tests.servers.broker.world import Clock

UNIVERSITY = load("university")
NAMES = queries(UNIVERSITY)
OWN = """@prefix om: <http://knoesis.wright.edu/ssw/ont/sensor-observation.owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
om:MeasureData rdfs:subClassOf <urn:t:Value> .
<urn:t:Seen> owl:equivalentClass [ owl:onProperty om:result ; owl:someValuesFrom <urn:t:Value> ] ."""
EVERYTHING = [DueReport(0, (View(0, 1, 0, 0, 1),))]


@pytest.fixture(scope="module")
def counts(shared_data):
    return json.loads((shared_data / "lubm" / "counts.json").read_text())


@pytest.fixture(scope="module")
def closed():
    """The closure of our own university."""
    closure = Closure(read_rules(read_triples(UNIVERSITY.ONTOLOGY)))
    closure.load(set().union(*described(0, 0)))
    return list(closure.facts.match(None, None, None))


def by_spark(spark, facts):
    """The answers to every query from a closure, by name."""
    stream = facts.selectExpr(
        "'urn:s' stream", "0L time", "0L sequence", "0 position", "subject", "predicate", "object"
    )
    means = ContentChoices(known=profiled(stream))
    for name in NAMES:
        form = parse_sparql(query_text(UNIVERSITY, name))
        rows = answers(spark, stream, EVERYTHING, form, means=means).drop("report").distinct().toArrow()
        yield name, {tuple(row.values()) for row in rows.to_pylist()}


def by_broker(facts):
    """The results that standing queries have when a closure is published."""
    clock = Clock()
    broker = Broker(begin("incremental", Rules()), clock.wall, clock.steady)
    broker.load(facts)
    for name in NAMES:
        broker.create_channel(name, query_text(UNIVERSITY, name))
        yield name, set(broker.rows(name)[1])


def by_definition(facts):
    """The answers of the definition's evaluator."""
    dataset = Dataset(IndexedGraph(facts))
    for name in NAMES:
        query = ContinuousQuery(parse_sparql(query_text(UNIVERSITY, name)), ())
        yield name, set(Snapshot(query).rows_over(dataset))


def reference(folder, name):
    with gzip.open(folder / f"{name}.csv.gz", "rt", encoding="utf-8", newline="") as file:
        _, *rows = csv.reader(file)
    return {tuple(row) for row in rows if row and row != ["NO ANSWERS."]}


def bare(rows):
    return {tuple(cell.strip('<>"') for cell in row) for row in rows}


@pytest.mark.slow
def test_closure_and_answers_are_the_published_ones(closed, counts, shared_data):
    published = counts["LUBM(1,0)"]
    assert len(closed) == published["closure"]
    ours, standing = dict(by_definition(closed)), dict(by_broker(closed))
    assert ours == standing
    assert {str(int(name[1:])): len(rows) for name, rows in ours.items()} == published["with_inference"]
    folder = shared_data / "lubm" / "answers-lubm-1-0"
    for name in NAMES[:14]:
        assert bare(ours[name]) == reference(folder, name), name


@pytest.mark.prove
@pytest.mark.parametrize("universities", [1, 2, 5, 10])
def test_closure_and_answers_on_spark_are_the_published_ones(spark, counts, universities):
    published, rules = counts[f"LUBM({universities},0)"], read_rules(read_triples(UNIVERSITY.ONTOLOGY))
    table = UNIVERSITY.generate(spark, 0, universities=universities)
    facts = table.selectExpr("subject", "predicate", "object", "0 lo", "0 hi").persist(StorageLevel.DISK_ONLY)
    result = entailed(spark, facts, rules).persist(StorageLevel.MEMORY_AND_DISK)
    assert result.count() == published["closure"]
    ours = dict(by_spark(spark, result))
    columns = result.select("subject", "predicate", "object").toArrow().to_pydict().values()
    assert ours == dict(by_broker(zip(*columns, strict=True)))
    assert {str(int(name[1:])): len(rows) for name, rows in ours.items()} == published["with_inference"]
    result.unpersist()
    facts.unpersist()


@pytest.mark.parametrize("extent", ["named", "full"])
def test_our_ontology_says_what_the_published_one_does(shared_data, extent):
    ours, theirs = (
        {alike(rule) for rule in read_rules(read_triples(file), extent).rules}
        for file in (UNIVERSITY.ONTOLOGY, shared_data / "lubm" / "univ-bench.owl")
    )
    assert ours == theirs


def alike(rule):
    """A rule whatever the names of its variables and of the ontology's blank nodes."""
    numbers: dict = {}
    nodes = [node for item in (*rule.body, rule.head) for node in (item.subject, item.predicate, item.object)]
    return tuple(
        numbers.setdefault(node, len(numbers)) if not isinstance(node, str) or node.startswith("_:") else node
        for node in nodes
    )


@pytest.mark.prove
def test_the_full_closure_of_the_extended_data_set_is_the_one_that_sepbm_counts(spark):
    """A reasoner for OWL 2 RL has 2,407,874, of which 413 are about the ontology's own terms."""
    table = UNIVERSITY.generate(spark, 0, universities=10, extended="own")
    facts = table.selectExpr("subject", "predicate", "object", "0 lo", "0 hi").persist(StorageLevel.DISK_ONLY)
    sizes = {"named": 2_057_164, "full": 2_407_874 - 413}
    for extent, size in sizes.items():
        assert entailed(spark, facts, read_rules(read_triples(UNIVERSITY.ONTOLOGY), extent)).count() == size
    facts.unpersist()


@pytest.mark.slow
def test_generated_with_what_follows(tmp_path):
    out = tmp_path / "full.nt"
    command = ["generate", "university", "--format", "ntriples", "--closure", "full", "--out", str(out)]
    runner = CliRunner().invoke(app, command)
    assert runner.exit_code == 0, runner.output
    lines = out.read_bytes().splitlines()
    assert len(lines) == len(set(lines)) == 166_278
    assert lines == sorted(lines)


def test_any_workload_with_any_ontology(tmp_path):
    closed_by_command(tmp_path, [])


def test_any_workload_with_any_ontology_on_spark(tmp_path, spark):
    closed_by_command(tmp_path, ["--master", spark.sparkContext.master])


def closed_by_command(tmp_path, master):
    ontology, out = tmp_path / "own.ttl", tmp_path / "out.nt"
    ontology.write_text(OWN)
    small = {"stations": "1", "duration": "3s"}
    options = [word for name, value in small.items() for word in (f"--{name}", value)]
    command = ["generate", "weather", "--format", "ntriples", "--closure", "rules", "--ontology", str(ontology)]
    runner = CliRunner().invoke(app, [*command, *options, *master, "--out", str(out)])
    assert runner.exit_code == 0, runner.output
    table = load("weather").plan(0, **small).table().select(["subject", "predicate", "object"])
    explicit = set(zip(*table.to_pydict().values(), strict=True))
    expected = closure(read_rules(read_triples(ontology)), explicit)
    assert len(expected) > len(explicit) > 10
    assert out.read_text().splitlines() == sorted(f"{s} {p} {o} ." for s, p, o in expected)


@pytest.mark.parametrize(
    ("workload", "options", "message"),
    [
        ("university", ["--closure", "some"], "choose from rules, full"),
        ("university", ["--closure", "rules", "--format", "parquet"], "--format ntriples"),
        ("university", ["--closure", "rules", "--annotated", "all"], "--annotated"),
        ("university", ["--ontology", "none.ttl"], "--closure rules"),
        ("weather", ["--closure", "rules"], "no ontology"),
    ],
)
def test_what_cannot_be_closed_is_refused(tmp_path, workload, options, message):
    command = ["generate", workload, "--format", "ntriples", "--out", str(tmp_path / "out.nt"), *options]
    runner = CliRunner().invoke(app, command, env={"COLUMNS": "200"})
    assert runner.exit_code == 2
    assert message in runner.output


def test_an_ontology_outside_the_rules_is_refused_by_axiom(tmp_path):
    ontology = tmp_path / "own.ttl"
    ontology.write_text("<urn:p> a <http://www.w3.org/2002/07/owl#ReflexiveProperty> .")
    command = ["generate", "university", "--format", "ntriples", "--closure", "rules", "--ontology", str(ontology)]
    with pytest.raises(FormatError, match=r"own\.ttl: the axiom <urn:p> .*ReflexiveProperty"):
        CliRunner().invoke(app, [*command, "--out", str(tmp_path / "out.nt")], catch_exceptions=False)
