"""An engine in a package of the reader's own, made of the files that docs/adding-an-engine.md shows."""

import sys
import tomllib
from importlib import invalidate_caches
from pathlib import Path

import pytest

from streamgauge import engines
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.query import parse
from streamgauge.semantics.profiles import profile
from tests.cli.pages.markdown import page_blocks

ROOT = Path(__file__).parents[2]
QUERY = """SELECT ?s FROM NAMED WINDOW <urn:w> ON <urn:in> [RANGE PT5S STEP PT5S]
WHERE { WINDOW <urn:w> { ?s <urn:p> ?o } }"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """The package as an installation has it: its module, the program, and what it announces."""
    blocks = [block.text for block in page_blocks(ROOT / "docs" / "adding-an-engine.md")]
    (module,) = [text for text in blocks if text.startswith("# mine/__init__.py")]
    (project,) = [text for text in blocks if text.startswith("# pyproject.toml")]
    points = tomllib.loads(project)["project"]["entry-points"]["streamgauge.engines"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "__init__.py").write_text(module)
    (tmp_path / "mine" / "mine.py").write_bytes((ROOT / "examples" / "engines" / "minimal.py").read_bytes())
    announced = tmp_path / "my_engine-0.1.dist-info"
    announced.mkdir()
    (announced / "METADATA").write_text("Metadata-Version: 2.1\nName: my-engine\nVersion: 0.1\n")
    lines = "".join(f"{name} = {value}\n" for name, value in points.items())
    (announced / "entry_points.txt").write_text(f"[streamgauge.engines]\n{lines}")
    monkeypatch.syspath_prepend(str(tmp_path))
    invalidate_caches()
    yield
    sys.modules.pop("mine", None)


@pytest.mark.server
def test_it_is_an_engine_that_answers(package):
    assert "mine" in engines.names()
    engine = engines.load("mine")
    query, semantics = parse(QUERY), profile("csparql")
    assert engine.refuse(query, semantics) is None
    answers: list[Answer] = []
    session = engine.start(query, semantics, answers.append)
    session.push(StreamElement("urn:in", 1000, 0, (("<urn:a>", "<urn:p>", "<urn:b>"),)))
    session.advance(5000)
    session.close()
    assert [(answer.instant, answer.rows()) for answer in answers] == [(5000, [{"s": "<urn:a>"}])]
