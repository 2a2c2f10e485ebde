"""What docs/stability.md promises is what there is: commands, exit codes, Python names, extension points, versions."""

import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
import yaml

import streamgauge
from streamgauge.cli.catalogue import COMMANDS
from streamgauge.cli.exits import Exit
from streamgauge.formats import run

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "stability.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def promised(title: str) -> list[str]:
    """What stands in backticks in the part that begins with a title in bold."""
    part = PAGE.partition(f"**{title}**")[2].partition("\n\n")[0].partition("The output of `--json`")[0]
    return re.findall(r"`([^`]+)`", part)


def test_commands_are_promised():
    assert promised("Commands") == list(COMMANDS)


def test_exit_codes_are_promised():
    assert [int(code) for code in re.findall(r"^\| (\d) \|", PAGE, re.M)] == sorted(Exit)


def test_python_names_are_promised():
    named = promised("Python")
    assert named[0] == "import streamgauge"
    assert [name for name in named[1:] if "." not in name] == streamgauge.__all__
    assert all(hasattr(streamgauge, name) for name in streamgauge.__all__)
    assert all(import_module(name) for name in named if name.startswith("streamgauge."))


def test_extension_points_are_promised():
    """Packages of whose entry points modules are taken: each that asks for its group's."""
    home = ROOT / "src" / "streamgauge"
    asks = [file for file in home.rglob("__init__.py") if "entry_points(group=" in file.read_text(encoding="utf-8")]
    groups = {f"streamgauge.{file.parent.relative_to(home).as_posix().replace('/', '.')}" for file in asks}
    assert set(promised("Extension points")) == groups
    assert all(getattr(import_module(group), "GROUP", group) == group for group in groups)


def test_versions_agree():
    assert PROJECT["version"] == streamgauge.__version__
    assert f"the run folder (version {run.VERSION})" in PAGE
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    assert headings[0] == "Unreleased" or headings[0].startswith(f"{streamgauge.__version__} (")
    assert all(re.fullmatch(r"Unreleased|\d+\.\d+\.\d+ \(\d{4}-\d\d-\d\d\)", heading) for heading in headings)


def test_the_citation_is_of_this_version():
    """The fields that the Citation File Format 1.2.0 needs; cffconvert finds the file valid."""
    result = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= set(result)
    assert (result["cff-version"], result["type"], result["title"]) == ("1.2.0", "software", "Streamgauge")
    assert (result["version"], result["license"]) == (streamgauge.__version__, PROJECT["license"])
    assert all(set(author) == {"name"} for author in result["authors"])


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14", "3.15"])
def test_pythons_are_told_as_they_are(version):
    """What is tested has a classifier, and no other version has one."""
    claimed = f"Programming Language :: Python :: {version}" in PROJECT["classifiers"]
    assert claimed == (f"CPython {version} on Linux" in PAGE)
    assert PROJECT["requires-python"] == ">=3.11"
