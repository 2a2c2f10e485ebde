"""SEP-BM's pages: what is shown of runs, and the paper's figures beside them, from runs of a small configuration."""

import io
import json

import pytest
from rich.console import Console

from streamgauge.papers.reproduction import page, shown
from streamgauge.papers.sepbm import measure as plan
from streamgauge.papers.sepbm.measure import SepbmOutcomes
from streamgauge.papers.sepbm.page import differences
from streamgauge.papers.sepbm.page import document as reproduced
from streamgauge.report.sepbm import Compared, data, fine, mean_times, named
from streamgauge.report.sepbm import page as page_of_runs
from streamgauge.report.sepbm import shown as shown_runs
from tests.report.sepbm import measured, ran, times


def test_a_page_of_runs_has_what_was_measured():
    outcomes = {
        named(item.recording): item
        for item in (ran(name, ("q01", "q02"), {"q01": 1.0, "q02": 3.0}) for name in ("incremental", "graphss"))
    }
    compared = Compared("SEP-BM: small", outcomes)
    text = page_of_runs(compared)
    assert "broker_inprocess, graphss" in text
    assert "2 of 2 runs sent all notifications that were due" in text
    assert text.count("<svg") >= 1
    comparison = json.loads(json.dumps(data(compared)))
    assert comparison["runs"][0]["all"]["notified"]["mean"] == pytest.approx(2.0)
    assert comparison["runs"][0]["channels"]["q02"]["notified"]["p50"] == pytest.approx(3.0)
    assert comparison["runs"][0]["all"]["throughput"]["complete"] == 4
    assert any("2 of 2 runs" in str(part) for part in shown_runs(compared))
    assert list(mean_times(outcomes["broker_inprocess, graphss"])) == ["q01", "q02"]


def test_times_are_short_or_long():
    assert [fine(item) for item in (0.0512, 12.34, 3407.0)] == ["51 µs", "12.3 ms", "3.41 s"]


def test_the_papers_claims_hold_where_ours_are_as_published():
    result = reproduced(plan.SepbmExtent(), measured())
    lines = {line.cells[0]: line for section in result.sections for table in section.tables for line in table.lines}
    assert lines["average notification times"].agrees
    assert lines["the six slowest"].agrees
    assert lines["q17: StringRS guesses, GraphSS cannot"].agrees
    assert lines["throughput of the slow channels with StringRS and GraphSS"].agrees
    assert lines["LUBM(2), explicit"].agrees
    assert lines["LUBM(10), with what follows"].cells[:3] == ("LUBM(10), with what follows", "2.4 million", "2,407,874")
    assert result.compared[0] == result.compared[1] > 6
    assert result.sections[0].tables[0].lines[0].cells[:2] == ("reevaluate", "1.01 s")


def test_claims_that_do_not_hold_are_said_so():
    whole = measured()
    swapped = dict(whole.outcomes)
    swapped["together/stringrs"], swapped["together/graphss"] = (
        swapped["together/graphss"],
        swapped["together/stringrs"],
    )
    result = reproduced(plan.SepbmExtent(), SepbmOutcomes(swapped, {}, {"2": 1}))
    lines = {line.cells[0]: line for section in result.sections for table in section.tables for line in table.lines}
    assert lines["average notification times"].agrees is False
    assert lines["LUBM(2), explicit"].agrees is False
    assert lines["LUBM(10), explicit"].agrees is None


def test_other_slow_channels_and_other_guesses_are_explained():
    whole = measured()
    paragraphs = whole_text(whole)
    assert "Slow channels" not in paragraphs
    assert "q17: GraphSS is faster" not in paragraphs
    other = dict(whole.outcomes)
    for one, two in (("reevaluate/q09", "reevaluate/q14"), ("stringrs/q17", "graphss/q17")):
        name, query = one.split("/")
        time = times(two.split("/")[0])[two.split("/")[1]]
        other[f"alone/{one}"] = ran(name, (query,), {query: time})
    other["alone/reevaluate/q14"] = ran("reevaluate", ("q14",), {"q14": times("reevaluate")["q09"]})
    other["alone/graphss/q17"] = ran("graphss", ("q17",), {"q17": times("stringrs")["q17"]})
    paragraphs = whole_text(SepbmOutcomes(other, {}, {}))
    assert "Slow channels: q09 here in the place of q14." in paragraphs
    assert "q17: GraphSS is faster here (40 ms) than StringRS (100 ms)." in paragraphs


def whole_text(result):
    return "\n".join(differences(result))


def test_the_page_and_the_terminal_show_all_parts():
    result = reproduced(plan.SepbmExtent(), measured())
    text = page(result)
    for heading in (
        "Each channel alone",
        "All channels at once",
        "Several publishers at once",
        "What could not be run",
    ):
        assert heading in text
    assert [section.id for section in result.sections][:2] == ["published", "differences"]
    console = Console(record=True, width=200, file=io.StringIO())
    for part in shown(result):
        console.print(part)
    assert "Throughput of the ten slow channels" in console.export_text()


def test_the_plan_has_each_run_once_and_resumes_by_name(tmp_path):
    extent = plan.SepbmExtent(strategies=("incremental",))
    runs = plan.runs(extent, tmp_path)
    names = [entry.name for part, wanted in runs.items() for entry in wanted if part != "systems"]
    assert len(names) == len(set(names)) == 1 + 20 + 3 + 3
    assert {entry.name for entry in runs["systems"]} >= {"together/incremental", "systems/a polled SPARQL store"}
    assert all(
        entry.configuration.is_relative_to(tmp_path / extent.name) for wanted in runs.values() for entry in wanted
    )
