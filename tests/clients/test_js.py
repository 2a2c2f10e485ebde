"""The JavaScript client against real servers, in Node: each answer once and in order, whatever is killed on the way."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.servers.queries.asks import IN, select

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "clients" / "js" / "streamgauge.js"
HOME = Path(os.environ.get("STREAMGAUGE_LDF_HOME", "")) / "comunica5" / "node_modules"
NODE = next(iter(sorted(HOME.glob("node*/bin/node"))), None)
"""Node.js 22, which has a WebSocket of its own."""

TOKEN = "a-token-that-nobody-guesses"

pytestmark = [pytest.mark.server, pytest.mark.skipif(NODE is None, reason="Node.js 22 is not here")]

FOLLOW = """
import {{ Client, StreamgaugeError }} from {client};
const client = new Client({url}, {{ token: {token} }});
const print = line => console.log(JSON.stringify(line));
try {{
  const options = {{ after: {after}, transport: {transport}, state: name => print({{ state: name }}),
    missed: count => print({{ missed: count }}), patience: 60000 }};
  for await (const {{ number, data }} of client.{method}({name}, options)) print({{ number, data }});
  print("over");
}} catch (error) {{
  if (!(error instanceof StreamgaugeError)) throw error;
  print({{ error: error.message, status: error.status }});
}}
"""


class Follower:
    """A program of Node that prints what a subscription gives."""

    def __init__(self, url, method, name, transport="events", after=0, token=TOKEN):
        values = {"client": CLIENT.as_uri(), "url": url, "token": token, "name": name, "transport": transport}
        text = FOLLOW.format(after=after, method=method, **{key: json.dumps(value) for key, value in values.items()})
        words = [str(NODE), "--input-type=module", "--eval", text]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def next(self):
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        return json.loads(line)

    def numbers(self, count):
        """The numbers of so many messages, whatever is said of the connection between them."""
        results = []
        while len(results) < count:
            line = self.next()
            if "number" in line:
                results.append(line["number"])
        return results

    def close(self):
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def follow():
    """Starts followers, which end with the test."""
    begun = []

    def start(*words, **options):
        begun.append(Follower(*words, **options))
        return begun[-1]

    yield start
    for follower in begun:
        follower.close()


@contextmanager
def serving(*words, port=0):
    """A server of the command line, its URL, and its process."""
    command = [sys.executable, "-m", "streamgauge", *map(str, words), "--port", str(port)]
    environment = {**os.environ, "STREAMGAUGE_TOKEN": TOKEN}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        try:
            while not (match := re.search(r"http://127\.0\.0\.1:\d+", process.stderr.readline())):
                assert process.poll() is None
            yield match[0], process
        finally:
            process.kill()


def publish(url, *times):
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "text/turtle"}
    for instant in times:
        body = f"<urn:a{instant}> <urn:p> <urn:o> ."
        assert httpx.post(f"{url}/streams/{IN}?t={instant}", content=body, headers=headers).is_success


def registered(url, text):
    headers = {"Authorization": f"Bearer {TOKEN}"}
    return httpx.post(f"{url}/queries", content=text, headers=headers).json()["id"]


@pytest.mark.parametrize("transport", ["events", "websocket"])
def test_answers_come_once_and_in_order_over_a_kill(tmp_path, follow, transport):
    state = tmp_path / "state"
    with serving("engine", "serve", "live", "--state", state) as (url, process):
        port = int(url.rpartition(":")[2])
        follower = follow(url, "answers", registered(url, select()), transport)
        publish(url, 0, 2500, 4500)
        assert follower.next() == {"state": "connected"}
        first = follower.next()
        assert (first["number"], first["data"]["instant"]) == (1, 2000)
        assert follower.numbers(1) == [2]
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert follower.next() == {"state": "away"}
    with serving("engine", "serve", "live", "--state", state, port=port) as (url, _):
        publish(url, 6500, 8500)
        assert follower.numbers(2) == [3, 4]
        assert httpx.delete(f"{url}/queries/q1", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 204
        assert follower.next() == "over"
    assert follower.process.wait(30) == 0


@pytest.mark.parametrize("transport", ["events", "websocket"])
def test_refusals_and_ends_are_told(follow, transport):
    with serving("engine", "serve", "live", "--max-memory", 2**20) as (url, _):
        unknown = follow(url, "answers", "q9", transport)
        stranger = follow(url, "answers", "q1", transport, token="another-of-sixteen-letters")
        told = [follower.next() for follower in (unknown, stranger)]
        assert all("error" in line for line in told), told
        if transport == "events":
            assert [line["status"] for line in told] == [404, 401]


def test_a_channel_of_the_broker_is_followed(follow):
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with serving("broker", "serve") as (url, _):
        query = {**headers, "Content-Type": "application/sparql-query"}
        assert httpx.put(f"{url}/channels/all", content="SELECT ?s { ?s ?p ?o }", headers=query).is_success
        followers = [follow(url, "notifications", "all", transport) for transport in ("events", "websocket")]
        assert [follower.next() for follower in followers] == [{"state": "connected"}] * 2
        turtle = {**headers, "Content-Type": "text/turtle"}
        assert httpx.post(f"{url}/publish", content="<urn:a> <urn:b> <urn:c> .", headers=turtle).is_success
        lines = [follower.next() for follower in followers]
        assert lines[0] == lines[1]
        assert lines[0]["number"] == 1
        assert lines[0]["data"]["added"]["results"]["bindings"] == [{"s": {"type": "uri", "value": "urn:a"}}]
        assert httpx.delete(f"{url}/channels/all", headers=headers).is_success
        assert [follower.next() for follower in followers] == ["over"] * 2


PARSED = """
import {{ parsed }} from {client};
const bytes = new TextEncoder().encode({text});
for (const size of [1, 2, 3, 7, bytes.length]) {{
  const body = new ReadableStream({{ start(controller) {{
    for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.slice(at, at + size));
    controller.close();
  }} }});
  const found = [];
  for await (const event of parsed(body)) found.push(event);
  console.log(JSON.stringify(found));
}}
"""


def test_events_are_parsed_however_they_are_cut():
    text = ": alive\n\nid: 1\ndata: {}\n\nevent: missed\r\ndata: a\r\ndata:b\r\n\r\ndata: \u00e4\rid:2\r\rdata: cut"
    program = PARSED.format(client=json.dumps(CLIENT.as_uri()), text=json.dumps(text))
    done = subprocess.run(
        [str(NODE), "--input-type=module", "--eval", program], capture_output=True, text=True, check=True
    )
    expected = [
        {"event": "comment", "data": "alive"},
        {"event": "message", "data": "{}", "id": "1"},
        {"event": "missed", "data": "a\nb", "id": "1"},
        {"event": "message", "data": "ä", "id": "2"},
    ]
    assert [json.loads(line) for line in done.stdout.splitlines()] == [expected] * 5


def test_types_and_module_have_the_same_names():
    module, types = CLIENT.read_text(), CLIENT.with_suffix(".d.ts").read_text()
    methods = set(re.findall(r"^  (?:async )?([a-z]\w*)\(", module, re.M)) - {"constructor"}
    client = types[types.index("export class Client") :]
    assert methods == set(re.findall(r"^  ([a-z]\w*)\(", client, re.M)) - {"constructor"}
    assert shutil.which("tsc") is None or subprocess.run(["tsc", "--noEmit", CLIENT.with_suffix(".d.ts")], check=True)
