"""Answers judged by what the server held; freshness; digests; scenarios as JSON."""

import json
from dataclasses import asdict, replace

import msgspec
import pytest

from streamgauge.engines import live
from streamgauge.formats.lines import encode_answer
from streamgauge.formats.run import read_run, read_verdict, stream_path
from streamgauge.model.answer import Answer
from streamgauge.oracle.expected.reports import Valid
from streamgauge.oracle.judging.judge import Means, judge_run
from streamgauge.query import parse
from streamgauge.semantics.profiles import FRAGMENTS, profile
from streamgauge.suites.crowds import scenario as judgement
from streamgauge.suites.crowds.clients import digest
from streamgauge.suites.crowds.scenario import (
    CrowdOutcome,
    ReceivedAnswer,
    Scenario,
    continuous,
    over_all,
    service_findings,
)
from streamgauge.suites.crowds.systems import systems
from streamgauge.suites.crowds.updates import updates
from tests.suites.crowds.boards import LATE, NOW, elements, static, whole

ASKED = Scenario("incremental", 2, slack=100)
APPLIED = [(5000 + 1000 * turn + 7, 1000 * turn) for turn in range(4)]
"""When a server had the updates of a stream that began at 5000 ms, 7 ms late each."""


def rows(late):
    results = []
    for number in range(4):
        delay = LATE if late and number == 1 else NOW
        results.append(
            (delay, f"<http://example.org/traindata#platform-{number % 2 + 1}>", f'"Town {number % 2 + 1}"',
             f'"IC {number}"', f'"2014-12-06T00:0{number}:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>')
        )  # fmt: skip
    return results


def line(instant, received, said, client=0):
    return {"client": client, "instant": instant, "received": received, "rows": digest(said)}


@pytest.mark.parametrize(
    ("message", "right"),
    [
        (line(6000, 6100, rows(False)), True),
        (line(7000, 7005, rows(False)), True),  # the server had not got the third update yet
        (line(7000, 7005, rows(True)), False),
        (line(7000, 7010, rows(True)), True),  # it may be of any instant until it was received
        (line(7008, 7500, rows(False)), False),  # stale
        (line(8000, 8500, list(reversed(rows(True)))), True),
        (line(8000, 8500, rows(True)[1:]), False),
        (line(9200, 9300, []), True),  # what was not renewed has ended
        (line(9000, 9050, []), False),
    ],
)
def test_an_answer_is_right_when_the_server_held_it_meanwhile(message, right):
    judge = judgement.ServerHistory(ASKED, elements(4, 1000), list(static()), APPLIED)
    assert judge.right(message) is right


def test_valid_at_an_instant_is_what_holds_then():
    query = over_all(continuous(ASKED, 0)[0], tuple(static()))
    applied = [(at, update) for (at, _), update in zip(APPLIED, updates(elements(4, 1000), 100), strict=True)]
    valid = Valid(query, FRAGMENTS, judgement.history(applied, "http://example.org/streams/departures"))
    assert [len(valid.at(at)) for at in (0, 5006, 5007, 9106, 9107)] == [0, 0, 4, 4, 0]
    assert [digest(item) for item in valid.within(6900, 7100)] == [digest(rows(False)), digest(rows(True))]


def test_intervals_that_are_only_added_overlap():
    scenario = Scenario("streamer", 1, slack=100, label="interval", renewal="published")
    judge = judgement.ServerHistory(scenario, elements(4, 1000), list(static()), APPLIED)
    both = [*rows(False), rows(True)[1]]
    assert judge.right(line(7020, 7050, both)) is True
    assert judge.right(line(7120, 7150, both)) is False


def test_freshness_is_how_long_after_a_change_an_answer_was_there_that_was_asked_for_after_it():
    answers = [(0, 110, 5), (0, 220, 60), (0, 330, 5), (1, 205, 4), (1, 990, 9)]
    # client 0 asked at 105, 160, 325; client 1 at 201, 981
    assert judgement.freshness(answers, [150, 200]) == [70, 130]  # client 1 began after both
    assert judgement.freshness(answers, [100]) == []
    assert judgement.freshness([], [100]) == []


def test_digests_are_of_bags_whatever_their_order():
    assert digest([("a", None), ("b", "c")]) == digest([("b", "c"), ("a", None)])
    assert digest([("a",), ("a",)]) != digest([("a",)])


@pytest.mark.slow
def test_every_system_has_its_query_and_distinct_clients_ask_distinct_things():
    for system in systems():
        texts = {continuous(Scenario(system, 40, distinct=True), client)[1] for client in range(40)}
        assert len(texts) == 40
        assert len({continuous(Scenario(system, 3), client)[1] for client in range(3)}) == 1


def test_an_outcome_is_kept_as_it_was():
    served = ReceivedAnswer(0, 5, 10, 3, 2, 1, 100, True)
    outcome = CrowdOutcome(ASKED, ((1.0, 50.0),), ((1.0, 5.0),), 0.5, 0.05, 2.0, 7, (8, 9), (served,), ("once",), 1.5)
    before = json.dumps(asdict(outcome)).encode()  # as files of earlier versions were written
    for text in (before, msgspec.json.encode(outcome)):
        assert msgspec.json.decode(text, type=CrowdOutcome) == outcome
    assert (outcome.server_percent, outcome.client_percent) == (25.0, 1.25)
    assert replace(ASKED, proxy=True).name != ASKED.name != replace(ASKED, seed=2).name


def test_what_a_service_told_is_a_run_that_check_judges_alike(tmp_path):
    """Two clients of one query, the first of which is judged; a wrong answer is in its run folder too."""
    scenario = Scenario("live-csparql", 2, workload=(("duration", 10),))
    fed = [replace(element, until=None) for element in whole(12, 2000)]
    messages: list[Answer] = []
    session = live.start(continuous(scenario, 0)[0], profile("csparql-0.9.7"), messages.append)
    for element in fed:
        session.push(element)
    session.advance(fed[-1].time)
    lines = [
        {"client": client, "instant": element.instant, "received": 5000 + fed[-1].time, "rows": digest(element.added),
         "answer": json.loads(encode_answer(element))}
        for element in messages for client in range(2)
    ]  # fmt: skip
    assert len(messages) > 1
    for told, word in ((lines, "right, precision 1.000, recall 1.000"), (lines[2:], "wrong, precision 1.000")):
        result = service_findings(scenario, fed, told, 5000)
        assert result.verdict.startswith(word)
        assert all(result.right(element) for element in told)
        (client,) = result.runs
        result.runs[client].keep(tmp_path / "runs" / "client")
        kept = read_run(tmp_path / "runs" / "client", parse)
        assert kept.header.workload == {"name": "trains", "seed": 1, **scenario.parameters}
        assert kept.answers == result.runs[client].run.answers
        verdict = judge_run(kept, stream_path(kept.folder or ""), Means(lambda: pytest.fail("no Spark")))
        assert verdict == read_verdict(tmp_path / "runs" / "client") == result.runs[client].verdict
