"""``broker serve``, ``publish`` and ``subscribe``: real processes; what is killed goes on where it was."""

import io
import json
import re
import signal
import subprocess
import sys
from contextlib import contextmanager

import httpx
import pytest
from rich.console import Console

from streamgauge.broker import BrokerError, Client, Standing, Told
from streamgauge.cli.answers import LiveChannel
from streamgauge.cli.main import main

pytestmark = pytest.mark.server

PROGRAM = [sys.executable, "-c", "from streamgauge.cli.main import main; main()"]
QUERY = "SELECT ?x { ?x a <urn:t:Person> }"
ONTOLOGY = "<urn:t:Student> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <urn:t:Person> ."
TOKEN = "a-token-that-nobody-guesses"


def student(n):
    return f"<urn:t:s{n}> a <urn:t:Student> ."


@contextmanager
def broker(*words):
    """A broker in a process of its own: its address, and the process."""
    program = [*PROGRAM, "broker", "serve", "--port", "0", *map(str, words)]
    with subprocess.Popen(program, stderr=subprocess.PIPE, text=True) as running:
        try:
            match = re.search(r" at (http://127\.0\.0\.1:\d+)/\n", running.stderr.readline())
            assert match
            yield match[1], running
        finally:
            running.kill()


def run(*words, text=None):
    return subprocess.run([*PROGRAM, *map(str, words)], input=text, capture_output=True, text=True, timeout=300)


def test_what_is_acknowledged_survives_a_kill_and_is_told_once(tmp_path):
    (tmp_path / "o.ttl").write_text(ONTOLOGY)
    words = ("--journal", tmp_path / "journal", "--ontology", tmp_path / "o.ttl")
    with broker(*words) as (url, running), Client(url) as client:
        client.create_channel("people", QUERY)
        subscription = client.subscribe("people", "me")
        client.publish(student(0), key="k0")
        httpx.put(f"{url}/channels/people/subscribers/me").raise_for_status()
        for n in range(1, 6):
            assert client.publish(student(n), key=f"k{n}").number == n + 1
        subscription.close()
        running.kill()
        running.wait()
    with broker(*words) as (url, running), Client(url) as client:
        assert client.publish(student(5), key="k5").repeated
        assert {row for (row,) in client.rows("people").rows} == {f"<urn:t:s{n}>" for n in range(6)}
        client.delete(student(5))
        subscription = client.subscribe("people", "me")
        first = [next(subscription) for _ in range(4)]
        assert [item.number for item in first] == [2, 3, 4, 5]
        subscription.close()
        running.send_signal(signal.SIGTERM)
        assert running.wait(300) == 143
        assert running.stderr.read() == ""
    with broker(*words) as (url, _), Client(url) as client:
        subscription = client.subscribe("people", "me")
        rest = [next(subscription) for _ in range(3)]
        subscription.close()
        assert rest[-1].removed == (("<urn:t:s5>",),)
        by_key = {item.key: item.added for item in (*first, *rest) if item.added}
        assert sorted(by_key.values()) == [((f"<urn:t:s{n}>",),) for n in range(1, 6)]


def test_publish_and_subscribe_from_the_command_line(tmp_path, monkeypatch, command):
    (tmp_path / "tokens").write_text(f"{TOKEN}\n")
    (tmp_path / "tokens").chmod(0o600)
    (tmp_path / "q.rq").write_text("SELECT * { ?x a ?c }")
    (tmp_path / "g.ttl").write_text(student(1))
    monkeypatch.setenv("STREAMGAUGE_TOKEN", TOKEN)
    with broker("--token-file", tmp_path / "tokens") as (url, _):
        with Client(url, TOKEN) as client:
            client.create_channel("all", "SELECT * { ?x a ?c }")
        published = command("publish", tmp_path / "g.ttl", "--at", url)
        assert (published.code, published.out) == (0, f"{tmp_path / 'g.ttl'}: publication 1\n")
        left = run("publish", "--delete", "--at", url, "--key", "k", text=student(1))
        assert left.stdout == "standard input: publication 2\n"
        shown = run("subscribe", "all", "--query", tmp_path / "q.rq", "--at", url, "--after", 0, "--limit", 2)
        came, went = map(json.loads, shown.stdout.splitlines())
        row = {"x": "<urn:t:s1>", "c": "<urn:t:Student>"}
        assert (came["added"], came["removed"], went["added"], went["removed"]) == ([row], [], [], [row])
        monkeypatch.setenv("STREAMGAUGE_TOKEN", "another-token-that-is-not-known")
        refused = command("publish", tmp_path / "g.ttl", "--at", url)
        assert (refused.code, "a token is needed" in refused.err) == (2, True)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("broker", "serve", "--host", "0.0.0.0"), "give a token, or bind to 127.0.0.1"),
        (("broker", "serve", "--strategy", "none"), "there is no strategy none"),
        (("broker", "serve", "--journal", "nowhere/journal"), "no journal can be kept here"),
        (("broker", "serve", "--webhook", "c=ftp://x"), "a webhook is CHANNEL=URL"),
        (("broker", "serve", "nowhere.ttl"), "nowhere.ttl"),
        (("publish", "a.csv"), "no RDF format has the ending"),
        (("publish", "--at", "http://127.0.0.1:1", "__file__.ttl"), "__file__.ttl"),
        (("subscribe", "c", "--at", "http://127.0.0.1:1", "--query", "nowhere.rq"), "nowhere.rq"),
    ],
)
def test_what_cannot_be_done_is_said(monkeypatch, capsys, words, says):
    monkeypatch.delenv("STREAMGAUGE_TOKEN", raising=False)
    monkeypatch.setattr(sys, "argv", ["streamgauge", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert says in capsys.readouterr().err


def test_nobody_there_is_said():
    with Client("http://127.0.0.1:1") as client, pytest.raises(BrokerError, match="is a broker there"):
        client.publish(student(1))


def test_a_live_table_shows_what_came_and_drops_what_left():
    console = Console(file=io.StringIO(), width=80, force_terminal=False)
    standing = Standing(1, ("x",), (("<urn:old>",), ("<urn:gone>",)))
    with LiveChannel(standing, console) as live:
        live.show(Told("c", 2, "c/2/5", (7,), 5, ("x",), (("<urn:new>",),), (("<urn:gone>",),)))
    shown = console.file.getvalue().rpartition("x")[2]
    assert "<urn:old>" in shown
    assert re.search(r"\+ +<urn:new>", shown)
    assert "2: 1 added, 1 removed" in shown
