"""YABench's experiments on real engines: which there are, what a cell of table 1 is, what differs and why, the page."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from streamgauge.formats.stream import write
from streamgauge.model.verdict import Judgement, Verdict, WindowVerdict
from streamgauge.oracle.judging.judge import Means, judge_run
from streamgauge.oracle.judging.oracle import unknown
from streamgauge.papers.reproduction import page
from streamgauge.papers.yabench.engines import YabenchRuns, paragraph, reproduction
from streamgauge.papers.yabench.measure import PublishedLines
from streamgauge.papers.yabench.oracle_files import parse as line
from streamgauge.papers.yabench.trials import (
    OUR_STATION,
    THEIR_STATION,
    TableOneCell,
    TrialOutcome,
    TrialRun,
    TrialRunner,
    TrialSide,
    available,
    do,
    experiment,
    moved_on,
    outcome,
    sides,
    trials,
)
from streamgauge.semantics.profiles import RSPQL
from streamgauge.suites.experiments import ExperimentError
from tests.notation import stream
from tests.oracle.runs import TEXT, right_run

CSPARQL = TrialSide("csparql", "csparql-0.9.7-wall", "csparql")
LIVE = TrialSide("live", "yabench", "csparql")
PUBLISHED = PublishedLines(
    {"ORACLE_small1": [line("1.0,0.975,116,119,1750,0,5000,154"), line("1.0,0.5,60,120,1750,5000,10000,38")]}
)


def test_every_experiment_is_there_and_can_be_read():
    result = trials(None, ())
    assert [entry.name for entry in result if entry.number] == [
        "E1/small", "E1/medium", "E1/big", "E2/small-1", "E2/small", "E2/medium", "E2/big",
        "E3/small", "E3/medium", "E3/big", "E4",
    ]  # fmt: skip
    assert [entry.name for entry in result if not entry.number] == [f"Q{n}" for n in range(1, 8)]
    for entry in result:
        asked = experiment(entry, LIVE, 3)
        assert asked.repetitions == (1 if entry.name == "E4" else 3)
        assert asked.feed.factor == 1.0


def test_q7_asks_for_a_station_that_the_stream_has(tmp_path):
    assert OUR_STATION in trials(None, ["Q7"])[0].query["text"]
    (theirs,) = trials(tmp_path, ["Q7"])
    assert THEIR_STATION in theirs.query["text"]
    assert theirs.workload == {"name": "csrbench", "data": str(tmp_path)}


def test_only_names_tests_or_groups_of_them():
    assert [trial.name for trial in trials(None, ["E3", "E1/big"])] == ["E1/big", "E3/small", "E3/medium", "E3/big"]
    with pytest.raises(ExperimentError, match="--only E5: there is E1/small"):
        trials(None, ["E5"])


def test_how_engines_take_part():
    assert [(side.semantics, side.published) for side in sides("live")] == [
        ("yabench", "csparql"), ("yabench-change", "cqels"),
    ]  # fmt: skip
    assert [side.semantics for side in sides("csparql")] == ["csparql-0.9.7-wall"]
    assert [side.published for side in sides("cqels")] == ["cqels"]


def test_an_engine_that_is_not_here_is_named(monkeypatch):
    monkeypatch.delenv("STREAMGAUGE_CSPARQL_HOME", raising=False)
    taking_part, absent = available(["csparql", "nobody", "live"])
    assert {side.engine for side in taking_part} == {"live"}
    assert "STREAMGAUGE_CSPARQL_HOME" in absent["csparql"]
    assert "unknown engine 'nobody'" in absent["nobody"]


def window(index, missing=(), surplus=(), expected=3):
    common = expected - len(missing)
    rows = [tuple((name,) for name in names) for names in (missing, surplus)]
    actual = common + len(surplus)
    shares = (common / actual, common / expected)
    end = index * 5 + 5
    return WindowVerdict(index, end - 5, end, end, index, *shares, common, expected, actual, 1, 1.0, *rows)


@pytest.mark.parametrize(
    ("windows", "lag", "answer"),
    [
        ([window(0, "a"), window(1, "", "a")], 1, True),
        ([window(0, "a"), window(1, "b", "a"), window(2, "", "b")], 1, True),
        ([window(0), window(1, "a")], 1, True),
        ([window(0, "a"), window(1)], 1, False),
        ([window(0), window(1, "", "x")], 1, False),
        ([window(0, "", "x"), window(1)], 1, False),
        ([window(0, "a"), window(1, "", "b")], 1, False),
        ([window(0, "a"), window(1), window(2, "", "a"), window(3)], 2, True),
        ([window(0, "a"), window(1, "", "a"), window(2)], 2, False),
        ([replace(window(0, "a"), missing=()), window(1, "", "a")], 1, False),
    ],
)
def test_rows_that_are_in_the_next_window(windows, lag, answer):
    assert moved_on(windows, lag) is answer


def test_a_cell_of_table_1(tmp_path):
    run = right_run(RSPQL)
    shares = Verdict(Judgement.RIGHT, "definition", 0, 1.0, 1.0, 0, 0, 0, None, (), ())
    assert outcome(run, shares, tmp_path, None) is TableOneCell.RIGHT
    assert (
        outcome(run, replace(unknown(run, "why"), windows=(window(0, "a"), window(1, "", "a"))), tmp_path, None)
        is TableOneCell.NEXT
    )
    assert (
        outcome(run, replace(unknown(run, "why"), windows=(window(0, "a"), window(1))), tmp_path, None)
        is TableOneCell.WRONG
    )


@pytest.mark.parametrize(
    ("engine", "window", "cell"),
    [
        ("csparql", (5, 1), TableOneCell.WRONG),
        ("csparql", (5, 5), TableOneCell.RIGHT),
        ("live", (5, 1), TableOneCell.RIGHT),
    ],
)
def test_a_published_engine_has_no_window_before_the_first_full_one(tmp_path, engine, window, cell):
    run = right_run(replace(RSPQL, partial_head=True), window=window)
    run = replace(run, header=replace(run.header, engine=engine))
    write(stream(TEXT), tmp_path / "part-0.parquet")
    means = Means(lambda: pytest.fail("the definition may judge this"))
    verdict = judge_run(run, tmp_path, means)
    assert verdict.judgement is Judgement.RIGHT
    assert outcome(run, verdict, tmp_path, means) is cell


def kept(*texts, judgement=Judgement.RIGHT, memory=60.0, **more):
    return TrialRun(
        Path("run"), judgement, 1.0, 1.0, 30.1, ((0.0, 20.0), (1.0, memory)), 3.5, tuple(map(line, texts)), **more
    )


def done(side=CSPARQL, *runs, test="E1/small"):
    (trial,) = trials(None, [test])
    return TrialOutcome(trial, side, runs)


SAME = ("1.0,0.975,116,119,1750,0,5000,150", "1.0,0.5,60,120,1750,5000,10000,40")


def test_what_does_not_differ_says_so():
    assert paragraph(done(CSPARQL, kept(*SAME)), PUBLISHED, [70.0]).endswith(
        "no figure differs by more than the stated factors."
    )


@pytest.mark.parametrize(
    ("texts", "memory", "words"),
    [
        ((SAME[0], "1.0,1.0,120,120,1750,5000,10000,40"), 60, "recall differs in W2 100% here, 50% published. Under"),
        ((SAME[0].replace("150", "950"), SAME[1]), 60, "the median delay of a window is 495 ms here, 96 ms published"),
        (SAME, 600, "memory reaches 600 MiB here, 70 MiB published. Memory is the resident size of a JVM"),
    ],
)
def test_what_differs_is_said_with_its_reason(texts, memory, words):
    assert words in paragraph(done(CSPARQL, kept(*texts, memory=memory)), PUBLISHED, [70.0])


def test_why_rows_differ_depends_on_the_common_judge():
    other = (SAME[0], "1.0,1.0,120,120,1750,5000,10000,40")
    right, wrong = (done(CSPARQL, kept(*other, judgement=item)) for item in (Judgement.RIGHT, Judgement.WRONG))
    assert "every window of every run is right" in paragraph(right, PUBLISHED, [])
    assert "0 of 1 runs right" in paragraph(wrong, PUBLISHED, [])
    assert "tore those on a border in two" in paragraph(right, PUBLISHED, []).replace("  ", " ")


def test_a_run_without_lines_says_why():
    nothing = done(CSPARQL, kept(refused="it would take days"))
    assert paragraph(nothing, PUBLISHED, []).endswith("nothing to compare: it would take days.")


@pytest.mark.slow
def test_the_page_has_every_table_and_figure():
    change = TrialSide("live", "yabench-change", "cqels")
    dones = (
        done(CSPARQL, kept(*SAME), kept(*SAME)),
        done(change, kept(*SAME)),
        done(
            CSPARQL,
            kept(outcome=TableOneCell.NEXT),
            kept(outcome=TableOneCell.NEXT),
            kept(outcome=TableOneCell.WRONG),
            test="Q1",
        ),
        done(CSPARQL, kept(*SAME, gracious=(line(SAME[0]),)), test="E4"),
        TrialOutcome(trials(None, ["E3/big"])[0], CSPARQL, (), "it refuses <this>"),
    )
    result = reproduction(YabenchRuns(dones, (CSPARQL, change), {"cqels": "put it there"}, None, hurricane=True))
    assert [section.id for section in result.sections] == [
        "runs", "table-1", "table-2", "experiment-1", "experiment-3", "experiment-4",
    ]  # fmt: skip
    (cell,) = result.sections[1].tables[0].lines
    assert cell.cells == ("Q1", "csparql", "✓ or ✓ *", "✓ *", "✓ * 2, ✗ 1")
    assert cell.agrees is True
    text = page(result)
    assert "put it there" in text
    assert "it refuses &lt;this&gt;" in text
    assert "Figure 3a: E1/small: recall" in text
    assert "Figure 4d" in text
    assert json.loads(json.dumps(result.data))["absent"] == {"cqels": "put it there"}


def test_the_command_without_engines_that_are_here(monkeypatch, command, tmp_path):
    monkeypatch.delenv("STREAMGAUGE_CSPARQL_HOME", raising=False)
    code, out, _ = command("reproduce", "yabench", "--engines", "csparql", "--only", "E4", "--runs", tmp_path, "--json")
    assert code == 0
    assert "STREAMGAUGE_CSPARQL_HOME" in json.loads(out)["absent"]["csparql"]


@pytest.mark.prove
def test_live_is_right_in_real_time(spark, tmp_path):
    doer = TrialRunner(tmp_path, lambda: spark, 1, lambda _what, _share: None)
    first, second = do(trials(None, ["E4"]), sides("live"), doer)
    assert second.runs[0].lines[0].text().startswith("1.0,1.0,10,10,35,0,4031,")
    for item in (first, second):
        (run,) = item.runs
        assert run.judgement is Judgement.RIGHT
        assert all((one.precision, one.recall) == (1.0, 1.0) for one in (*run.lines, *run.gracious))
