"""The TPF Query Streamer's experiment: its plan, claims beside what was measured, the page."""

from dataclasses import asdict, replace

import pytest

from streamgauge.papers.reproduction import page
from streamgauge.papers.tpf import measure as plan
from streamgauge.papers.tpf.measure import (
    CarriedClients,
    TpfOutcomes,
    capacity_table,
    carried,
    claims,
    crossing,
    growth,
    measure,
    per_client,
    sized,
    staleness,
)
from streamgauge.papers.tpf.page import TpfRequest, reproduce, reproduction
from streamgauge.suites.crowds.runs import ScenarioRunner
from streamgauge.suites.crowds.scenario import CrowdOutcome, ReceivedAnswer
from streamgauge.suites.experiments.load_search import Bracket

QUICK = plan.QUICK
SYSTEMS = (*plan.FRAGMENTS, *plan.PUSHED)


def outcome(scenario, server=1.0, client=0.5, took=(400, 200, 200, 200, 200)):
    """Polls each 10 s from 1 s on, updates each 10 s."""
    answers = [
        ReceivedAnswer(number, 0, 1_000 + 10_000 * turn + ms, 100, ms, 10 + 3 * turn, 20_000 + 5_000 * turn, True)
        for number in range(min(3, scenario.clients))
        for turn, ms in enumerate(took)
    ]
    seconds = tuple((float(at), 80.0 if at < 4 else 5.0) for at in range(1, scenario.seconds + 1))
    return CrowdOutcome(
        scenario, seconds, seconds, server * scenario.seconds / 100,
        client * scenario.clients * scenario.seconds / 100, float(scenario.seconds), 0,
        tuple(range(500, 50_000, 10_000)), tuple(answers), (), 1.0, details={"requests": 40, "bytes": 9_000},
    )  # fmt: skip


SERVER = {
    "incremental": 0.5,
    "streamer": 0.9,
    "csparql": 30.0,
    "cqels": 40.0,
    "live-csparql": 0.9,
    "live-cqels": 0.9,
    "broker": 0.9,
}


def everything():
    results = {}
    for scenario in plan.scaling(QUICK, SYSTEMS):
        cost = SERVER.get(scenario.system, 2.0) * (
            scenario.clients / 100 if scenario.system in ("live-csparql", "live-cqels", "broker") else 1
        )
        results[scenario] = outcome(scenario, cost, 0.01 if scenario.system in plan.PUSHED else 1.0)
    for scenario in plan.annotations(QUICK):
        base = 100 * (1 + plan.METHODS.index(scenario.method)) * (1 if scenario.system == "streamer" else 2)
        grown = 60 if scenario.label == "interval" and scenario.renewal == "published" else 0
        results[scenario] = outcome(scenario, took=(900, *(base + grown * turn for turn in range(5))))
    for scenario in plan.static_patterns(QUICK):
        static = 5 - len(dict(scenario.workload)["dynamic"].split(","))
        ms = 500 if scenario.system != "streamer" else 500 - 100 * static
        results[scenario] = outcome(scenario, took=(900, ms, ms, ms))
    for scenario in (*plan.proxied(QUICK), *plan.herd(QUICK)):
        results[scenario] = outcome(scenario)
    return TpfOutcomes(results)


def compared(extent, measured):
    return [claim.line for claim in claims(extent, measured)]


def test_the_plan_has_the_papers_sizes():
    assert plan.FULL.clients == tuple(range(10, 201, 10))
    scenarios = list(plan.scaling(plan.FULL, SYSTEMS))
    assert len({scenario.name for scenario in scenarios}) == len(scenarios)
    assert {scenario.label for scenario in plan.annotations(QUICK)} == {"interval", "expiration"}
    assert max(scenario.clients for scenario in scenarios if scenario.system == "csparql" and scenario.distinct) == 50
    assert [scenario.clients for scenario in plan.herd(QUICK)] == [1000, 1000]


def test_claims_come_out_where_the_figures_say_so():
    lines = {line.cells[0]: line for line in compared(QUICK, everything())}
    assert all(line.agrees for line in lines.values() if line.agrees is not None), [
        line.cells for line in lines.values() if line.agrees is False
    ]
    assert sum(line.agrees is True for line in lines.values()) >= 12
    h1 = lines["H1, identical: fragments, streamer costs the server less than C-SPARQL"]
    assert h1.cells[2] == "33.3 times less at 200 clients"


