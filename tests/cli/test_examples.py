"""The examples of the pages on watching and serving run as they stand."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from streamgauge.engines import load
from streamgauge.services.queries.registry import Queries
from tests.services.queries.test_face import served

pytestmark = pytest.mark.server

DOCS = Path(__file__).resolve().parents[2] / "docs"


def examples(page: str, language: str) -> list[str]:
    """The blocks of code of a page in a language."""
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(), re.S)


def test_watching(capsys):
    names: dict[str, object] = {}
    for code in examples("watching.md", "python"):
        exec(compile(code, "docs/watching.md", "exec"), names)
    out = capsys.readouterr().out.splitlines()
    assert len(out) == 4 + 2 * 4 + 2 + 1 + 4
    assert out[0].startswith("10000 (0, 10000) [{'sensor': '<urn:sensor0>'")
    assert out[14] == "10000 11 0"


def test_python(capsys, monkeypatch):
    monkeypatch.chdir(DOCS.parent / "examples" / "parking")
    names: dict[str, object] = {}
    for code in examples("python.md", "python"):
        exec(compile(code, "docs/python.md", "exec"), names)
    out = capsys.readouterr().out.splitlines()
    assert len(out) == 15 + 1 + 1 + 1
    assert out[-3] == "['instant', 'start', 'end', 'change', 'lot', 'least']"
    assert out[-2].startswith("14 1772352127000 1772352070000 [{'lot': 'http://park.example/lot/")
    assert out[-1] == "[{'sensor': 'urn:s', 'name': 'roof'}]"


def test_serving():
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("curl is not here")
    (code,) = examples("serving.md", "sh")
    with served(Queries(load, ("live",))) as service:
        said = subprocess.run(
            ["sh", "-c", code.replace("http://127.0.0.1:8765", service.url)],
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert '"id":"q1"' in said.stdout
        assert 'id: 1\ndata: {"vars":["sensor","readings"]' in said.stdout
        assert service.queries.queries() == []


def test_every_limit_of_the_page_is_an_option():
    words = [sys.executable, "-m", "streamgauge.cli.main", "engine", "serve", "--help"]
    helped = subprocess.run(words, capture_output=True, text=True, env={"COLUMNS": "200"}, check=True).stdout
    for option in re.findall(r"`(--[a-z-]+)`", (DOCS / "serving.md").read_text()):
        assert option in helped
