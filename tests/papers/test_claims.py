"""Papers as data: every figure and claim has its place, tolerances decide, one table shows value, ours and why."""

from importlib.resources import files
from pathlib import Path

import pytest

from streamgauge import papers
from streamgauge.papers.reproduction import COLUMNS, Claim, claims_table, filed_claims, paper

PAPERS = ("csrbench", "sepbm", "tpf", "yabench")


def test_every_paper_with_data_is_known():
    home = files("streamgauge.papers")
    assert tuple(sorted(path.name for path in home.iterdir() if (path / "claims.toml").is_file())) == PAPERS
    assert all((home / name / "published.toml").is_file() for name in PAPERS)


@pytest.mark.parametrize("name", PAPERS)
def test_every_figure_and_claim_says_where_it_is_and_how_ours_is_measured(name: str):
    result = paper(name)
    assert result.source
    for key, figure in result.figures.items():
        assert figure.place, key
        assert figure.value is not None, key
    for key, claim in result.claims.items():
        assert all((claim.claim, claim.place, claim.published, claim.measured, claim.tolerated)), key


@pytest.mark.parametrize(
    ("tolerance", "ours", "holds"),
    [
        ({"more_than": 10}, 33.3, True),
        ({"more_than": 10}, 10, False),
        ({"less_than": 0}, -1, True),
        ({"less_than": 0}, 0, False),
        ({"at_most": 0.2}, [0.1, 0.2], True),
        ({"at_most": 0.2}, [0.1, 0.21], False),
        ({"at_least": 1}, [1, 1.0], True),
        ({"at_least": 1}, [1, 0.999], False),
        ({"near": [0.56, 0.2]}, 0.37, True),
        ({"near": [0.56, 0.2]}, 0.77, False),
        ({"between": [29.5, 30.5]}, 30.5, True),
        ({"between": [29.5, 30.5]}, 30.6, False),
        ({"factor": [2, 2]}, 3.9, True),
        ({"factor": [2, 2]}, 4, False),
        ({"factor": [2, 2]}, 1, False),
        ({"equal": ["W3", "W4"]}, ["W3", "W4"], True),
        ({"equal": ["W3", "W4"]}, ["W4", "W3"], False),
        ({"order": "falling"}, [3, 2, 1], True),
        ({"order": "falling"}, [3, 3, 1], False),
        ({"order": "rising"}, [1, 2], True),
        ({"order": "not falling"}, [1, 1, 2], True),
        ({"order": "not falling"}, [1, 2, 1], False),
        ({"at_least": 1, "at_most": 2}, 3, False),
        ({}, 3, None),
    ],
)
def test_a_tolerance_decides(tolerance: dict, ours: object, holds: bool | None):
    assert Claim("c", "table 1", "p", "m", tolerance).within(ours) is holds


SERVER = Claim(
    "CPU, {queries} queries", "figure 2", "at most 1%", "CPU of the tree", {"at_most": 1}, why="{ours} has all workers"
)


def test_a_claim_beside_ours_says_why_only_where_ours_is_off():
    assert SERVER.beside(0.5, "0.5%", queries="identical").line.cells == (
        "CPU, identical queries", "at most 1%", "0.5%", "at most 1", "figure 2", "",
    )  # fmt: skip
    off = SERVER.beside(1.5, "1.5%", queries="identical")
    assert (off.holds, off.why) == (False, "1.5% has all workers")


def test_what_was_not_measured_is_not_compared():
    missing = SERVER.beside(None, queries="distinct")
    assert (missing.ours, missing.holds, missing.why) == ("–", None, "")


def test_a_claim_that_does_not_count_is_explained_and_not_compared():
    told = Claim("c", "table 1", "p", "m", {"equal": 1}, why="another clock", counts=False).beside(2, "2")
    assert (told.holds, told.why) == (None, "another clock")


def test_the_table_has_a_column_for_reasons_only_where_there_is_one():
    right, off = (SERVER.beside(ours, f"{ours}%", queries="all") for ours in (0.5, 1.5))
    assert claims_table("", [right]).columns == COLUMNS[:-1]
    assert claims_table("", [right, off]).columns == COLUMNS
    assert [line.agrees for line in claims_table("", [right, off]).lines] == [True, False]


FILED = """
claim = "mean notification time, incremental"
place = "section 4.2"
published = "under 1 ms"
tolerance = { at_most = 1 }
measured = "over all notifications"
value = ["runs", "together/incremental", 0]
"""


def test_one_more_claim_is_one_more_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "sepbm" / "claims").mkdir(parents=True)
    (tmp_path / "sepbm" / "claims" / "mean.toml").write_text(FILED)
    monkeypatch.setattr(papers, "__path__", [*papers.__path__, str(tmp_path)])
    data = {"runs": {"together/incremental": [0.15]}}
    made = paper("sepbm").reproduction("SEP-BM", (), data)
    (line,) = made.sections[-1].tables[0].lines
    assert line.cells[:3] == ("mean notification time, incremental", "under 1 ms", "0.15")
    assert made.compared == (1, 1)
    assert [claim.holds for claim in filed_claims("sepbm", {"runs": {}})] == [None]
    assert paper("tpf").reproduction("TPF", (), {}).sections == ()
