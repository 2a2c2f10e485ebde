"""``watch``: answers as they come from a real server; what cannot be is said in a sentence."""

import io
import re
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from rich.console import Console

from streamgauge.cli.main import main
from streamgauge.cli.watch import _Shown
from streamgauge.formats.lines import decode_answer
from streamgauge.model.answer import Answer
from streamgauge.servers.fragments.live_queries.poll_loop import Failed, Fresh

pytestmark = pytest.mark.server

RUN = [sys.executable, "-m", "streamgauge.cli.main"]
QUERY = "PREFIX t: <http://example.org/train#> SELECT ?id ?delay { ?id t:delay ?delay }"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder for the files of the module's server."""
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="module")
def address(folder):
    """The address of two data sets, each with one fact that ends in an hour, and one that does not."""
    ends = (datetime.now(UTC) + timedelta(hours=1)).isoformat(timespec="seconds").replace("+00:00", "Z")
    t, stamp = "http://example.org/train#", "http://www.w3.org/2001/XMLSchema#dateTime"
    text = (
        f'<{t}a> <{t}delay> "1" <{t}g> .\n<{t}g> <http://example.org/temporal#expiration> "{ends}"^^<{stamp}> .\n'
        f'<{t}b> <{t}delay> "2" .\n'
    )
    files = [folder / "trains.nq", folder / "written.nq"]
    for file in files:
        file.write_text(text)
    (folder / "tokens").write_text("a-secret-of-the-tests\n")
    (folder / "tokens").chmod(0o600)
    words = [*RUN, "fragments", "serve", *map(str, files), "--port", "0"]
    words += ["--token-file", str(folder / "tokens")]
    server = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    try:
        yield next(match[0] for line in server.stderr if (match := re.search(r"http://[0-9.:]+", line)))
    finally:
        server.terminate()
        server.communicate(timeout=300)


@pytest.fixture
def query(tmp_path):
    (tmp_path / "delays.rq").write_text(QUERY)
    return str(tmp_path / "delays.rq")


def test_json_lines_where_nobody_looks(query, address):
    words = [*RUN, "watch", query, f"{address}/trains", "--once"]
    done = subprocess.run(words, capture_output=True, timeout=300, check=True)
    answer = decode_answer(done.stdout)
    assert answer.columns == ("id", "delay")
    assert {row[1] for row in answer.added} == {'"1"', '"2"'}
    assert abs(answer.instant / 1000 - time.time()) < 60
    assert done.stderr == b""


def test_what_a_server_sends_is_shown_as_it_comes(query, address):
    words = [*RUN, "watch", query, f"{address}/written", "--push"]
    watching = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert decode_answer(watching.stdout.readline()).added
    assert b"listening" in watching.stderr.readline()
    head = {"authorization": "Bearer a-secret-of-the-tests", "content-type": "text/turtle"}
    new = '<http://example.org/train#c> <http://example.org/train#delay> "3" .'
    httpx.post(f"{address}/written", content=new, headers=head).raise_for_status()
    answer = decode_answer(watching.stdout.readline())
    watching.send_signal(signal.SIGINT)
    watching.communicate(timeout=300)
    assert {row[1] for row in answer.added} == {'"3"'}
    assert not answer.removed


def test_push_with_a_plan_that_polls_is_refused(query, command):
    output = command("watch", query, "http://127.0.0.1:9/trains", "--push", "--plan", "streamer")
    assert output.code == 2
    assert "leave one option out" in " ".join(output.err.replace("│", " ").split())


def test_control_c_leaves_in_order_and_says_how_much_it_was(query, address):
    words = [*RUN, "watch", query, f"{address}/trains"]
    watching = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert decode_answer(watching.stdout.readline()).added
    watching.send_signal(signal.SIGINT)
    _, err = watching.communicate(timeout=300)
    assert (watching.returncode, err) == (130, b"1 answer\n")


def test_a_server_that_is_not_there_is_said_and_waited_for(query):
    words = [*RUN, "watch", query, "http://127.0.0.1:9/trains"]
    watching = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    output = watching.stderr.readline().decode()
    watching.send_signal(signal.SIGINT)
    watching.communicate(timeout=300)
    assert "http://127.0.0.1:9/trains" in output
    assert "trying again in" in output


@pytest.mark.parametrize(
    ("text", "words", "told"),
    [
        ("SELECT * FROM <urn:g> { ?s ?p ?o }", [], "FROM"),
        ("SELECT * { ?s ?p ?o", [], "line 1"),
        ("SELECT (NOW() AS ?n) {}", [], "NOW"),
        (QUERY, ["--method", "tattoo"], "tattoo"),
        (QUERY, ["--plan", "guess"], "incremental, streamer"),
        (QUERY, ["--vocabulary", "french"], "paper, prototype"),
        (QUERY, ["--period", "soon"], "soon"),
    ],
)
def test_what_cannot_be_is_refused_by_name(tmp_path, monkeypatch, capfd, text, words, told):
    (tmp_path / "query.rq").write_text(text)
    command = ["streamgauge", "watch", str(tmp_path / "query.rq"), "http://127.0.0.1:9/", *words]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as ended:
        main()
    output = capfd.readouterr().err
    assert ended.value.code == 2
    assert told in output
    assert "Traceback" not in output


def test_the_table_marks_what_came_and_says_what_failed():
    shown = _Shown(QUERY, ("id", "delay"), ordered=False)
    old, new = ("<http://example.org/train#a>", '"1"'), ("<http://example.org/train#b>", '"2"')
    shown.show(Answer(("id", "delay"), (old,), instant=0))
    shown.show(Answer(("id", "delay"), (old, new), instant=10_000))
    shown.tell(Fresh(1_700_000_000_000, 1_700_000_010_000, 0))
    assert "t:a" in printed(shown)
    assert re.search(r"\+ +t:b +2", printed(shown))
    assert "next at 22:13:30Z" in printed(shown)
    shown.tell(Failed("http://a.test/: answers 503", 2.0))
    assert "answers 503; trying again in 2.0 s" in printed(shown)


def printed(shown):
    console = Console(file=io.StringIO(), width=100)
    console.print(shown._table())
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("address", "words", "code", "says"),
    [
        ("gopher://127.0.0.1/trains", [], 2, "not a web address"),
        ("file:///etc/passwd", [], 2, "not a web address"),
        ("http://169.254.169.254.nowhere.invalid/", [], 2, ""),
        ("http://127.0.0.1:9/trains", ["--patience", "100ms"], 3, "given up, as --patience is 0.1 s"),
        ("http://127.0.0.1:9/trains", ["--once"], 3, "after 4 attempts: given up: --patience 10m goes on trying"),
    ],
)
def test_what_can_never_work_ends_with_a_sentence_and_a_code(query, command, address, words, code, says):
    output = command("watch", query, address, *words)
    assert (output.code, says in output.err, "Traceback" in output.err) == (code, True, False), output.err
    assert "trying again" not in output.err
