"""The docs are true: every command has a heading, every page that is linked exists, examples parse."""

import re
from pathlib import Path

import pytest
import typer

from streamgauge.cli.main import app

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = sorted(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_heading(command):
    assert f"\n## {command}\n" in (ROOT / "docs" / "commands.md").read_text()


def test_no_heading_without_a_command():
    headings = re.findall(r"^## (.+)$", (ROOT / "docs" / "commands.md").read_text(), re.M)
    assert sorted(headings) == COMMANDS


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))], ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


def test_the_experiment_of_the_readme_is_one(tmp_path):
    from streamgauge.bench.experiments.experiment import read

    text = re.search(r"```toml\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    file = tmp_path / "select.toml"
    file.write_text(text[1])
    assert read(file).engine[0].name == "live"
