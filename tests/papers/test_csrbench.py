"""CSRBench's table 2: every cell from the recorded answers, and the command."""

import json

import pytest

from streamgauge.cli.exits import Exit
from streamgauge.harness.importing import ForeignError
from streamgauge.model.verdict import Diagnosis, Part
from streamgauge.papers.csrbench import measure
from streamgauge.papers.csrbench.measure import QUERIES, TABLE_2, reproduce
from tests.papers import build

pytestmark = pytest.mark.slow

FAULT = Diagnosis(((Part("faulty", "It is at fault."),),), 0, 3, 9, 0)
NEEDS_A_NOTE = {
    ("csparql", "q3"): "answers/2013-history/csparql-answer-3.e81b8c4.json",
    ("cqels", "q3"): "answers/2013-head/cqels-answer-3.json",
}

COUNTS = {
    ("csparql", 1): [(4, 15)] * 4 + [(3, 15)] * 7,
    ("csparql", 2): [(34, 15), (33, 15)],
    ("csparql", 3): [(9, 12)] * 2 + [(8, 12)] * 3,
    ("csparql", 4): [(9, 9)] * 2 + [(8, 8)] * 3,
    ("csparql", 5): [(34, 75), (33, 75), (32, 75), (31, 75), (30, 75), (33, 75)],
    ("csparql", 6): [(7, 6), (7, 6), (7, 5), (7, 7), (6, 6), (6, 5)],
    ("csparql", 7): [(7, 27), (7, 26), (7, 29), (7, 28), (6, 28), (6, 27)],
    ("cqels", 1): [(15, 15)] * 11,
    ("cqels", 2): [(15, 15)] * 2,
    ("cqels", 3): [(9, 12)] * 5,
    ("cqels", 4): [(18, 18)] * 2 + [(17, 17)] + [(18, 18)] * 2,
    ("cqels", 5): [(15, 15)] * 6,
    ("cqels", 6): [(6, 6), (5, 6), (3, 5), (4, 7), (4, 6), (5, 5)],
    ("cqels", 7): [(12, 27), (14, 26), (15, 29), (14, 28), (14, 28), (12, 27)],
    ("sparqlstream", 1): [(3, 15)] * 3 + [(4, 15)] + [(3, 15)] * 7,
    ("sparqlstream", 2): [(15, 15)] * 2,
    ("sparqlstream", 3): [(6, 12), (4, 12), (5, 12), (5, 12), (6, 12)],
    ("sparqlstream", 4): [(9, 9)] * 2 + [(8, 8)] * 3,
    ("sparqlstream", 5): [(26, 75)] * 6,
    ("sparqlstream", 6): [(5, 6), (4, 6), (2, 5), (3, 7), (3, 6), (4, 5)],
    ("sparqlstream", 7): [(5, 27), (5, 26), (5, 29), (4, 28), (4, 28), (5, 27)],
}
"""Relations and solutions that the oracle expects for t0 = 0, 1, 2, ... s."""

T0 = {
    "csparql": (0, 0, None, 0, None, 0, 0),
    "cqels": (0, 0, None, None, 0, None, None),
    "sparqlstream": (2000, 0, 3000, None, 0, 3000, 4000),
}
"""The first t0 (ms) under which the head recording of Q1 to Q7 passes as it is."""


@pytest.fixture(scope="module")
def explained():
    return []


@pytest.fixture(scope="module")
def found(shared_data, explained):
    def explain(run, elements):
        explained.append((run.header.engine, elements))
        return FAULT

    return reproduce(shared_data / "csrbench", explain)


def test_all_21_cells_of_table_2_come_out(found):
    cells = found.data["cells"]
    assert [(cell["engine"], cell["query"]) for cell in cells] == [(e, q) for e in TABLE_2 for q in QUERIES]
    assert [cell["ours"] for cell in cells] == [value for row in TABLE_2.values() for value in row]
    assert found.compared == (21, 21)
    assert {cell["rule"] for cell in cells} == {"csrbench"}


def test_the_two_cells_that_need_a_note_carry_it(found):
    noted = {(cell["engine"], cell["query"]): cell["file"] for cell in found.data["cells"] if cell["note"]}
    assert noted == NEEDS_A_NOTE
    notes = [cell["note"] for cell in found.data["cells"] if cell["note"]]
    assert "commit e81b8c4" in notes[0]
    assert "taken together by the second" in notes[1]
    assert all("the head recording as it is gives fail" in note for note in notes)


