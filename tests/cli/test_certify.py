"""The command certify on a program with a fault: found, listed, explained by the oracle, stale once it is mended."""

import json
import shlex
import sys
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from streamgauge.cli.main import app

pytestmark = pytest.mark.server

MINIMAL = (Path(__file__).resolve().parents[2] / "examples" / "engines" / "minimal.py").read_text()
FAULTY = MINIMAL.replace("while self.close <= item", "while self.close < item")
ONLY = ["--case", "borders", "--semantics", "own"]


def certify(tmp_path, code: str, *more: str):
    file = tmp_path / "engine.py"
    file.write_text(code)
    words = shlex.join([sys.executable, str(file)])
    return CliRunner().invoke(app, ["certify", "--program", words, *ONLY, *more], catch_exceptions=False)


def findings(text: str) -> set[str]:
    return {item for entry in tomllib.loads(text)["deviation"] for item in entry["findings"]}


def test_a_program_that_is_right_is_certified(tmp_path):
    done = certify(tmp_path, MINIMAL, "--out", str(tmp_path / "page.html"), "--workbench", "http://127.0.0.1:8700")
    assert {path.suffix for path in tmp_path.glob("page.*")} == {".html", ".ttl", ".svg"}
    assert 'href="http://127.0.0.1:8700/playground/?case=' in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert done.exit_code == 0
    assert ": certified, " in done.stdout
    assert "borders = (o, c]: this engine has borders = [o, c)" in done.stdout


def test_a_deviation_is_found_listed_and_stale_once_it_is_mended(tmp_path):
    listed = tmp_path / "deviations.toml"
    listed.touch()
    assert FAULTY != MINIMAL
    done = certify(tmp_path, FAULTY, "--deviations", str(listed))
    assert done.exit_code == 1
    assert "failing: tumbling windows are half-open @ own" in done.stdout
    kinds = ("passed  ", "wrong   ", "refused ")
    told = [line for line in done.stdout.splitlines() if line.startswith(kinds) and " @ own" in line]
    assert done.stdout.startswith(kinds)
    assert any(line.startswith("wrong   tumbling windows are half-open @ own: ") for line in told)
    assert done.stdout.index(told[-1]) < done.stdout.index(": not certified")

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
        (["live", "--case", "no such case"], "no case has"),
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


BROKEN = {
    "a class is missing": "sys.exit('java.lang.NoClassDefFoundError: it/unimi/dsi/fastutil/ints/Int2IntMap')",
    "a module is missing": "import a_module_that_is_not_there",
    "a native crash": "import os, signal; signal.signal(signal.SIGSEGV, signal.SIG_DFL); os.kill(os.getpid(), 11)",
    "killed for memory": "import os; os.kill(os.getpid(), 9)",
}


@pytest.mark.parametrize("does", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("at", ["at the start", "in a task"])
def test_an_engine_that_is_set_up_wrongly_is_not_certified_at_all(tmp_path, does, at):
    counted = f"import sys\nwith open({str(tmp_path / 'starts')!r}, 'a') as starts: starts.write('.')\n"
    task = "sys.stdin.readline()\nprint('{\"ready\":true}', flush=True)\n" if at == "in a task" else ""
    done = certify(tmp_path, f"{counted}{task}{does}\n", "--deviations", str(tmp_path / "list.toml"), "--update")
    assert done.exit_code == 3
    assert "not set up rightly, so nothing is certified" in done.output
    assert len((tmp_path / "starts").read_text()) == 1
    assert not (tmp_path / "list.toml").exists()


def test_a_failure_of_its_own_is_still_a_deviation(tmp_path):
    done = certify(tmp_path, "import sys\nsys.stdin.readline()\nraise ValueError('not mine')\n")
    assert done.exit_code == 1
    assert "failing: " in done.stdout


def test_builds_of_an_engine_have_lists_of_their_own(tmp_path, monkeypatch):
    from streamgauge.engines import load

    monkeypatch.setenv("STREAMGAUGE_CQELS_HOME", str(tmp_path))
    (tmp_path / "cqels-1.0.0.jar").write_text("")
    assert load("cqels").deviations() == "deviations.toml"
    (tmp_path / "fastutil-6.4.2.jar").write_text("")
    assert load("cqels").deviations() == "deviations-citybench.toml"


def test_the_summary_names_the_value_of_the_semantics_that_explains_most_failures(tmp_path):
    """An engine that reports empty windows although its semantics leaves them out."""
    talkative = MINIMAL.replace('(content or len(self.semantics["report"]) == 1)', "True")
    assert talkative != MINIMAL
    asked = ["--semantics", "csparql", "--case", "gap"]
    done = certify(tmp_path, talkative, *asked)
    assert done.exit_code == 1
    sentence = (
        "4 of 4 failing tasks come out under report = window close (Windows without content are reported too); "
        "of those that passed none would fail under it"
    )
    lines = done.stdout.splitlines()
    assert lines.index(sentence) == next(at for at, line in enumerate(lines) if ": not certified" in line) + 1
    (shared,) = json.loads(certify(tmp_path, talkative, *asked, "--json").stdout)["shared"]
    assert (shared["value"], shared["explained"], shared["failing"]) == ("report = window close", 4, 4)


def test_a_value_that_right_tasks_speak_against_explains_nothing(tmp_path):
    """Of every window the last row is lost: no value of the semantics says so."""
    forgetful = MINIMAL.replace("rows = [row for row in map(self.row, content) if row]", "rows = []")
    assert forgetful != MINIMAL
    assert "come out under" not in certify(tmp_path, forgetful).stdout
