"""The container file, read as a linter does: paths are here, bases pinned, the inputs of the wheel come along."""

import re
import shlex
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from runpy import run_path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def instructions(text: str) -> list[tuple[str, str]]:
    """The instructions of a container file, a keyword and the rest each; comments out, lines joined."""
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    joined = re.sub(r"\\\n\s*", " ", lines)
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in joined.splitlines() if line)]


FILE = instructions((ROOT / "Containerfile").read_text(encoding="utf-8"))
COPIED = [shlex.split(rest)[:-1] for word, rest in FILE if word == "COPY" and "--from" not in rest]
RUNS = " ; ".join(rest for word, rest in FILE if word == "RUN")


def test_bases_are_pinned_to_a_release_of_a_python_that_is_tested():
    bases = [rest.split()[0] for word, rest in FILE if word == "FROM"]
    assert len(set(bases)) == 1
    match = re.fullmatch(r"docker\.io/library/python:(3\.\d+)\.\d+-slim-[a-z]+", bases[0])
    assert match
    assert f"Programming Language :: Python :: {match[1]}" in PROJECT["classifiers"]


def test_what_is_copied_is_here_and_not_ignored():
    ignored = (ROOT / ".containerignore").read_text(encoding="utf-8").split()
    for place in (place for places in COPIED for place in places):
        assert (ROOT / place).exists(), place
        assert not any(fnmatch(place, pattern.removeprefix("**/")) for pattern in ignored), place


def test_all_that_the_wheel_is_made_of_is_copied():
    copied = [ROOT / place for places in COPIED for place in places]
    inputs = {*run_path(str(ROOT / "docs" / "site" / "__main__.py"))["inputs"]()}
    needed = {*inputs, ROOT / "pyproject.toml", ROOT / PROJECT["readme"], ROOT / "docs" / "site" / "backend.py"}
    needed |= {ROOT / name for name in PROJECT["license-files"]} | {ROOT / "locks" / "all.txt"}
    assert len(inputs) > 50
    assert [file for file in sorted(needed) if not any(file.is_relative_to(place) for place in copied)] == []


def test_extras_and_programs_are_those_that_there_are():
    extras = {name for names in re.findall(r"(?:streamgauge|\.)\[([a-z,]+)\]", RUNS) for name in names.split(",")}
    assert extras == {"all"}
    assert extras <= set(PROJECT["optional-dependencies"])
    assert "openjdk-17-jre-headless" in RUNS
    assert "openjdk-17-jre-headless" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "--no-install-recommends" in RUNS


def test_modules_that_are_run_are_here():
    for module in re.findall(r"python -m ([\w.]+)", RUNS):
        assert (ROOT / "src" / (module.replace(".", "/") + ".py")).exists(), module


@pytest.mark.parametrize(("word", "wanted"), [("USER", "1000"), ("ENTRYPOINT", '["tini", "--", "streamgauge"]')])
def test_it_runs_as_nobody_special(word, wanted):
    assert [rest for item, rest in FILE if item == word] == [wanted]
