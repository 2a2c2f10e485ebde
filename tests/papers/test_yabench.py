"""YABench: experiment 4 simulated, expected sizes of regenerated streams, the text against the files."""

import pytest

from streamgauge.cli.exits import Exit
from streamgauge.harness.importing import ForeignError
from streamgauge.papers.yabench import page as yabench
from streamgauge.papers.yabench.measure import OTHER, ResultFiles, claims
from streamgauge.report.sections import agreed

E4 = {
    ("csparql", "non-gracious"): [f"1.0,0.6,6,10,35,{start},{start + 5000}" for start in (0, 5000, 10_000, 15_000)],
    ("csparql", "gracious"): [f"1.0,1.0,6,10,35,{start},{end}" for start, end in
                              ((1031, 5000), (6031, 10_000), (11_031, 15_000), (16_031, 20_000))],
    ("cqels", "non-gracious"): [
        "1.0,1.0,10,10,35,0,4031",
        "0.47619047619047616,0.47619047619047616,21,10,35,5000,9031",
        "0.36363636363636365,0.36363636363636365,22,8,35,10000,14031",
        "0.38095238095238093,0.38095238095238093,21,8,35,15000,19031",
    ],
    ("cqels", "gracious"): ["1.0,1.0,14,20,35,0,4031", "1.0,1.0,25,50,42,1031,9031",
                            "1.0,1.0,25,50,42,6031,14031", "1.0,1.0,25,50,42,11031,19031"],
}  # fmt: skip
"""The published lines without the delay; the second of CQELS non-gracious as its 21 records give it."""


def test_the_engines_that_yabench_describes_give_its_experiment_4(spark):
    result = yabench.experiment_4(lambda: spark)
    assert {key: [line.text().rpartition(",")[0] for line in lines] for key, lines in result.items()} == E4


@pytest.fixture(scope="module")
def small(shared_data, spark):
    return yabench.reproduce(shared_data / "yabench", lambda: spark, ("small",))


def test_the_expected_sizes_of_the_small_streams_are_the_published_ones(small):
    tables = {table.heading: table for table in small.sections[0].tables}
    assert {name: agreed(table.lines) for name, table in tables.items()} == {
        "Experiment 1, C-SPARQL": (6, 6),
        "Experiment 1, CQELS": (6, 6),
        "Experiment 2, C-SPARQL": (6, 6),
    }
    assert tables["Experiment 1, C-SPARQL"].lines[1].cells == ("small", "2", "10", "137", "137", "1,750", "1,750")


@pytest.mark.prove
def test_the_expected_sizes_of_all_streams_are_the_published_ones(shared_data, spark):
    result = yabench.reproduce(shared_data / "yabench", lambda: spark)
    assert [agreed(table.lines) for table in result.sections[0].tables] == [(18, 18), (18, 18), (20, 20)]


def test_every_value_that_can_be_compared_comes_out(small):
    assert small.compared == (18 + 15 + 2, 18 + 15 + 2)
    assert small.headline.startswith("All 35 published values")


def test_a_line_that_no_oracle_can_write_is_shown_and_not_compared(small):
    (line,) = [line for line in small.sections[1].tables[0].lines if line.agrees is None]
    assert line.cells[:5] == ("CQELS", "non-gracious", "2", "47.8%, 47.8%", "47.6%, 47.6%")
    assert any("47.8%" in sentence for sentence in small.sections[-1].sentences)


def test_figure_5_and_figure_6_are_shown(small):
    section = {section.id: section for section in small.sections}
    assert [line.cells[2] for line in section["figure-5"].tables[0].lines] == ["0.500", "0.333"]
    assert len(section["experiment-4"].figures) == 2
    assert [figure.message for figure in section["text"].figures][2].endswith("recall, 25.5% at least")


def test_the_text_is_held_against_the_files(shared_data):
    lines = {line.cells[0]: line for line in claims(ResultFiles(shared_data / "yabench")).lines}
    assert lines["E1 small: CQELS's delay"].cells[2] == "81.5 to 201.5 ms"
    assert lines["E1 small: C-SPARQL's delay"].cells[2] == "153.5, then 7 to 38 ms"
    assert lines["E1 small: C-SPARQL's precision is 100% except in"].cells[2:4] == ("W3, W6", OTHER)
    assert lines["table 2, E1 big: CQELS's last result, at least"].cells[2] == "91.9 s"
    assert all(line.agrees is None for line in lines.values())


def results(root, text="1.0,1.0,1,1,7,0,5000,3\n"):
    folder = root / "experiments" / "Experiment_1" / "csparql"
    folder.mkdir(parents=True)
    (folder / "ORACLE_small1").write_text(text)
    (folder / "ORACLE_small2").write_text("0.0,0.0,1,1,7,0,5000,5\n")
    return root


def test_medians_are_over_the_runs(tmp_path):
    result = ResultFiles(results(tmp_path)).lines(1, "csparql", "small")
    assert result.medians(lambda line: line.delay) == [4]
    assert result.column(lambda line: line.precision, 0) == [1.0, 0.0]


@pytest.mark.parametrize("text", ["1.0,1.0\n", "a,1.0,1,1,7,0,5000,3\n", "1.0,1.0,1,1,7,0,5000,3.5\n"])
def test_bad_published_files_are_named_with_their_line(tmp_path, text):
    with pytest.raises(ForeignError, match="ORACLE_small1, line 1"):
        ResultFiles(results(tmp_path, text)).lines(1, "csparql", "small")


def test_missing_published_files_are_named(tmp_path):
    with pytest.raises(ForeignError, match="no Experiment_1 here"):
        ResultFiles(tmp_path)
    with pytest.raises(ForeignError, match="no file ORACLE_big"):
        ResultFiles(results(tmp_path)).lines(1, "csparql", "big")


@pytest.mark.parametrize(("words", "told"), [(["--loads", "huge"], "choose from small"), ([], "no Experiment_1 here")])
def test_the_command_says_what_is_wrong(tmp_path, command, words, told):
    code, _, err = command("reproduce", "yabench", "--data", tmp_path, *words)
    assert code == Exit.BAD_INPUT
    assert told in " ".join(err.split())