def test_claims_are_refuted_where_they_fail():
    measured = everything()
    worse = {
        scenario: replace(outcome, server_cpu=outcome.server_cpu * 8) if scenario.system in plan.FRAGMENTS else outcome
        for scenario, outcome in measured.outcomes.items()
    }
    lines = {line.cells[0]: line for line in compared(QUICK, TpfOutcomes(worse))}
    assert lines["H1, identical: fragments, streamer costs the server less than C-SPARQL"].agrees is False
    assert lines["the fragments server's CPU, identical queries"].agrees is False


def test_a_system_that_said_nothing_is_no_evidence():
    silent = {
        scenario: replace(outcome, answers=()) if scenario.system == "csparql" else outcome
        for scenario, outcome in everything().outcomes.items()
    }
    names = [line.cells[0] for line in compared(QUICK, TpfOutcomes(silent))]
    assert not [name for name in names if name.startswith("H1") and name.endswith("than C-SPARQL")]
    assert [name for name in names if name.startswith("H1") and name.endswith("than CQELS")]


def test_without_measures_nothing_is_claimed():
    assert [line for line in compared(QUICK, TpfOutcomes({})) if line.agrees is not None] == []


@pytest.mark.slow
def test_the_page_has_every_figure():
    results = [CarriedClients(1000, Bracket(50.0, 100.0), ((50, 900.0), (100, None)))]
    made = reproduction(QUICK, everything(), {"cqels": "set STREAMGAUGE_CQELS_HOME"}, results)
    text = page(made)
    for words in ("Figure 2a, server", "Figure 2b", "Figure 3a", "Figure 3b", "Figure 4: interval", "nginx in front",
                  "they cross at about", "set STREAMGAUGE_CQELS_HOME", "Most clients that are kept fresh"):  # fmt: skip
        assert words in text, words


def test_crossing_growth_and_costs():
    assert crossing([(10, 1.0), (20, 3.0)], [(10, 2.0), (20, 2.0), (30, 1.0)]) == 15
    assert crossing([(10, 3.0), (20, 1.0)], [(10, 2.0), (20, 2.0)]) == 15
    assert crossing([(10, 1.0), (20, 1.0)], [(10, 2.0), (20, 2.0)]) is None
    scenario = plan.scaled(QUICK, "streamer", 10, distinct=False)
    assert growth(outcome(scenario, took=(9, 100, 200, 300))) == pytest.approx(0.5)
    assert growth(outcome(scenario, took=(9, 100))) is None
    assert per_client(outcome(scenario)) == (10, 20_000, 3, 5_000)


def test_capacity_asks_for_every_client_to_be_fresh():
    scenario = sized(QUICK, 10_000, 3)
    assert scenario.beside == 23
    result = outcome(scenario)
    assert staleness(result) == 700
    assert staleness(replace(result, answers=result.answers[:5])) is None
    assert capacity_table([CarriedClients(10_000, Bracket(3.0, None), ((3, 900.0),))]).lines[0].cells == (
        "10,000", "3", "–", "3: 900 ms",
    )  # fmt: skip


@pytest.mark.slow
def test_what_is_kept_is_shown_and_not_measured_again(tmp_path):
    import json

    scenario = plan.scaled(QUICK, "incremental", 10, distinct=False)
    (tmp_path / f"{scenario.name}.json").write_text(json.dumps(asdict(outcome(scenario))))
    measured = measure(
        [scenario], ScenarioRunner(tmp_path, lambda: pytest.fail("no Spark is needed")), lambda _what, _share: None
    )
    assert measured.of(scenario) == outcome(scenario)
    made = reproduce(
        TpfRequest(QUICK, tmp_path, QUICK.parts, done=True), lambda: pytest.fail("no Spark"), lambda _what, _share: None
    )
    assert made.data["outcomes"][0]["right"] == 15


class Pretended:
    """Fresh up to a hundred clients."""

    def outcome(self, scenario):
        result = outcome(scenario)
        answers = [
            replace(answer, client=client) for client in range(scenario.clients) for answer in result.answers[:5]
        ]
        slow = [replace(answer, received=answer.received + 9_000) for answer in answers]
        return replace(result, answers=tuple(answers if scenario.clients <= 100 else slow))


def test_the_most_clients_are_searched():
    result = carried(QUICK, 10_000, Pretended(), lambda _what, _share: None)
    assert result.found.passed <= 100 < result.found.failed <= 1.25 * result.found.passed
    assert {clients <= 100: late for clients, late in result.tried} == {True: 700, False: 9_700}
