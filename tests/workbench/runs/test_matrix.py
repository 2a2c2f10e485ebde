"""Many runs as a matrix, runs of one query or stream, and the search over all rooms."""

import re
from dataclasses import replace
from html import unescape

import pytest

from streamgauge.workbench.rooms.runs.matrix import MatrixRequest, _natural, matrix
from streamgauge.workbench.rooms.runs.run_list import RunLine, RunLines
from tests.report import build
from tests.workbench.runs.folders import EXPERIMENT, bench, keep

TWO = {"engine": "live", "semantics": "csparql", "workload": "weather, stations 2"}
LINES = [
    RunLine("a", "right", delay=10.0, precision=1.0, **TWO),
    RunLine("b", "wrong", delay=30.0, precision=0.4, **TWO),
    RunLine("c", "right but late", engine="live", semantics="csparql", workload="weather, stations 10"),
    RunLine("d", "damaged", engine="", semantics=""),
]


def test_a_cell_has_the_outcome_of_its_runs_and_leads_to_them():
    result = matrix(LINES, MatrixRequest())
    assert result.columns == ["weather, stations 2", "weather, stations 10", "–"]
    first = result.cells["live as csparql", "weather, stations 2"]
    assert (first.count, first.right, first.icon) == (2, 1, "wrong")
    assert first.words == ["precision 40%", "20 ms"]
    assert first.address == "/runs/compare?run=a&run=b"
    late = result.cells["live as csparql", "weather, stations 10"]
    assert (late.right, late.icon, late.address) == (1, "late", "/runs/run/c")
    assert result.cells[" as ", "–"].icon == "missed"
    assert result.left_out == 0


def test_rows_and_columns_are_of_two_different_things():
    assert MatrixRequest.of({"rows": "pace", "columns": "pace"}) == MatrixRequest("pace", "workload")
    assert MatrixRequest.of({"rows": "workload", "columns": "x"}) == MatrixRequest("workload", "system")
    assert sorted(["10 b", "2 b", "10 a"], key=_natural) == ["2 b", "10 a", "10 b"]


def test_more_columns_than_fit_are_counted():
    lines = [RunLine(f"r{n}", "right", engine="live", semantics="s", seed=str(n)) for n in range(50)]
    assert matrix(lines, MatrixRequest("system", "seed")).left_out == 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    run, verdict = build.right()
    for place, changes in {
        "one": {},
        "two": {"engine": "other"},
        "three": {"query_text": run.header.query_text + "\n", "query_name": "mine"},
        "four": {"workload": {**run.header.workload, "seed": 99}, "factor": 10.0},
    }.items():
        keep(folder / "runs" / place, (replace(run, header=replace(run.header, **changes)), verdict))
    (folder / "heat.toml").write_text(EXPERIMENT)
    (folder / "readings.nq").write_text("")
    return folder


def test_runs_of_the_same_query_and_stream_are_found_from_a_run(folder):
    with bench(folder) as client:
        page = client.get("/runs/run/runs/one").text
        leads = {
            words: unescape(address) for address, words in re.findall(r'class="button" href="([^"]*)">([^<]*)<', page)
        }
        queries = client.get(leads["2 more runs of this query"]).text
        assert set(re.findall(r'href="/runs/run/runs/(\w+)"', queries)) == {"four", "one", "two"}
        streams = client.get(leads["2 more runs of this stream"]).text
        assert set(re.findall(r'href="/runs/run/runs/(\w+)"', streams)) == {"one", "two", "three"}
        assert "3 runs as a matrix" in client.get(leads["All runs of this query as a matrix"]).text
        live = client.get(leads["Register this query live"]).text
    asked = RunLines(folder).of(["runs/one", "runs/three"])
    assert asked[0].asked["query"] != asked[1].asked["query"]
    assert "SELECT" in live.partition("<textarea")[2].partition("</textarea>")[0]


@pytest.mark.parametrize(
    ("words", "kind", "address"),
    [
        ("OTHER live", None, ""),
        ("runs/two", "Runs", "/runs/run/runs/two"),
        ("mine", "Runs", "/runs/run/runs/three"),
        ("wslide stations", "Experiments", "/runs/experiment/heat.toml"),
        ("tumbling half-open", "Examples", "/playground/?case=tumbling-windows-are-half-open"),
        ("readings.nq", "Streams", "/live/new?sources=readings.nq"),
        ("glossary", "Help", "/help"),
    ],
)
def test_one_search_finds_pages_of_all_rooms(folder, words, kind, address):
    with bench(folder) as client:
        page = client.get(f"/search?q={words}").text
    assert (f">{kind}</h2>" in page) == (kind is not None)
    assert not address or f'href="{address}"' in page
    assert kind or "Nothing has all of these words." in page


def test_a_search_is_text_and_without_words_finds_nothing(folder):
    with bench(folder) as client:
        assert "<script>" not in client.get("/search?q=<script>alert(1)</script>").text.partition("<main")[2]
        assert 'class="hits"' not in client.get("/search").text
        assert client.get(f"/search?q={'a ' * 5000}").status_code == 200
        matrix = client.get("/runs/matrix?rows=system&columns=pace&q=runs/").text
        assert 'scope="col">10 times real time</th>' in matrix
