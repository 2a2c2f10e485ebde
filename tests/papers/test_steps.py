"""Steps of a reproduction are kept: killed, the same command goes on where it was; a whole one is shown at once."""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass

import pytest

from streamgauge.formats.seals import seal
from streamgauge.papers import reproduction
from streamgauge.papers.csrbench import measure
from streamgauge.papers.csrbench.measure import reproduce
from streamgauge.papers.reproduction import ReproductionSteps as Steps
from tests.papers import build


@dataclass(frozen=True)
class Value:
    number: int
    words: tuple[str, ...] = ()
    agrees: bool | None = None


@pytest.fixture
def data(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "one.ttl").write_text("one")
    return tmp_path / "data"


def never():
    pytest.fail("this step was done before")


def test_a_step_is_done_once_also_after_all_are(tmp_path, data):
    value = Value(3, ("a", "b"), True)
    assert Steps(tmp_path / "kept", data).do("one", Value, lambda: value) == value
    again = Steps(tmp_path / "kept", data)
    assert again.kept == 1
    assert again.do("one", Value, never) == value
    again.end()
    assert Steps(tmp_path / "kept", data).do("one", Value, never) == value
    assert Steps(tmp_path / "kept", data, again=True).do("one", Value, lambda: Value(4)) == Value(4)


def test_other_code_has_other_steps(tmp_path, data, monkeypatch):
    first = Steps(tmp_path / "kept", data)
    first.do("one", Value, lambda: Value(1))
    first.end()
    monkeypatch.setattr(reproduction, "_code", lambda: b"other")
    second = Steps(tmp_path / "kept", data)
    assert second.do("one", Value, lambda: Value(2)) == Value(2)
    second.end()
    assert len(list((tmp_path / "kept").iterdir())) == 1


def test_other_data_has_other_steps(tmp_path, data):
    Steps(tmp_path, data).do("one", Value, lambda: Value(1))
    (data / "one.ttl").write_text("other")
    assert Steps(tmp_path, data).do("one", Value, lambda: Value(2)) == Value(2)


@pytest.mark.parametrize("damage", ["", "{", '{"format": "x", "version": 1}', "DAMAGED"])
def test_a_damaged_step_is_done_again(tmp_path, data, damage):
    Steps(tmp_path / "kept", data).do("one", Value, lambda: Value(1))
    (file,) = (tmp_path / "kept").glob("*/one.json")
    file.write_text(damage.replace("DAMAGED", file.read_text().replace("1", '"x"')))
    assert Steps(tmp_path / "kept", data).do("one", Value, lambda: Value(2)) == Value(2)


def test_without_a_folder_nothing_is_kept(data):
    steps = Steps(None, data)
    assert [steps.do("one", Value, lambda number=number: Value(number)).number for number in (1, 2)] == [1, 2]
    assert steps.kept == 0


@pytest.mark.slow
def test_an_interrupted_reproduction_goes_on_and_a_whole_one_is_kept(tmp_path, monkeypatch):
    folder, told = build.csrbench(tmp_path / "data"), []

    def tell(what, _share):
        told.append(what)
        if len(told) == 9:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce(folder, lambda _run, _elements: None, tell, tmp_path / "kept")
    assert len(list((tmp_path / "kept").glob("*/cell-*.json"))) == 8
    whole = reproduce(folder, lambda _run, _elements: None, keep=tmp_path / "kept")
    assert whole == reproduce(folder, lambda _run, _elements: None)
    (kept,) = (tmp_path / "kept").iterdir()
    assert kept.name.startswith("whole-")
    with monkeypatch.context() as patch:
        patch.setattr(measure, "_cell", lambda *_: never())
        patch.setattr(measure, "_counts", lambda *_: never())
        assert reproduce(folder, lambda _run, _elements: never(), keep=tmp_path / "kept") == whole


SLOWLY = """
import time
from streamgauge.papers.csrbench import measure as csrbench
from streamgauge.cli.main import main

cell = csrbench._cell
def slowly(*words):
    time.sleep(0.2)
    return cell(*words)
csrbench._cell = slowly
main()
"""


@pytest.mark.server
@pytest.mark.prove
def test_killed_in_the_middle_it_goes_on(tmp_path):
    """What was kept before the kill is in the result of the command that goes on: one kept cell is marked."""
    words = [
        "reproduce",
        "csrbench",
        "--data",
        str(build.csrbench(tmp_path / "data")),
        "--runs",
        str(tmp_path / "runs"),
    ]
    first = subprocess.Popen([sys.executable, "-c", SLOWLY, *words], stdout=subprocess.DEVNULL)
    while len(kept := sorted((tmp_path / "runs").glob("unfinished-*/[!.]*.json"))) < 5:
        assert first.poll() is None, "it ended before it could be killed"
        time.sleep(0.01)
    first.kill()
    first.wait()
    file = kept[0]
    changed = json.loads(file.read_text().replace('"note": ""', '"note": "kept before the kill"'))
    file.write_text(json.dumps(seal(changed)))

    told = subprocess.run(
        [sys.executable, "-m", "streamgauge", *words, "--json"],
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 1, told.stderr
    cells = json.loads(told.stdout)["cells"]
    assert len(cells) == 21
    marked = [f"cell-{cell['engine']}-{cell['query']}.json" for cell in cells if cell["note"] == "kept before the kill"]
    assert marked == [file.name]
    (left,) = (tmp_path / "runs").iterdir()
    assert left.name.startswith("whole-"), "steps are kept when all are done"
