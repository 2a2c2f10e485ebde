"""Tests that forked workers run are told as those of one process, whatever happens to a worker."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

CONFTEST = """
import os, pytest
pytest_plugins = ["tests.durations", "tests.spread"]

def pytest_itemcollected(item):
    item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))

def note(text):
    with open(os.environ["NOTES"], "a") as file:
        file.write(f"{text} {os.environ['PYTEST_XDIST_WORKER']}\\n")

@pytest.fixture(scope="session")
def far():
    note("far begins")
    yield
    note("far ends")

@pytest.fixture(scope="module")
def near(request):
    note(f"{request.module.__name__} begins")
    yield
    note(f"{request.module.__name__} ends")
"""

DYING = """
import os, pytest

def test_passes(near, tmp_path):
    assert tmp_path.parent.name.startswith("worker-")

def test_fails(near):
    print("words on the way")
    assert 0

def test_dies(near):
    os.kill(os.getpid(), 9)

def test_after(near):
    pass

@pytest.mark.skip(reason="left out")
def test_is_skipped():
    pass
"""

SHARING = """
def test_one(far, near):
    pass

def test_two(far, near):
    pass
"""

ENDING = """
import pytest

@pytest.fixture(scope="session")
def ends_badly():
    yield
    raise ValueError("the end of a session")

def test_passes(ends_badly):
    pass
"""

BEGINNING = """
import threading, time
threading.Thread(target=time.sleep, args=(3,), daemon=True, name="early").start()

def test_passes():
    pass
"""


def outcome(folder: Path, count: int, **files: str) -> subprocess.CompletedProcess[str]:
    """Run files of tests in that many workers."""
    for name, text in {"conftest": CONFTEST, **files}.items():
        (folder / f"{name}.py").write_text(text)
    words = ["-rA", "-v", "-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:schemathesis", "-p", "no:xdist"]
    command = [sys.executable, "-m", "pytest", *words, "-p", "no:hypothesispytest", "--spread", str(count), str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NOTES": str(folder / "notes"), "PYTEST_ADDOPTS": ""}
    environment.pop("PYTEST_XDIST_WORKER", None)
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.server
def test_a_worker_that_dies_is_replaced(tmp_path):
    done = outcome(tmp_path, 2, test_dying=DYING, test_sharing=SHARING)
    assert done.returncode == 1
    assert "2 failed, 4 passed, 1 skipped" in done.stdout, done.stdout
    assert "a worker ended with -9 while it ran test_dying.py::test_dies" in done.stdout
    assert "words on the way" in done.stdout
    notes = (tmp_path / "notes").read_text().splitlines()
    assert [note for note in notes if note.startswith("test_dying")] == [
        "test_dying begins gw0",
        "test_dying begins gw2",
        "test_dying ends gw2",
    ]


@pytest.mark.server
def test_a_fixture_of_the_session_lasts_for_all_groups_of_a_worker(tmp_path):
    done = outcome(tmp_path, 2, test_first=SHARING, test_second=SHARING, test_third=SHARING)
    assert "6 passed" in done.stdout, done.stdout
    notes = (tmp_path / "notes").read_text().splitlines()
    for worker in ("gw0", "gw1"):
        own = [note.removesuffix(f" {worker}") for note in notes if note.endswith(worker)]
        assert own.count("far begins") == own.count("far ends") <= 1
        assert own[-1:] in ([], ["far ends"])
    assert len([note for note in notes if note.startswith("test_")]) == 6


@pytest.mark.server
def test_a_session_that_ends_badly_fails(tmp_path):
    done = outcome(tmp_path, 2, test_ending=ENDING)
    assert done.returncode == 1
    assert "ValueError: the end of a session" in done.stdout
    assert "1 failed, 1 passed" in done.stdout


@pytest.mark.server
def test_no_worker_is_forked_beside_a_thread(tmp_path):
    done = outcome(tmp_path, 2, test_beginning=BEGINNING)
    assert done.returncode == 4
    assert "'early'" in done.stderr + done.stdout


@pytest.mark.server
def test_the_first_failure_may_end_all(tmp_path):
    many = "import pytest\n\n@pytest.mark.parametrize('n', range(50))\ndef test_it(n):\n    assert n\n"
    done = outcome(
        tmp_path, 2, conftest=CONFTEST + "\ndef pytest_configure(config): config.option.maxfail = 1\n", test_many=many
    )
    assert "1 failed" in done.stdout
    assert "stopping after 1 failures" in done.stdout
