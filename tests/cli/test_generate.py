"""generate --annotated: every method's data set says the facts of the stream."""

import subprocess
import sys
import time
from datetime import UTC, datetime

import anyio
import pytest
import typer
from typer.testing import CliRunner

from streamgauge.cli import data
from streamgauge.cli.data import facts_of, latest, styles
from streamgauge.formats.stream import elements
from streamgauge.formats.streams import FormatError
from streamgauge.fragments import watch
from streamgauge.servers.fragments.annotations import method, methods
from streamgauge.servers.fragments.writes.files import read_quads
from streamgauge.workloads import load

PROGRAM = [sys.executable, "-m", "streamgauge.cli.main"]
SMALL = {"per_hour": 20, "ahead": "20m", "duration": "20s", "delay_changes": 0.5}
OPTIONS = [word for name, value in SMALL.items() for word in (f"--{name.replace('_', '-')}", str(value))]


def run(*words):
    app = typer.Typer()
    data.register(app)
    done = CliRunner().invoke(app, list(map(str, words)))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.output


def test_every_methods_file_says_the_streams_facts(tmp_path):
    out = tmp_path / "sets"
    assert run("generate", "trains", "--out", out, "--annotated", "all", *OPTIONS)[0] == 0
    begins = int(datetime(2014, 12, 6, tzinfo=UTC).timestamp() * 1000)
    stream = elements(load("trains").plan(0, **SMALL).table())
    said = [fact for element in stream for fact in facts_of(element, begins)]
    assert len(said) > len(latest(said)) > 5
    assert {path.name for path in out.iterdir()} == {f"{style.method}-{style.label}.nq" for style in styles("all")}
    for style in styles("all"):
        result = method(style.method).facts(list(read_quads(out / f"{style.method}-{style.label}.nq")), style)
        timed = {(fact.triple, fact.initial, fact.final) for fact in result if not fact.static}
        if style.label == "interval":
            assert timed == {(fact.triple, fact.initial, fact.final) for fact in said}
        else:
            assert timed == {(fact.triple, None, fact.final) for fact in latest(said)}
        assert sum("headSign" in fact.triple[1] for fact in result if fact.static) > 5


def test_an_unknown_method_is_refused_with_those_there_are(tmp_path):
    code, said = run("generate", "trains", "--out", tmp_path / "x", "--annotated", "graphs,colours")
    assert code == 2
    assert "'colours'" in said
    assert all(name in said for name in methods())


PAPER = """PREFIX t: <http://example.org/train#>
SELECT ?delay ?platform ?headSign ?routeLabel ?departureTime WHERE { _:id t:delay ?delay. _:id t:platform ?platform.
  _:id t:departureTime ?departureTime. _:id t:headSign ?headSign. _:id t:routeLabel ?routeLabel. }"""


@pytest.mark.server
def test_static_data_and_a_feed_answer_the_papers_query(tmp_path):
    """Five patterns, of which two change: without the static data beside the feed the answer was empty."""
    out, static = tmp_path / "departures", tmp_path / "trains.nt"
    assert run("generate", "trains", "--out", out, "--static", static, *OPTIONS) == (0, "")
    serve = [*PROGRAM, "fragments", "serve", static, "--feed", f"trains={out}", "--pace", "1", "--port", "0"]
    with subprocess.Popen(list(map(str, serve)), stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            output = next(line for line in server.stderr if " at http" in line)
            address = f"{output.split()[2]}trains"
            stop = time.monotonic() + 60
            rows = []
            while not rows and time.monotonic() < stop:  # the feed begins beside the server
                rows = anyio.run(polled, address)
        finally:
            server.kill()
    assert rows
    assert all(term is not None for row in rows for term in row)


async def polled(address):
    return (await anext(watch(PAPER, [address]))).added


def test_static_data_do_not_replace_a_file(tmp_path):
    static = tmp_path / "static.nt"
    static.write_text("here")
    with pytest.raises(FormatError, match="already exists"):
        run("generate", "trains", "--out", tmp_path / "a", "--static", static)
    assert static.read_text() == "here"
