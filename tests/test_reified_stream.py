"""A stream of reified observations with base directions through every door, unchanged and judged right."""

import asyncio
import csv
import io
import json
from dataclasses import replace

import pytest

import streamgauge
from streamgauge.engines import load
from streamgauge.formats.lines import decode_answer
from streamgauge.formats.results import results
from streamgauge.formats.streams import Reading, read_elements, stream_format, write_stream
from streamgauge.fragments import watch as follow
from streamgauge.model.semantics import Origin
from streamgauge.model.verdict import Judgement
from streamgauge.query import parse
from streamgauge.semantics import profiles
from streamgauge.semantics.profiles import RSPQL
from streamgauge.testing.servers import served_broker, served_fragments
from tests import hotel

TIMED = ("--time-property", "sosa:resultTime")
OWN = {"time_property": "http://www.w3.org/ns/sosa/resultTime"}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with the stream and the queries."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hotel.ttl").write_text(hotel.log(), encoding="utf-8")
    (tmp_path / "select.rq").write_text(hotel.SELECT, encoding="utf-8")
    (tmp_path / "construct.rq").write_text(hotel.CONSTRUCT, encoding="utf-8")
    (tmp_path / "all.ttl").write_text(hotel.document(), encoding="utf-8")
    return tmp_path


def counted(rows, scope) -> bool:
    """Whether rows are those of the readings in a window."""
    return sorted(rows, key=str) == sorted((reading.row for reading in hotel.good(*scope)), key=str)


def made(triples, scope) -> bool:
    return set(triples) == {triple for reading in hotel.good(*scope) for triple in reading.triples}


@pytest.mark.parametrize(
    ("query", "right"), [(hotel.SELECT, counted), (hotel.CONSTRUCT, made)], ids=["rows", "triples"]
)
def test_live_and_the_definition_answer_what_is_counted_by_hand(here, query, right):
    answers = list(streamgauge.watch(query, "hotel.ttl", **OWN))
    assert len(answers) == 9
    assert all(right(answer.added, answer.scope) for answer in answers)
    expected = streamgauge.expect(query, "hotel.ttl", advance_to="windows", evaluator="definition", **OWN)
    assert all(right(report.rows, (report.due.start, report.due.end)) for report in expected)
    verdict = streamgauge.verify(query, "hotel.ttl", answers=answers, advance_to="windows", **OWN)
    assert verdict.judgement is Judgement.RIGHT


@pytest.mark.parametrize(
    ("query", "right"), [(hotel.SELECT, counted), (hotel.CONSTRUCT, made)], ids=["rows", "triples"]
)
def test_spark_answers_the_same(spark, here, query, right):
    expected = streamgauge.expect(query, "hotel.ttl", advance_to="windows", evaluator="spark", **OWN)
    assert len(expected) == 9
    assert all(right(report.rows, (report.due.start, report.due.end)) for report in expected)


@pytest.mark.prove
def test_a_streaming_job_goes_on_from_its_checkpoint_in_the_middle_of_a_window(spark, here, monkeypatch):
    """A part of the stream, an end before it is drained, the other part: a window joins terms of RDF 1.2 from both."""
    from streamgauge.engines.spark.pipeline import Batches, Job, run  # late: PySpark, which others do without

    source = here / "hotel.ttl"
    elements = list(read_elements(source, stream_format(source, None), Reading(hotel.STREAM, **OWN)))
    (here / "parts").mkdir()
    semantics = replace(RSPQL, origin=Origin.FIRST)
    query = parse(hotel.SELECT)
    for number, part in enumerate((elements[:23], elements[23:])):
        write_stream(part, here / "parts" / f"{number:03}.parquet")
        files = {"source": str(here / "parts"), "sink": "answers", "checkpoint": here / "state"}
        with monkeypatch.context() as ended:
            if number == 0:
                ended.setattr(Batches, "drain", lambda self: self.state)
            run(spark, Job(query, hotel.SELECT, "rspql", semantics, drain=True, **files), lambda _done: None)
    kept = streamgauge.load_run("answers")
    assert len(kept.answers) == 8
    assert all(counted(answer.added, answer.scope) for answer in kept.answers)


@pytest.mark.parametrize(
    ("engine", "profile"),
    [("csparql", "csparql-0.9.7"), ("cqels", "cqels-1.x"), ("yasper", "yasper"), ("rspjs", "rsp-js")],
)
@pytest.mark.parametrize(
    ("part", "named"),
    [
        ("?r :q <<( :a :b 1 )>>", "<<( is SPARQL 1.2"),
        ("<< ?a :b ?c >> :q ?r", "ISTRIPLE is SPARQL 1.2"),
        ("?r :q 'x'@he--rtl", "@he--rtl is SPARQL 1.2"),
        ("?r :q ?l FILTER(hasLANGDIR(?l))", "HASLANGDIR is SPARQL 1.2"),
        ("?r :object ?l FILTER(?l > 3)", None),
    ],
)
def test_engines_of_sparql_1_1_refuse_what_they_cannot_read(engine, profile, part, named):
    window = "FROM NAMED WINDOW :w ON :s [RANGE PT9S STEP PT9S]"
    text = f"PREFIX : <urn:> SELECT ?r {window} WHERE {{ WINDOW :w {{ {part} }} }}"
    reason = load(engine).refuse(parse(text), profiles.profile(profile))
    assert reason is None if named is None else named in reason


