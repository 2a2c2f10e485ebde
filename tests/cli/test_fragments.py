"""``fragments serve``: it serves until it is told to stop, and again from its store; what cannot be served is said."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from streamgauge.cli.main import main
from tests.servers.fragments.pages.served import read

pytestmark = pytest.mark.server

PROGRAM = [sys.executable, "-c", "from streamgauge.cli.main import main; main()", "fragments", "serve"]


@contextmanager
def serving(*words: object) -> Iterator[tuple[str, str]]:
    """A server's address, and what it said before; stopped in the end, when it has to end in order."""
    with subprocess.Popen([*PROGRAM, *map(str, words), "--port", "0"], stderr=subprocess.PIPE, text=True) as running:
        try:
            assert running.stderr is not None
            output = running.stderr.readline()
            match = re.fullmatch(r"/data at (http://127\.0\.0\.1:\d+)/\n", running.stderr.readline())
            assert match, output
            yield match[1], output
            os.kill(running.pid, signal.SIGTERM)
            assert running.wait(300) == 143
            assert running.stderr.read() == ""
        finally:
            running.kill()


def test_it_serves_a_file_and_then_its_store(tmp_path):
    file = tmp_path / "data.trig"
    file.write_text("<urn:g> { <urn:s> <urn:p> <urn:o> } <urn:s> <urn:p> 5 .")
    words = (file, "--store", tmp_path / "store", "--page-size", "1", "--period", "60s")
    with serving(*words) as (address, said):
        assert said == f"/data: 2 quads of {file}\n"
        first = httpx.get(f"{address}/data", headers={"Accept": "application/n-quads"})
        assert first.headers["cache-control"] == "max-age=60"
        assert len(first.headers.get_list("date")) == 1
        page = read(first)
        assert (page.total, page.next) == (2, f"{address}/data?page=2")
        tag = first.headers["etag"]
    file.write_text("<urn:other> <urn:p> 6 .")
    with serving(*words, "--base", address) as (again, said):
        assert "is not read again" in said
        headers = {"Accept": "application/n-quads", "If-None-Match": tag}
        assert httpx.get(f"{again}/data", headers=headers).status_code == 304


def test_a_changed_file_is_loaded_into_its_store(tmp_path):
    file = tmp_path / "data.nq"
    file.write_text("<urn:a> <urn:p> _:b .\n<urn:b> <urn:p> <urn:o> <urn:g> .\n")
    words = (file, "--store", tmp_path / "store")
    with serving(*words):
        pass
    file.write_text("<urn:a> <urn:p> _:b .\n<urn:c> <urn:p> 'new' .\n<urn:d> <urn:p> 'new' .\n".replace("'", '"'))
    with serving(*words, "--reload") as (address, said):
        assert said == f"/data: 2 quads added, 1 removed by {file}\n"
        assert read(httpx.get(f"{address}/data", headers={"Accept": "application/n-quads"})).total == 3
    with serving(*words, "--reload") as (_, said):
        assert said == f"/data: 0 quads added, 0 removed by {file}\n"


def test_as_triples(tmp_path):
    file = tmp_path / "data.ttl"
    file.write_text("<urn:s> <urn:p> 5 .")
    with serving(file, "--triples", "data") as (address, _):
        response = httpx.get(f"{address}/data?graph=", headers={"Accept": "text/turtle"})
        assert (response.status_code, "not a parameter" in response.json()["error"]) == (400, True)
        assert read(httpx.get(f"{address}/data", headers={"Accept": "text/turtle"})).total == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("nowhere.nq",), "nowhere.nq"),
        (("--reload",), "name its folder by --store"),
        (("data.csv",), "no RDF format has the ending"),
        (("health.nq",), "cannot be named"),
        (("data.nq", "more/data.nq"), "two files have the data set name data"),
        (("data.nq", "--triples", "other"), "no such data set"),
        (("data.nq", "--method", "other"), "there is no annotation method 'other'"),
        (("data.nq", "--vocabulary", "other"), "choose from paper, prototype"),
        (("data.nq", "--period", "long"), "duration"),
        (("broken.nq",), "broken.nq, line 1"),
        ((), "nothing to serve"),
    ],
)
def test_what_cannot_be_served(monkeypatch, capsys, tmp_path, words, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "more").mkdir()
    for name in ("data.nq", "data.csv", "health.nq", "more/data.nq"):
        (tmp_path / name).write_text("<urn:s> <urn:p> <urn:o> .\n")
    (tmp_path / "broken.nq").write_text("nonsense\n")
    monkeypatch.setattr(sys, "argv", ["streamgauge", "fragments", "serve", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    output = capsys.readouterr().err
    assert says in " ".join(output.replace("│", " ").split())
    assert "Traceback" not in output
