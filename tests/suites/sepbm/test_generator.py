"""The configuration generator on one department: the same bytes, what is chosen, what is refused, what is due."""

import json
from collections import Counter

import pytest

from streamgauge import workloads
from streamgauge.suites.sepbm import ConfigurationError, SepbmChannel, read, triples_text
from streamgauge.suites.sepbm.generator import ConfigurationRequest, Reference, generate, on_spark, own_data, university
from streamgauge.suites.sepbm.local import answers, sequential, snapshots
from streamgauge.suites.sepbm.selection import SelectionRule
from tests.suites.sepbm import department
from tests.suites.sepbm.test_distributed import as_sets

UNIVERSITY = workloads.load("university")
NAMES = ("q01", "q09", "q17", "q20")
PUBLICATIONS = 16
EXTENDED = ("16", "19")
"""Queries that LUBM's own data do not answer."""


def queries(folder, names=NAMES):
    (folder / "queries").mkdir(parents=True)
    for name in names:
        (folder / "queries" / f"{name}.rq").write_text(workloads.query_text(UNIVERSITY, name), encoding="utf-8")
    return folder / "queries"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    return own_data(department.write(folder), department.ONTOLOGY, queries(folder))


@pytest.fixture(scope="module")
def made(world, tmp_path_factory):
    wanted = ConfigurationRequest(PUBLICATIONS, seed=5, rule=SelectionRule.ANY, deletes=0.25, channels=len(NAMES) + 8)
    return generate(world, wanted, tmp_path_factory.mktemp("made") / "configuration")


def test_the_sequence_and_the_base_load_are_the_data(made):
    sequence = list(made.sequence())
    assert [entry.number for entry in sequence] == list(range(1, PUBLICATIONS + 1))
    base, facts = list(made.base()), set(department.facts())
    assert base == sorted(base, key=lambda triple: " ".join(triple).encode())
    published = {triple for entry in sequence for triple in entry.added}
    assert set(base) | published == facts
    assert not set(base) & published
    for entry in sequence:
        (subject,) = {subject for subject, _, _ in (*entry.added, *entry.removed)}
        assert {*entry.added, *entry.removed} == {triple for triple in facts if triple[0] == subject}


def test_a_share_deletes_and_half_of_it_comes_again(made):
    kinds = Counter("delete" if entry.removed else "publish" for entry in made.sequence())
    assert kinds == {"publish": 12, "delete": 4}
    assert len({entry.added for entry in made.sequence() if entry.added}) == 10


@pytest.mark.slow
def test_what_was_made_is_said(made):
    said = json.loads((made.folder / "configuration.json").read_text())["made"]
    assert said["publications"] == PUBLICATIONS
    assert (said["rule"], said["seed"], said["of"]) == ("any", 5, {"file": "department.nt"})
    assert (
        said["explicit"]
        == len(department.facts())
        == said["base"] + len({triple for query in made.sequence() for triple in query.added})
    )
    rules = made.rules()
    result = answers(
        rules, department.facts(), snapshots(channel for channel in made.channels if channel.name in NAMES)
    )
    assert {name: query["answers"] for name, query in said["queries"].items()} == {n: len(r) for n, r in result.items()}
    chosen = [query["resources"] for query in said["queries"].values()]
    assert sum(chosen) == said["resources"] == 10
    assert max(chosen) - min(chosen) <= 1


@pytest.mark.slow
def test_channels_alike_ask_for_what_is_there(made):
    assert len(made.channels) == len(NAMES) + 8
    assert len({channel.form for channel in made.channels}) == len(made.channels)
    assert Counter(of for of, _ in made.about.alike.values()) == {"q01": 3, "q09": 2, "q17": 1, "q20": 2}
    alike = [channel for channel in made.channels if channel.name in made.about.alike]
    assert all(answers(made.rules(), department.facts(), snapshots(alike)).values())


@pytest.mark.slow
def test_what_is_due_is_what_the_paper_s_way_finds(made):
    assert as_sets(list(made.due())) == as_sets(list(sequential(made)))


def same_bytes(one, other):
    names = {file.relative_to(one.folder) for file in one.folder.rglob("*.*")}
    assert names == {file.relative_to(other.folder) for file in other.folder.rglob("*.*")}
    return all((one.folder / name).read_bytes() == (other.folder / name).read_bytes() for name in names)


@pytest.mark.slow
def test_the_same_wishes_give_the_same_bytes(world, made, tmp_path):
    wanted = ConfigurationRequest(PUBLICATIONS, seed=5, rule=SelectionRule.ANY, deletes=0.25, channels=len(NAMES) + 8)
    shuffled = type(world)(world.facts[::-1], world.ontology, world.queries, world.origin)
    assert same_bytes(made, generate(shuffled, wanted, tmp_path / "again"))
    other = ConfigurationRequest(PUBLICATIONS, seed=6, rule=SelectionRule.ANY, deletes=0.25, channels=len(NAMES) + 8)
    assert not same_bytes(made, generate(world, other, tmp_path / "other"))


def test_spark_gives_the_same_bytes(spark, tmp_path):
    """With hierarchies only; what is due on Spark is compared in test_distributed, all together in proofs."""
    hierarchies = [triple for triple in department.ONTOLOGY if triple[1].endswith("subClassOf>")]
    world = own_data(department.write(tmp_path), hierarchies, queries(tmp_path, ["q20"]))
    on = on_spark(spark, world)
    wanted = ConfigurationRequest(4, channels=3, reference=Reference.SEQUENTIAL)
    assert same_bytes(generate(world, wanted, tmp_path / "here"), generate(on, wanted, tmp_path / "there"))


