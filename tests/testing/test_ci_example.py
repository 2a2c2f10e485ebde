"""The GitHub Actions job of the documentation: the example file, whose commands can be typed."""

import re
import shlex
from pathlib import Path

import yaml

from streamgauge.testing.plugin import OPTIONS
from tests.cli.pages.markdown import page_blocks
from tests.cli.test_help import context

ROOT = Path(__file__).resolve().parents[2]
WORKFLOW = ROOT / "examples" / "ci" / "streamgauge.yml"
STEPS = yaml.safe_load(WORKFLOW.read_text())["jobs"]["streamgauge"]["steps"]


def test_the_page_shows_the_example():
    (block,) = (block for block in page_blocks(ROOT / "docs" / "ci.md") if block.language == "yaml")
    assert block.text == WORKFLOW.read_text()


def test_its_commands_can_be_typed():
    typed = [line for step in STEPS for line in step.get("run", "").splitlines() if line.startswith("streamgauge ")]
    assert len(typed) == 3
    for line in typed:
        context(shlex.split(re.split(r" (?:>>?|\|\|) ", line)[0])[1:])


def test_its_options_of_pytest_are_the_plugins():
    (suite,) = (step["run"] for step in STEPS if step.get("name") == "Conformance")
    named = set(re.findall(r"--streamgauge-(\w+)", suite))
    assert named
    assert named <= {name for name, _, _ in OPTIONS}
