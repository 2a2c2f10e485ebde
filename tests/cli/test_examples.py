"""Every block of the README and of docs/ is run as it stands, page by page, in a fresh folder (tests/cli/pages)."""

import fcntl
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import notebooks
from tests.cli.pages.markdown import page_blocks
from tests.cli.pages.reading import MissingProgramError, read_page
from tests.cli.pages.shell import ENDLESS, OTHERS, Shell

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
PAGES = {page.name: page_blocks(page) for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]}
DRAWN = "report.md"
"""The page whose reports have their plots drawn."""


def marked(name: str, *, proven: bool):
    """A page as a test's parameter, with the marks that its blocks ask for."""
    blocks = [block for block in PAGES[name] if block.runs and (proven or "prove" not in block.marks)]
    text = "".join(block.text for block in blocks)
    marks = [pytest.mark.server]
    if ENDLESS.search(text):
        marks.append(pytest.mark.xdist_group("ports"))
    if "streamgauge stream" in text:
        marks.append(pytest.mark.spark)
    heavy = [block.marks["heavy"] for block in blocks if "heavy" in block.marks]
    if proven:
        marks.append(pytest.mark.prove)
    elif heavy:
        marks.append(pytest.mark.heavy(" and ".join(heavy)))
    return pytest.param(name, marks=marks, id=name)


RUN = [name for name, blocks in PAGES.items() if any(block.runs and "prove" not in block.marks for block in blocks)]
PROVEN = [name for name, blocks in PAGES.items() if any(block.runs and "prove" in block.marks for block in blocks)]


@pytest.fixture
def shell(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Shell]:
    """A reader's shell in an empty folder; `streamgauge` and `python` are this checkout's."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, words in {"streamgauge": "-m streamgauge", "python": ""}.items():
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
        (programs / name).chmod(0o755)
    if request.node.get_closest_marker("spark"):
        request.getfixturevalue("spark")
    (tmp_path / "reader").mkdir()
    environment = {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTEST_ADDOPTS": " ".join(f"-p no:{name}" for name in OTHERS),
    }
    shell = Shell(tmp_path / "reader", tmp_path, environment)
    with (Path(tempfile.gettempdir()) / f"streamgauge-ports-{os.getuid()}").open("w") as ports:
        if "ports" in [mark.args[0] for mark in request.node.iter_markers("xdist_group")]:
            fcntl.flock(ports, fcntl.LOCK_EX)  # pages name the servers' own ports: two suites take turns
        try:
            yield shell
        finally:
            shell.close()


def read(name: str, shell: Shell, *, proven: bool) -> None:
    """Do what a reader of the page does; skipped where a program that it calls is not here."""
    try:
        read_page(PAGES[name], shell, proven=proven)
    except MissingProgramError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", [marked(name, proven=False) for name in RUN])
def test_the_blocks_of_a_page(name, shell, request):
    if name != DRAWN:
        request.getfixturevalue("undrawn")
    read(name, shell, proven=False)


@pytest.mark.parametrize("name", [marked(name, proven=True) for name in PROVEN])
def test_the_long_blocks_of_a_page_too(name, shell):
    read(name, shell, proven=True)


@pytest.mark.parametrize("notebook", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.name)
def test_a_notebook_is_stored_with_the_outputs_of_its_cells(notebook):
    assert notebooks.stored(notebooks.run(notebook)) == notebook.read_text(encoding="utf-8"), (
        "python -m tests.notebooks"
    )


def test_every_limit_of_the_page_is_an_option():
    from streamgauge.cli.main import load

    options = {name for param in load("engine").commands["serve"].params for name in param.opts}
    matches = set(re.findall(r"`(--[a-z-]+)`", (ROOT / "docs" / "serving.md").read_text()))
    assert matches
    assert matches <= options
