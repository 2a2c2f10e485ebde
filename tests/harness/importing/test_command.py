"""The command import, and answers that are broken in every way: an error with a place, or a run; never a crash."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.cli.exits import Exit
from streamgauge.harness.importing import ForeignError, ImportRequest, formats
from streamgauge.semantics.profiles import CQELS, YABENCH
from tests.harness.importing import files


def test_import_then_check(tmp_path, command):
    (tmp_path / "QR_x").write_text(files.QR)
    (tmp_path / "SG_x").write_text(files.SG)
    (tmp_path / "q.rq").write_text(files.QUERY)
    words = ["--query", tmp_path / "q.rq", "--semantics", "yabench", "-D", "LEAST=50", "--out", tmp_path / "run"]
    output = command("import", tmp_path / "QR_x", *words, "--json")
    assert output.code == Exit.RIGHT
    assert json.loads(output.out)[0]["run"] == str(tmp_path / "run")
    assert command("check", tmp_path / "run", "--evaluator", "definition")[0] == Exit.RIGHT
    assert command("check", tmp_path / "run", "--rules", "yabench")[0] == Exit.RIGHT


def test_a_folder_gives_a_run_each_and_its_own_query_judges(tmp_path, command):
    folder = files.folder(tmp_path / "test")
    output = command("import", folder, "--out", tmp_path / "runs")
    assert output.code == Exit.RIGHT
    assert "judge with: streamgauge check" in output.out
    run = tmp_path / "runs" / "QR_small1"
    assert command("check", run, "--query", run / "oracle.rq", "--evaluator", "definition")[0] == Exit.RIGHT


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["none.json"], "there is no such file"),
        (["none.json", "--times", "never"], "choose from count, received, instant"),
        (["none.json", "--advance-to", "soon"], "duration"),
        (["none.json", "--semantics", "other"], "no semantics named"),
    ],
)
def test_bad_words_are_refused(tmp_path, command, words, told):
    output = command("import", *words, "--out", tmp_path / "run")
    assert output.code == Exit.BAD_INPUT
    assert told in " ".join(output.err.split())


def tried(path, request):
    """Read a file: an error that names it, or a run."""
    for name, one in formats().items():
        if name == "yabench-folder":
            continue
        one.recognises(path)
        told = path.name
        try:
            for imported in one.read(path, request):
                imported.run(0)
        except ForeignError as error:
            told = str(error)
        assert path.name in told


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def documents(draw):
    """A right answer file in which one value, anywhere, is something else."""
    document = {"relations": [files.relation(5000, ("http://ex.org/a", "1"))]}
    place, key = document, "relations"
    while draw(st.booleans()):
        inner = place[key]
        if not isinstance(inner, dict | list) or not inner:
            break
        key = draw(st.sampled_from(sorted(inner) if isinstance(inner, dict) else range(len(inner))))
        place = inner
    place[key] = draw(VALUES)
    return json.dumps(document)


@given(text=documents() | st.text(max_size=40) | VALUES.map(json.dumps))
def test_broken_json_never_crashes(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "cqels-answer.json"
    path.write_text(text)
    tried(path, ImportRequest(query=files.QUERY, stream=path, semantics=CQELS, values={"LEAST": "1"}))


@given(
    lines=st.lists(
        st.sampled_from(
            ["1000", "2000", "s\tv\t", "a\tb\t", "\t", "", "x^^y\t1\t", "_:a\t<\t", "\x00\t\ud7ff\t", "9" * 30]
        )
        | st.text(max_size=12),
        max_size=6,
    )
)
def test_broken_qr_files_never_crash(tmp_path_factory, lines):
    path = tmp_path_factory.getbasetemp() / "QR_broken"
    path.write_text("\n".join(lines), encoding="utf-8", errors="surrogatepass")
    tried(path, ImportRequest(query=files.QUERY, stream=path, semantics=YABENCH, values={"LEAST": "1"}))
