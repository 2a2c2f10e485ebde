"""Universities: the published data of LUBM for the same seed, whatever the partitions; the Extended Data Set."""

import json
import sys
from hashlib import sha256
from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from streamgauge.cli.main import app
from streamgauge.model.terms import is_iri
from streamgauge.workloads import load
from streamgauge.workloads.parameters import ParameterError
from streamgauge.workloads.university import Chosen, described, foaf, seed_of, ub
from tests.conftest import SHARED

WRITTEN = {1: 103_074, 2: 237_142, 5: 645_649, 10: 1_316_322}
HASHES = {
    1: "319969b49226ee9ac9ff74bbdfd7ba05064f2b222c5a49037f13cb1165c174e8",
    2: "9255ed3059bef1fc1c5cd9dccad64db144c629d7864c0fbf90c2c02922b752cb",
    5: "43d883c387ffd14bc664831031a82782c1bd688a3368ef13d932c99cc051a64d",
    10: "85b6ccc3301b0073a933d8de721f9572760959d106a6d58d24ce35e6f2b0f2d1",
}
"""Statements written by LUBM's published generator with seed 0, and SHA-256 of its sorted distinct N-Triples."""

EXTENDED = {2: 287_421, 10: 1_591_802}


def statements(universities, seed=0, names="no", first=0):
    return [triple for n in range(first, first + universities) for item in described(n, seed, names) for triple in item]


def digest(triples):
    return sha256("".join(sorted({f"{s} {p} {o} .\n" for s, p, o in triples})).encode()).hexdigest()


@pytest.fixture(scope="module")
def plain(request):
    """The statements of a number of universities, for the tests that follow each other."""
    return request.param, statements(request.param)


def sizes(*quick, prove):
    return pytest.mark.parametrize("plain", [*quick, *(pytest.param(item, marks=pytest.mark.prove) for item in prove)],
                                   indirect=True)  # fmt: skip


@pytest.mark.slow
@sizes(1, 2, prove=(5, 10))
def test_the_published_data(plain):
    universities, result = plain
    assert len(result) == WRITTEN[universities]
    assert digest(result) == HASHES[universities]


def test_the_reference_counts_are_those():
    counts = SHARED / "data/lubm/counts.json"
    if not counts.exists():
        pytest.skip("the reference data ../shared/data/lubm is not here")
    for name, result in json.loads(counts.read_text()).items():
        size = int(name[5:].partition(",")[0])
        assert (result["statements"], result["sha256"]) == (WRITTEN[size], HASHES[size])


@pytest.mark.slow
@sizes(2, prove=(10,))
def test_three_more_statements_for_each_person(plain):
    universities, there = plain
    result, before = set(statements(universities, names="own")), set(there)
    people = {s for s, p, _ in before if p == ub("emailAddress")}
    assert len(result) == len(before) + 3 * len(people) == EXTENDED[universities]
    by = {name: {} for name in (ub("name"), *map(foaf, ("firstName", "surname", "mbox")))}
    for s, p, o in result:
        if p in by:
            by[p][s] = o
    names = by.pop(ub("name"))
    assert all(values.keys() == people for values in by.values())
    for person in people:
        first, last = by[foaf("firstName")][person].strip('"'), by[foaf("surname")][person].strip('"')
        assert names[person] == f'"{first} {last}"'
        assert is_iri(by[foaf("mbox")][person])
    assert sum(any(mark in value for mark in "-'") for value in by[foaf("surname")].values()) > 10


@pytest.mark.slow
def test_seeds_and_starts_differ_and_repeat():
    other, third = statements(1, seed=7), statements(1, first=3)
    assert other == statements(1, seed=7)
    assert digest(other) != HASHES[1]
    assert third == statements(2, first=2)[-len(third) :]
    assert seed_of(0, 4) == 4
    assert seed_of(1, 0) == (1 << 64) - (1 << 31)


@given(st.integers(), st.text(max_size=9))
def test_what_is_chosen_follows_from_seed_and_resource(seed, resource):
    drawn = [Chosen(seed, resource).of(("a", "b", "c")) for _ in range(2)]
    assert drawn[0] == drawn[1]


ELSEWHERE = [(0, 0, "no"), (7, 3, "no"), (-2, 40, "own"), (1 << 40, 1000, "no")]


GIVEN = {"universities": 1, "first": 2, "extended": "own", "interval": 10}


@pytest.mark.slow
def test_the_stream_says_what_is_said_of_each_resource():
    table = load("university").plan(5, **GIVEN).table()
    triples = list(zip(*(table.column(name).to_pylist() for name in ("subject", "predicate", "object")), strict=True))
    assert triples == statements(1, 5, "own", 2)
    sequence = table.column("sequence").to_pylist()
    assert table.column("time").to_pylist() == [10 * number for number in sequence]
    assert sequence == sorted(sequence)


@pytest.mark.prove
@pytest.mark.parametrize(
    ("universities", "seed", "first", "names"), [(3, *item) for item in [(5, 2, "own"), *ELSEWHERE]]
)
def test_rows_do_not_depend_on_where_they_are_made(spark, universities, seed, first, names):
    workload = load("university")
    given = {"universities": universities, "first": first, "extended": names, "interval": 10}
    here = workload.plan(seed, **given).table()
    for count in (1, 3, 8):
        rows = workload.generate(spark, seed, partitions=count, **given)
        assert rows.orderBy("sequence", "position").toArrow().cast(here.schema).equals(here)
    triples = list(zip(*(here.column(name).to_pylist() for name in ("subject", "predicate", "object")), strict=True))
    assert triples == statements(universities, seed, names, first)


@pytest.mark.prove
def test_a_second_session_of_a_jvm_makes_universities(spark):
    for session in (spark, spark.newSession(), spark.newSession()):
        assert load("university").generate(session, 0).count() == WRITTEN[1]


@pytest.mark.slow
def test_generated_as_ntriples(tmp_path):
    out = tmp_path / "lubm.nt"
    runner = CliRunner().invoke(app, ["generate", "university", "--format", "ntriples", "--out", str(out)])
    assert runner.exit_code == 0, runner.output
    assert sha256(out.read_bytes()).hexdigest() == HASHES[1]


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"universities": 0}, "universities is 0, first is 0"),
        ({"first": 1 << 20}, "indexes below 1048576"),
        ({"interval": -1}, "interval is -1"),
        ({"extended": "dbpedia"}, "choose from no, own, census"),
    ],
)
def test_invalid_parameters_are_refused(values, sentence):
    with pytest.raises(ParameterError, match=sentence):
        load("university").plan(0, **values)


def test_the_census_says_what_to_install(monkeypatch):
    lists = import_module("streamgauge.workloads.university")
    own = lists.words("own")
    monkeypatch.setitem(sys.modules, "names", None)
    lists.words.cache_clear()
    assert lists.words("own") == own
    with pytest.raises(
        ParameterError, match=r"the census of names needs the package names: pip install 'streamgauge\[names\]'"
    ):
        lists.words("census")
    lists.words.cache_clear()