def test_each_cell_has_its_t0_and_file(found):
    for cell in found.data["cells"]:
        assert (cell["t0"] is None) == (cell["ours"] == "fail")
        assert cell["file"].startswith("answers/2013-")
    t0 = {(cell["engine"], cell["query"]): cell["t0"] for cell in found.data["cells"] if cell["t0"]}
    assert t0 == {("sparqlstream", q): ms for q, ms in (("q1", 2000), ("q3", 3000), ("q6", 3000), ("q7", 4000))}
    other = [(cell["engine"], cell["query"]) for cell in found.data["cells"] if cell["t0"] != cell["code_t0"]]
    assert other == [("cqels", "q3")]


def test_head_recordings_pass_as_they_are_from_their_first_t0(found):
    t0 = {engine: [] for engine in T0}
    for cell in found.data["cells"]:
        name = cell["engine"], cell["query"]
        assert ("the head recording as it is gives fail" in cell["note"]) == (name in NEEDS_A_NOTE)
        t0[cell["engine"]].append(None if cell["note"] else cell["t0"])
    assert {engine: tuple(row) for engine, row in t0.items()} == T0


def test_every_head_recording_that_fails_is_diagnosed(found, explained):
    diagnosed = [(cell["engine"], cell["query"]) for cell in found.data["cells"] if cell["diagnosis"]]
    failing = [("csparql", "q3"), ("csparql", "q5"), ("cqels", "q3"), ("cqels", "q4"), ("cqels", "q6"), ("cqels", "q7")]
    assert diagnosed == [*failing, ("sparqlstream", "q4")]
    assert found.data["cells"][4]["diagnosis"]["exact"] is True
    values = {
        engine: next(o for one in elements for _, p, o in one.added if p.endswith("floatValue>"))
        for engine, elements in explained
    }
    assert values["csparql"].endswith("integer>")
    assert values["cqels"].endswith("double>")


@pytest.mark.prove
def test_at_least_five_of_the_six_wrong_recordings_are_explained_exactly(shared_data):
    from streamgauge.oracle.diagnosis.diagnose import diagnose

    told = reproduce(shared_data / "csrbench", diagnose)
    exact = [cell["diagnosis"]["exact"] for cell in told.data["cells"] if cell["diagnosis"]]
    assert len(exact) == 6
    assert sum(exact) >= 5


def test_the_counts_are_there_for_every_t0(found):
    counts = found.data["counts"]
    assert len(counts) == 3 * (11 + 2 + 5 + 5 + 6 + 6 + 6)
    sizes = {cell: [] for cell in COUNTS}
    for one in counts:
        sizes[one["engine"], int(one["query"][1:])].append((one["relations"], one["mappings"]))
        assert one["t0"] == 1000 * (len(sizes[one["engine"], int(one["query"][1:])]) - 1)
    assert sizes == COUNTS
    assert counts[0] == {
        "engine": "csparql", "query": "q1", "t0": 0, "relations": 4, "mappings": 15, "by_its_code": [4, 15],
    }  # fmt: skip


def test_a_diagnosis_that_finds_no_difference_is_none(tmp_path):
    data = measure.CsrbenchData(build.csrbench(tmp_path))
    for said, told in ((Diagnosis(((),), 0, 0, 3), "those of the declared semantics"), (FAULT, "")):
        why, note = measure._explained(lambda run, elements, said=said: said, None, data.elements)
        assert (why is None) == bool(told)
        assert told in note


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(ForeignError, match="stream: missing: --data names a folder"):
        reproduce(tmp_path, lambda run, elements: None)


def test_the_command_prints_json_writes_a_page_and_says_that_values_differ(tmp_path, command):
    data, page = build.csrbench(tmp_path / "data"), tmp_path / "page.html"
    code, out, _ = command("reproduce", "csrbench", "--data", data, "--json", "--out", page)
    told = json.loads(out)
    assert code == Exit.WRONG
    assert (told["agree"], told["of"]) == (16, 21)
    assert set(told["cells"][0]) >= {"engine", "query", "published", "ours", "t0", "file", "note", "diagnosis"}
    assert "16 of 21" in page.read_text()


def test_the_command_prints_tables(tmp_path, command):
    told = command("reproduce", "csrbench", "--data", build.csrbench(tmp_path / "data")).out
    assert "16 of 21 published values that could be compared come out." in told
    assert "SPARQLstream" in told


def test_the_command_says_what_is_missing(tmp_path, command):
    code, _, err = command("reproduce", "csrbench", "--data", tmp_path)
    assert code == Exit.BAD_INPUT
    assert "stream: missing" in err
