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
