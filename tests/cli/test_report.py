"""``streamgauge report``: formats are printed or written, figures go into a folder, mistakes are said."""

import shutil
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from streamgauge import report
from streamgauge.formats.run import write_run
from streamgauge.formats.stream import write
from streamgauge.semantics.profiles import RSPQL
from tests.cli.test_explain import QUERY
from tests.notation import stream
from tests.oracle.runs import TEXT, right_run


@pytest.fixture
def judged(tmp_path, command):
    run = right_run(replace(RSPQL, name="close"), sparql="SELECT ?s ?o { ?s <urn:p> ?o }", named=False)
    run = replace(run, header=replace(run.header, query_text=QUERY), answers=run.answers[1:])
    write_run(tmp_path / "run", run)
    write(stream(TEXT), tmp_path / "run" / "stream.parquet")
    command("check", tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.slow
def test_markdown_is_printed_and_junit_written(judged, command, tmp_path):
    code, out, _ = command("report", judged, "--format", "markdown", "--title", "Mine")
    assert code == 0
    assert out.startswith("## Mine\n")
    assert "❌ wrong" in out
    assert f"streamgauge explain {judged} --window" in out
    shutil.copytree(judged, tmp_path / "deep" / "er" / "run")
    code, out, _ = command("report", tmp_path, "--format", "markdown")
    assert all(f"streamgauge explain {item} --window" in out for item in (judged, tmp_path / "deep" / "er" / "run"))
    code, out, _ = command("report", judged, "--format", "junit", "--out", tmp_path / "v.xml")
    assert (code, out.strip()) == (0, str(tmp_path / "v.xml"))
    (suite,) = ElementTree.parse(tmp_path / "v.xml").getroot()
    assert int(suite.get("failures")) == 1


@pytest.mark.slow
def test_figures_are_counted_and_a_file_in_their_place_is_refused(judged, command, tmp_path, monkeypatch):
    monkeypatch.setattr("streamgauge.cli.experiments.write_figures", lambda runs, folder: [folder] * len(runs))
    code, out, err = command("report", judged, "--format", "markdown", "--figures", tmp_path / "figures")
    assert code == 0
    assert f"1 file in {tmp_path / 'figures'}" in err
    assert "1 file in" not in out
    monkeypatch.setattr("streamgauge.cli.experiments.write_figures", report.write_figures)
    (tmp_path / "figures").write_text("")
    code, _, err = command("report", judged, "--format", "markdown", "--figures", tmp_path / "figures")
    assert code == 2
    assert str(tmp_path / "figures") in err


def test_an_unknown_format_is_refused(judged, command):
    code, _, err = command("report", judged, "--format", "pdf")
    assert code == 2
    assert "html, markdown, junit" in err