@pytest.mark.prove
@pytest.mark.parametrize("rule", SelectionRule)
def test_spark_gives_the_same_bytes_for_many_channels(spark, world, tmp_path, rule):
    wanted = ConfigurationRequest(PUBLICATIONS, seed=5, rule=rule, deletes=0.25, channels=len(NAMES) + 8)
    here = generate(world, wanted, tmp_path / "here")
    for parts in (1, 3):
        on = on_spark(spark, world)
        on = type(on)(on.facts.repartition(parts), on.ontology, on.queries, on.origin)
        assert same_bytes(here, generate(on, wanted, tmp_path / f"there-{parts}"))


@pytest.mark.slow
def test_the_first_variable_s_resources_by_default(tmp_path):
    world = own_data(department.write(tmp_path), department.ONTOLOGY, queries(tmp_path, ["q17"]))
    made = generate(world, ConfigurationRequest(3, reference=Reference.SEQUENTIAL), tmp_path / "configuration")
    assert all("Student" in entry.added[0][0] for entry in made.sequence())


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"publications": 0}, "publications is 0"),
        ({"deletes": 0.5}, "deletes is 0.5: a share from 0 to 0.4"),
        ({"deletes": -0.1}, "deletes is -0.1"),
    ],
)
def test_what_no_sequence_has_is_refused(wanted, message):
    with pytest.raises(ConfigurationError, match=message):
        ConfigurationRequest(**wanted)


@pytest.mark.slow
def test_what_cannot_be_made_is_refused(world, tmp_path):
    (tmp_path / "there").mkdir()
    with pytest.raises(ConfigurationError, match="already exists"):
        generate(world, ConfigurationRequest(), tmp_path / "there")
    one = type(world)(world.facts, world.ontology, (world.queries[0],), world.origin)
    with pytest.raises(ConfigurationError, match=r"have \d+ resources, but 300 are needed"):
        generate(one, ConfigurationRequest(), tmp_path / "few")
    with pytest.raises(ConfigurationError, match=r"values for \d+ channels"):
        generate(one, ConfigurationRequest(2, channels=5000), tmp_path / "many")
    assert not [path.name for path in tmp_path.iterdir() if path.name != "there"]


def test_an_ontology_of_other_names_is_refused(world, tmp_path):
    other = type(world)(world.facts, tuple(other_names()), world.queries, world.origin)
    with pytest.raises(ConfigurationError, match="derives nothing from the data"):
        generate(other, ConfigurationRequest(2), tmp_path / "other")


def other_names():
    return (tuple(term.replace("univ-bench", "other") for term in triple) for triple in department.ONTOLOGY)


RANDOM = SepbmChannel("random", "SELECT ?x { ?x a ?c FILTER(RAND() > 0.5) }")


def test_a_query_that_has_no_one_answer_is_refused_by_its_channel(world, tmp_path):
    other = type(world)(world.facts, world.ontology, (RANDOM,), world.origin)
    with pytest.raises(ConfigurationError, match=r"channel random: RAND\(\) gives a different value"):
        generate(other, ConfigurationRequest(2), tmp_path / "random")


@pytest.mark.prove
def test_a_query_that_spark_does_not_answer_is_refused_by_its_channel(spark, world, tmp_path):
    other = type(world)(on_spark(spark, world).facts, world.ontology, (RANDOM,), world.origin)
    with pytest.raises(ConfigurationError, match="channel random"):
        generate(other, ConfigurationRequest(2), tmp_path / "random")


def test_data_of_one_s_own_are_named_where_they_are_wrong(tmp_path):
    (tmp_path / "data.nt").write_text("<urn:a> <urn:p> .\n")
    with pytest.raises(ConfigurationError, match="no queries"):
        own_data(tmp_path / "data.nt", (), tmp_path)
    with pytest.raises(ConfigurationError, match=r"data\.nt"):
        own_data(tmp_path / "data.nt", (), queries(tmp_path))


@pytest.mark.prove
@pytest.mark.parametrize("universities", [1, 10])
def test_the_university_s_counts(spark, tmp_path, shared_data, universities):
    """Statements beside the published ones, answers as counted elsewhere, and notifications of the expected order."""
    from streamgauge.formats.streams import read_triples

    lubm = shared_data / "lubm"
    session = None if universities == 1 else spark
    world = university(session, read_triples(lubm / "univ-bench.owl"), universities)
    made = generate(world, ConfigurationRequest(), tmp_path / "first")
    counts = json.loads((lubm / "counts.json").read_text())[f"LUBM({universities},0)"]
    said = made.about.made
    persons = counts["with_inference"]["20"]
    assert said["explicit"] == counts["distinct"] + 3 * persons
    expected = {f"q{int(name):02d}": count for name, count in counts["with_inference"].items() if name not in EXTENDED}
    assert {name: entry["answers"] for name, entry in said["queries"].items() if name in expected} == expected
    assert said["queries"]["q16"]["answers"] == expected["q15"]
    assert triples_text(made.base()).encode() == (made.folder / "base.nt").read_bytes()
    result = sum(len(entry.added) for entry in read(made.folder).due())
    assert 500 < result < 8000
