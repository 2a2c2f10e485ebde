"""One more engine, dialect, workload, fault, ...: a new file in the folder of its kind, and no other file is edited.

Each case puts a module into a temporary folder that the package's path names too, and looks for it where users do.
"""

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest

NAME = "newcomer"


class Extension(NamedTuple):
    """A package whose modules are found by being there: the text of one more, the caches, and the list of names."""

    package: str
    text: str
    caches: tuple[str, ...]
    names: Callable[[Any], object]


EXTENSIONS = {
    "engine": Extension(
        "engines",
        "def refuse(query, semantics):\n    return None\n\ndef start(query, semantics, emit):\n    ...\n",
        (),
        lambda package: package.names(),
    ),
    "dialect": Extension(
        "query.dialects",
        f'NAME = "{NAME}"\nCLAUSE = ""\n\ndef recognises(text):\n    return False\n',
        ("load",),
        lambda package: package.load(),
    ),
    "fault": Extension(
        "oracle.diagnosis.faults",
        "def proposals(seen):\n    return ()\n",
        ("load",),
        lambda package: package.load(),
    ),
    "strategy": Extension(
        "servers.broker.strategies",
        "def start(rules):\n    ...\n",
        ("strategies",),
        lambda package: package.strategies(),
    ),
    "format of streams": Extension(
        "formats.streams",
        "from streamgauge.formats.streams.format import Format\n\n"
        "def read(path, reading):\n    return iter(())\n\n"
        f'FORMATS = (Format("{NAME}", "A new format", (".new",), read),)\n',
        ("stream_formats",),
        lambda package: package.stream_formats(),
    ),
    "annotation method": Extension(
        "servers.fragments.annotations",
        "def annotate(facts, style, fresh):\n    return []\n",
        (),
        lambda package: package.methods(),
    ),
    "format of recordings": Extension(
        "harness.importing",
        f'NAME = "{NAME}"\nABOUT = "A new one"\n\ndef recognises(path):\n    return False\n\n'
        "def read(path, request):\n    return ()\n",
        ("formats",),
        lambda package: package.formats(),
    ),
    "system of SEP-BM": Extension(
        "suites.sepbm.adapters",
        'ABOUT = "A new one"\nOPTIONS = {}\n\ndef start(options, clock):\n    ...\n',
        ("adapters",),
        lambda package: package.adapters(),
    ),
    "client scenario": Extension(
        "suites.crowds.systems",
        f'NAMES = ("{NAME}",)\n\ndef start(scenario, folder):\n    ...\n',
        ("systems",),
        lambda package: package.systems(),
    ),
    "plot": Extension(
        "report.plots",
        "from streamgauge.report.plots import Plot\n\n"
        f'PLOTS = (Plot("{NAME}", 100, lambda drawing, series: iter(())),)\n',
        ("plots",),
        lambda package: [plot.section for plot in package.plots()],
    ),
    "transport": Extension(
        "sources",
        f'SCHEMES = ("{NAME}",)\n',
        ("schemes",),
        lambda package: package.schemes(),
    ),
}


@pytest.fixture
def extended(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Extension]:
    """The package with one more module, which is forgotten afterwards."""
    extension = EXTENSIONS[request.param]
    package = import_module(f"streamgauge.{extension.package}")
    caches = [getattr(package, name) for name in extension.caches]
    (tmp_path / f"{NAME}.py").write_text(extension.text)
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    for cached in caches:
        cached.cache_clear()
    yield extension
    for cached in caches:
        cached.cache_clear()
    sys.modules.pop(f"streamgauge.{extension.package}.{NAME}", None)


@pytest.mark.parametrize("extended", EXTENSIONS, indirect=True)
def test_one_more_is_one_file(extended: Extension):
    assert NAME in extended.names(import_module(f"streamgauge.{extended.package}"))


def test_one_more_workload_is_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from streamgauge import workloads

    folder = tmp_path / NAME
    (folder / "queries").mkdir(parents=True)
    (folder / "queries" / "all.rq").write_text("SELECT * { ?s ?p ?o }")
    (folder / "__init__.py").write_text(
        "from pathlib import Path\n"
        f'NAME, ABOUT, PARAMETERS, QUERIES = "{NAME}", "", {{}}, Path(__file__).parent / "queries"\n'
    )
    monkeypatch.setattr(workloads, "__path__", [*workloads.__path__, str(tmp_path)])
    try:
        assert NAME in workloads.names()
        assert workloads.queries(workloads.load(NAME)) == ("all",)
    finally:
        sys.modules.pop(f"streamgauge.workloads.{NAME}", None)


def test_one_more_claim_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from streamgauge import papers
    from streamgauge.papers.reproduction import paper

    (tmp_path / "sepbm" / "claims").mkdir(parents=True)
    fields = 'place = "section 4.2"\npublished = "under 1 ms"\ntolerance = { at_most = 1 }\nmeasured = "by a clock"\n'
    (tmp_path / "sepbm" / "claims" / f"{NAME}.toml").write_text(f'claim = "{NAME}"\n{fields}value = ["mean"]\n')
    monkeypatch.setattr(papers, "__path__", [*papers.__path__, str(tmp_path)])
    made = paper("sepbm").reproduction("SEP-BM", (), {"mean": 0.5})
    (line,) = made.sections[-1].tables[0].lines
    assert line.cells[:3] == (NAME, "under 1 ms", "0.5")
    assert line.agrees


def test_one_more_error_class_is_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """A class in a file of its own, raised by an engine in another: its sentence is shown, with exit code 2."""
    from streamgauge import engines
    from streamgauge.cli.main import main

    (tmp_path / f"{NAME}_error.py").write_text(
        "from streamgauge.model.mistake import MistakeError\n\nclass NewcomerError(MistakeError, ValueError): ...\n"
    )
    (tmp_path / f"{NAME}.py").write_text(
        f"from {NAME}_error import NewcomerError\n\n"
        "def refuse(query, semantics):\n    raise NewcomerError('the sky is green: wait')\n\n"
        "def start(query, semantics, emit):\n    ...\n"
    )
    (tmp_path / "all.rq").write_text(
        "REGISTER STREAM <urn:o> AS SELECT * FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT1S STEP PT1S]\n"
        "WHERE { WINDOW <urn:w> { ?s ?p ?o } }"
    )
    (tmp_path / "stream.nq").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(engines, "__path__", [*engines.__path__, str(tmp_path)])
    words = ["query", str(tmp_path / "all.rq"), "--stream", str(tmp_path / "stream.nq"), "--engine", NAME]
    monkeypatch.setattr(sys, "argv", ["streamgauge", *words])
    try:
        with pytest.raises(SystemExit) as ended:
            main()
    finally:
        for name in (f"streamgauge.engines.{NAME}", f"{NAME}_error"):
            sys.modules.pop(name, None)
    assert ended.value.code == 2
    assert "the sky is green: wait" in capsys.readouterr().err
