"""The map of the code and the names of files in the documentation are true."""

import re
import tomllib
from collections import Counter
from fnmatch import fnmatch
from math import ceil
from pathlib import Path

import pytest

from tests.structure import ROOT, modules

PACKAGE = ROOT / "src" / "streamgauge"
DOCS = ROOT / "docs"
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md")))
FOLDER = re.compile(r"[a-z_/*]+/")
MODULE = re.compile(r"[a-z_/]+")
FILE = re.compile(r"[\w-]+(/[\w-]+)+\.(py|toml|md|css|java|sh)")
ROWS = re.findall(r"^\| `([a-z_/]+)/` \| (.+) \|$", (DOCS / "map.md").read_text(encoding="utf-8"), re.M)
"""The rows of the table of folders: a folder, and what is in it."""


def spans(text: str) -> list[str]:
    """What stands in backticks."""
    return re.findall(r"`([^`]+)`", text)


def is_module(place: Path) -> bool:
    return place.with_name(f"{place.name}.py").exists() or (place / "__init__.py").exists()


def test_every_folder_is_on_the_map_once():
    named = [base for base, _ in ROWS]
    named += [f"{base}/{span[:-1]}" for base, text in ROWS for span in spans(text) if FOLDER.fullmatch(span)]
    there = {str(file.parent.relative_to(PACKAGE)) for file in PACKAGE.rglob("*") if file.is_file()}
    there = {folder for folder in there if "__pycache__" not in folder} - {"."}
    times = Counter(folder for folder in there for name in named if fnmatch(folder, name))
    assert {folder: times[folder] for folder in there if times[folder] != 1} == {}
    assert [name for name in named if not any(fnmatch(folder, name) for folder in there)] == []


@pytest.mark.parametrize(("base", "text"), ROWS, ids=[base for base, _ in ROWS])
def test_the_modules_of_a_row_are_there(base, text):
    named = [span for span in spans(text) if MODULE.fullmatch(span) and not span.endswith("/")]
    commands = {"init", "ui", "watch", "awatch"}
    assert [name for name in named if name not in commands and not is_module(PACKAGE / base / name)] == []


def test_rows_are_in_the_order_of_imports():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["name"] == "imports go one way")
    place = {name: at for at, layer in enumerate(layers) for name in re.findall(r"streamgauge\.(\w+)", layer)}
    order = [place[base.partition("/")[0]] for base, _ in ROWS]
    assert order == sorted(order)


def test_the_map_fits_on_a_screen():
    """Fifty lines of 150 characters, as Markdown shows them: without addresses of links and backticks."""
    shown = [re.sub(r"\]\([^)]*\)|[`\[]", "", f"{base}/   {text}") for base, text in ROWS]
    assert sum(ceil(len(row) / 150) for row in shown) <= 50


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_a_page_names_are_there(page):
    homes = (ROOT, PACKAGE, DOCS, ROOT / "examples")
    text = page.read_text(encoding="utf-8")
    named = [span for span in spans(text) if FILE.fullmatch(span)]
    wanted = [name for name in named if not re.search(r"/[A-Z]+\.toml$", name)]  # a name to be chosen
    assert [name for name in wanted if not any((home / name).exists() for home in homes)] == []


def test_modules_that_contributors_are_led_to_are_there():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = [span for span in spans(text) if re.fullmatch(r"[a-z]+(/[a-z_]+)+", span)]
    assert len(named) > 2
    there = {name for name in named for home in (ROOT, PACKAGE) if (home / name).is_dir() or is_module(home / name)}
    assert sorted(set(named) - there) == []


@pytest.fixture(scope="module")
def found():
    """The modules of the repository, read when their text is asked for."""
    return modules()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_names_of_a_page_are_there(page, found):
    text = page.read_text(encoding="utf-8")
    names = [span for span in spans(text) if re.fullmatch(r"streamgauge(\.\w+)+", span) and span != "streamgauge.toml"]
    assert [name for name in names if not _known(name, found)] == []


def _known(name, found):
    """A module, or a name that the module before it has in its text."""
    module, _, last = name.rpartition(".")
    return name in found or (module in found and re.search(rf"\b{last}\b", found[module].text))


@pytest.mark.slow
def test_cited_pages_are_there():
    files = [file for home in ("src", "tests", "benchmarks", "examples") for file in (ROOT / home).rglob("*.*")]
    kinds = {".py", ".toml", ".md", ".html", ".j2", ".js", ".css", ".java"}
    cited = {
        (page, str(file.relative_to(ROOT)))
        for file in files
        if file.suffix in kinds and "node_modules" not in file.parts
        for page in re.findall(r"\bdocs/[\w-]+\.md\b", file.read_text(encoding="utf-8"))
    }
    assert len(cited) > 20
    assert sorted(entry for entry in cited if not (ROOT / entry[0]).exists()) == []