def test_query_prints_terms_whole_in_lines_and_by_their_values_in_csv(command, here):
    words = ("query", "select.rq", "--stream", "hotel.ttl", *TIMED, "--advance-to", "windows")
    answers = [decode_answer(line) for line in command(*words, "--format", "jsonl").out.splitlines()]
    assert all(counted(answer.added, answer.scope) for answer in answers)
    table = list(csv.DictReader(io.StringIO(command(*words, "--format", "csv").out)))
    bar = [line for line in table if line["reading"] == "http://example.org/hotel#reading8"]
    assert {(line["name"], line["claim"]) for line in bar} == {
        ("\u0627\u0644\u0628\u0627\u0631 (bar)", hotel.RoomReading(8).claim)
    }
    shown = command(*words, "--format", "table").out
    assert "<<( :reading8 :says <<(" in " ".join(shown.split())
    assert '"\u05e1\u05e4\u05d0"@he--rtl' in shown


@pytest.mark.heavy("an experiment by programs, with its report")
def test_an_experiment_is_run_judged_right_and_reported(command, here, undrawn):
    (here / "hotel.toml").write_text(
        f'name = "hotel"\n[workload]\nfile = "hotel.ttl"\ntime_property = "{OWN["time_property"]}"\n'
        '[query]\nfile = "select.rq"\n[[engine]]\nname = "live"\nsemantics = ["rspql"]\n'
    )
    run = command("run", "hotel.toml", "--out", "runs")
    assert run.code == 0, run.err
    assert run.err.count("answered exactly as expected") == 1
    kept = streamgauge.load_run("runs/live-rspql-seed0-1")
    assert kept.answers
    assert all(counted(answer.added, answer.scope) for answer in kept.answers)
    changed = [
        streamgauge.Answer(one.variables, tuple(map(turned, one.added)), (), one.kind, one.instant, one.scope)
        for one in kept.answers
    ]
    wrong = streamgauge.verify(hotel.SELECT, "hotel.ttl", answers=changed, explain=False, **OWN)
    assert wrong.judgement is Judgement.WRONG
    assert "--rtl" in str(wrong.windows[0].missing)


def turned(row):
    """A row whose texts run the other way."""
    return tuple(term and term.replace("--rtl", "--ltr") for term in row)


def test_recorded_results_are_imported_and_judged_right(command, here):
    answers = list(streamgauge.watch(hotel.SELECT, "hotel.ttl", **OWN))
    lines = [
        {"timestamp": one.instant, "scope": list(one.scope), **results(one.variables, one.added)} for one in answers
    ]
    (here / "answers.json").write_text("\n".join(map(json.dumps, lines)))
    words = ("--query", "select.rq", "--stream", "hotel.ttl", *TIMED, "--semantics", "rspql", "--out", "imported")
    done = command("import", "answers.json", *words)
    assert done.code == 0, done.err
    assert "Every one of" in command("check", "imported").out
    shown = command("explain", "imported", "--window", "1").out
    assert 'reading0 reifies <<( room0 temperature "18.0"^^decimal )>>' in shown
    assert "<<( reading8 says <<( room2 temperature" in " ".join(shown.split())


@pytest.mark.server
def test_a_broker_tells_each_reading_as_it_was_published():
    wanted = [reading.row for reading in hotel.READINGS[:10] if reading.quality >= 0.7]
    with served_broker() as served:
        served.client.create_channel("rooms", hotel.STANDING)
        for reading in hotel.READINGS[:10]:
            served.client.publish(hotel.document((reading,)))
        notifications = served.client.subscribe("rooms", after=0)
        told = [next(notifications) for _ in wanted]
        notifications.close()
        for reading in hotel.READINGS[:10]:
            served.client.delete(hotel.document((reading,)))
        assert not served.client.rows("rooms").rows
    assert [row for one in told for row in one.added] == wanted


@pytest.mark.server
@pytest.mark.parametrize("plan", ["incremental", "streamer"])
def test_fragments_serve_them_and_the_streamer_answers(here, plan):
    async def first(url):
        return await anext(follow(hotel.STANDING, [url], plan=plan))

    with served_fragments({"hotel": here / "all.ttl"}) as url:
        answer = asyncio.run(first(f"{url}/hotel"))
    assert sorted(answer.added, key=str) == sorted((r.row for r in hotel.READINGS if r.quality >= 0.7), key=str)
