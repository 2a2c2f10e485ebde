"""``engine serve``: a real process that serves until it is told to stop; what cannot be served is said."""

import os
import re
import signal
import socket
import subprocess
import sys
import time

import httpx
import pytest

from tests.servers.queries.asks import IN, select

pytestmark = pytest.mark.server

TOKEN = "a-token-that-nobody-guesses"


def test_it_serves_until_it_is_told_to_stop(tmp_path):
    (tmp_path / "tokens").write_text(f"{TOKEN}\n")
    (tmp_path / "tokens").chmod(0o600)
    (tmp_path / "s.ttl").write_text("<urn:o> <urn:in> <urn:there> .")
    words = ["--port", "0", "--token-file", tmp_path / "tokens", "--static", f"urn:s={tmp_path / 's.ttl'}"]
    program = [sys.executable, "-c", "from streamgauge.cli.main import main; main()", "engine", "serve", "live"]
    with subprocess.Popen([*program, *map(str, words)], stderr=subprocess.PIPE, text=True) as running:
        try:
            assert running.stderr is not None
            match = re.fullmatch(r"live at (http://127\.0\.0\.1:\d+)/\n", running.stderr.readline())
            assert match
            with httpx.Client(base_url=match[1], headers={"Authorization": f"Bearer {TOKEN}"}) as http:
                text = select().replace("FROM NAMED", "FROM <urn:s> FROM NAMED")
                assert http.post("/queries", content=text).json()["state"] == "running"
                said = http.post(
                    f"/streams/{IN}?t=0", content="<urn:a> <urn:p> <urn:o> .", headers={"Content-Type": "text/turtle"}
                )
                assert said.json() == {"items": 1, "queries": 1}
                assert httpx.get(f"{match[1]}/queries").status_code == 401
                stuck = socket.create_connection(("127.0.0.1", int(match[1].rpartition(":")[2])))
                stuck.sendall(f"POST /streams/{IN} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n".encode())
                with stuck, http.stream("GET", "/queries/q1/answers"):
                    os.kill(running.pid, signal.SIGTERM)
                    begun = time.monotonic()
                    assert running.wait(300) == 143
            assert time.monotonic() - begun < 9, "5 s, and what other work on the machine takes"
            *logged, account = running.stderr.read().splitlines()
            assert re.fullmatch(r"1 query; 1 element; [01] answers?", account)
            assert [line.partition(" (")[0] for line in logged] == [
                "the query is registered",
                "the query has ended: the service has ended",
            ]
        finally:
            running.kill()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("nobody",), "unknown engine 'nobody'"),
        (("live", "--host", "0.0.0.0"), "give a token, or bind to 127.0.0.1"),
        (("live", "--token-file", "nowhere"), "nowhere: cannot be read: there is no such file"),
        (("live", "--static", "urn:s"), "write IRI=FILE"),
        (("live", "--static", "urn:s=nowhere.ttl"), "nowhere.ttl"),
        (("live", "--max-time", "long"), "duration"),
        ((), "Missing argument"),
    ],
)
def test_what_cannot_be_served(monkeypatch, command, words, says):
    monkeypatch.delenv("STREAMGAUGE_TOKEN", raising=False)
    code, _, err = command("engine", "serve", *words)
    assert code == 2
    assert says in err


def test_a_short_token_is_refused(monkeypatch, command):
    monkeypatch.setenv("STREAMGAUGE_TOKEN", "short")
    assert "at least 16 characters" in command("engine", "serve", "live").err
