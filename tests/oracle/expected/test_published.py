"""YABench's published C-SPARQL result files: every expected result size and input size, by `expect --as yabench`."""

from itertools import groupby
from pathlib import Path

import pytest

from streamgauge import workloads
from streamgauge.oracle.judging.judge import Means, expected_reports
from streamgauge.query import fill, parse
from streamgauge.semantics.profiles import YABENCH
from streamgauge.workloads.plan import Maker

WINDOW = {"WSIZE": "5s", "WSLIDE": "5s"}
STREAMS = {
    ("1", "small"): (1430236906, 50, "30s"),
    ("1", "medium"): (1430236906, 1000, "30s"),
    ("1", "big"): (1430236906, 10_000, "30s"),
    ("2", "small"): (1430237208, 5, "30s"),
    ("2", "medium"): (1430237208, 1000, "30s"),
    ("2", "big"): (1430237208, 10_000, "30s"),
    ("4", "gracious"): (1430236808, 1, "20s"),
    ("4", "non-gracious"): (1430236808, 1, "20s"),
}
"""(experiment, load) -> seed, stations, duration; experiment 2 small was run with 5 stations."""

QUERIES = {
    "1": ("select", {"TEMP": "50.0"}),
    "2": ("average", {"TEMP": "50.0"}),
    "4": ("variation", {"VARIATION_THRESHOLD": "0.0"}),
}


def published(folder: Path, load: str) -> dict[str, list[tuple[int, int]]]:
    """File name -> (expected result size, expected input size) of every line."""
    results = {}
    for file in sorted(folder.glob("ORACLE_*")):
        if file.name.removeprefix("ORACLE_").rstrip("0123456789") == load:
            lines = [line.split(",") for line in file.read_text().split()]
            results[file.name] = [(int(cells[3]), int(cells[4])) for cells in lines]
    return results


LONG = [("1", "big"), ("2", "big"), ("2", "medium")]
"""A minute each of expected reports over up to a million triples; and one of two of a thousand stations."""


@pytest.mark.parametrize(
    ("experiment", "load"),
    [pytest.param(*key, id="-".join(key), marks=[pytest.mark.prove] if key in LONG else []) for key in STREAMS],
)
def test_expected_sizes(experiment, load, shared_data, spark, tmp_path):
    files = published(shared_data / "yabench" / "experiments" / f"Experiment_{experiment}" / "csparql", load)
    assert files
    seed, stations, duration = STREAMS[experiment, load]
    weather = workloads.load("weather")
    given = workloads.parameters(weather, {"stations": stations, "duration": duration})
    Maker(lambda: spark).write_stream(weather, seed, given, tmp_path / "stream")
    name, values = QUERIES[experiment]
    query = parse(fill(workloads.query_text(weather, name), {**WINDOW, **values}))
    means = Means(lambda: spark)
    for lines, group in groupby(sorted(files, key=lambda file: len(files[file])), key=lambda file: len(files[file])):
        result = expected_reports(query, YABENCH, tmp_path / "stream", means, windows=lines)
        sizes = [(len(report.rows), report.content) for report in result]
        for file in group:
            assert sizes == files[file], file
