"""The command certify on a program with a fault: found, listed, explained by the oracle, stale once it is mended."""

import json
import shlex
import sys
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from streamgauge.cli.main import app

MINIMAL = (Path(__file__).resolve().parents[2] / "examples" / "engines" / "minimal.py").read_text()
FAULTY = MINIMAL.replace("while self.close <= item", "while self.close < item")
ONLY = ["--case", "borders", "--profile", "own"]


def certify(tmp_path, code: str, *more: str):
    file = tmp_path / "engine.py"
    file.write_text(code)
    words = shlex.join([sys.executable, str(file)])
    return CliRunner().invoke(app, ["certify", "--program", words, *ONLY, *more], catch_exceptions=False)


def findings(text: str) -> set[str]:
    return {each for entry in tomllib.loads(text)["deviation"] for each in entry["findings"]}


def test_a_program_that_is_right_is_certified(tmp_path):
    done = certify(tmp_path, MINIMAL)
    assert done.exit_code == 0
    assert ": certified, " in done.stdout
    assert "borders = (o, c]: this engine has borders = [o, c)" in done.stdout


def test_a_deviation_is_found_listed_and_stale_once_it_is_mended(tmp_path):
    listed = tmp_path / "deviations.toml"
    assert FAULTY != MINIMAL
    done = certify(tmp_path, FAULTY, "--deviations", str(listed))
    assert done.exit_code == 1
    assert "failing: tumbling windows are half-open @ own" in done.stdout

    done = certify(tmp_path, FAULTY, "--deviations", str(listed), "--update")
    assert done.exit_code == 1
    assert "has no reason" in done.stdout
    text = listed.read_text()
    assert '"tumbling windows are half-open @ own"' in text
    assert findings(text) == {"reports lost at the tail", "nothing reported"}

    listed.write_text(text.replace('why = ""', 'why = "It waits for something later than the close."'))
    done = certify(tmp_path, FAULTY, "--deviations", str(listed), "--json")
    assert done.exit_code == 0
    data = json.loads(done.stdout)
    assert data["certified"]
    assert data["counts"]["deviating as listed"] > 0
    assert {task["deviation"] for task in data["tasks"] if task["standing"] == "deviating as listed"} != {None}

    done = certify(tmp_path, MINIMAL, "--deviations", str(listed))
    assert done.exit_code == 1
    assert "stale: tumbling windows are half-open @ own" in done.stdout

    assert certify(tmp_path, MINIMAL, "--deviations", str(listed), "--update").exit_code == 0
    assert not listed.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["live", "--program", "x"], "not both"),
        ([], "name an engine"),
        (["live", "--case", "no such case"], "no case is named like"),
        (["--program", "x", "--update"], "needs a list to write"),
    ],
)
def test_what_is_asked_wrongly_is_said(arguments, words):
    done = CliRunner().invoke(app, ["certify", *arguments])
    assert done.exit_code == 2
    assert words in done.output.replace("\n", " ").replace("│", "")


def test_a_program_that_is_not_there_is_bad_input(tmp_path):
    from streamgauge.cli.main import BAD_INPUT

    done = CliRunner().invoke(app, ["certify", "--program", str(tmp_path / "nothing"), *ONLY])
    assert isinstance(done.exception, (*BAD_INPUT, OSError))
