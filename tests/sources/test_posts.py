"""Sinks that post: tried again until taken, in order, signed; what is refused for good is a dead letter."""

import hmac
import json
import threading
import time
from base64 import b64decode, b64encode
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pyoxigraph as ox
import pytest

from streamgauge.sources import SourceError, message_form, open_sink
from streamgauge.sources.decoders import Letter
from streamgauge.sources.graph_store import addition, update
from streamgauge.sources.webhook import signed
from tests.servers.broker.served import serving
from tests.servers.broker.world import broker

SECRET = "a-secret-of-sixteen-bytes"


class Receiver(BaseHTTPRequestHandler):
    """Answers with the next of its statuses, 204 when there is none, and keeps what came."""

    statuses: list[int]
    came: list[tuple[str, dict[str, str], bytes]]

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status = self.statuses.pop(0) if self.statuses else 204
        self.came.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_args):
        pass


@contextmanager
def receiving(*statuses):
    """A receiver, its port, and what came."""
    kind = type("One", (Receiver,), {"statuses": list(statuses), "came": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port, kind.came
    finally:
        server.shutdown()
        server.server_close()


def letters(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.mark.server
def test_messages_come_in_order_each_again_until_it_is_taken(tmp_path):
    dead = tmp_path / "dead.jsonl"
    with receiving(503, 429, 200, 500) as (port, came):
        sink = open_sink(f"webhook+http://127.0.0.1:{port}/in?dead={dead}&query=a%3Db&token=abc")
        for number in range(3):
            sink.send(b'{"number":%d}\n' % number, f"hot/{number}")
        settled = sink.settle()
        assert (settled.sent, settled.undelivered) == (3, 0)
        assert sink.close() == settled
        with pytest.raises(SourceError, match="the sink is closed"):
            sink.send(b"")
    assert [json.loads(body)["number"] for _, _, body in came] == [0, 0, 0, 1, 1, 2]
    assert {path for path, _, _ in came} == {"/in?a=b"}
    assert [headers["webhook-id"] for _, headers, _ in came] == ["hot/0"] * 3 + ["hot/1"] * 2 + ["hot/2"]
    assert {headers["authorization"] for _, headers, _ in came} == {"Bearer abc"}
    assert letters(dead) == []


@pytest.mark.server
def test_what_is_refused_for_good_is_a_dead_letter_and_the_next_goes_on(tmp_path):
    dead = tmp_path / "dead.jsonl"
    with receiving(200, 400, 301) as (port, came):
        sink = open_sink(f"webhook+http://me:hush@127.0.0.1:{port}/?dead={dead}")
        for message in (b"one", b"two", b"\xff", b"four"):
            sink.send(message, message.hex())
        delivery = sink.close()
    assert (delivery.sent, delivery.undelivered) == (2, 2)
    assert delivery.why.startswith("status 400")
    assert len(came) == 4
    two, three = letters(dead)
    assert (two["message"], two["key"], two["why"].partition(":")[0]) == ("two", b"two".hex(), "status 400")
    assert b64decode(three["base64"]) == b"\xff"
    assert two["sink"] == f"webhook+http://me:...@127.0.0.1:{port}/?dead={dead}"


@pytest.mark.server
def test_a_process_that_goes_on_repeats_no_dead_letter_and_leaves_none_for_what_is_sent_again(tmp_path):
    dead = tmp_path / "dead.jsonl"
    dead.write_bytes(b'{"incomplete')

    def opened(mark):
        sink = open_sink(f"webhook+http://127.0.0.1:{port}/?dead={dead}")
        sink.hold()
        sink.restore(mark)
        return sink

    with receiving(400) as (port, came):
        sink = opened(None)
        mark = sink.mark()
        sink.send(b"one", "1")
        assert (sink.settle().missing, sink.close().buried) == (0, 1)
        sink = opened(mark)
        for key in ("1", "2"):
            sink.send(b"again", key)
        delivery = sink.settle()
        sink.close()
    assert (delivery.sent, delivery.undelivered, delivery.missing, len(came)) == (1, 1, 0, 2)
    sink = opened(mark)
    sink.send(b"three", "3")
    assert (sink.settle(0.05).waiting, sink.close(0.05).waiting) == (1, 1)
    assert [json.loads(line)["key"] for line in dead.read_text().splitlines()[1:]] == ["1"]


@pytest.mark.server
def test_a_receiver_that_is_away_costs_messages_after_its_patience_only(tmp_path):
    dead = tmp_path / "dead.jsonl"
    with receiving() as (port, _):
        pass
    sink = open_sink(f"webhook+http://127.0.0.1:{port}/?dead={dead}&patience=300")
    sink.send(b"one", "1")
    assert sink.settle().undelivered == 1
    sink.send(b"two", "2")
    time.sleep(0.05)
    sink.send(b"three", "3")
    sink._options = type("Quick", (), {"patience": 60_000, "token": None})  # what is under way when it closes
    sink._pending._patience = 0.1
    assert sink.close().undelivered >= 2
    assert {letter["key"] for letter in letters(dead)} == {"1", "2", "3"}
    assert letters(dead)[0]["why"].startswith("refused for 300 ms: ")


def test_a_signature_is_that_of_the_specification():
    """Checked by hand: HMAC-SHA256 over id, timestamp and body, of the secret's bytes."""
    letter = Letter(b'{"a":1}\n', "hot/7")
    headers = signed("application/json", SECRET.encode(), lambda: 1_700_000_000.9, letter).headers
    digest = hmac.new(SECRET.encode(), b'hot/7.1700000000.{"a":1}', sha256).digest()
    assert headers["webhook-signature"] == f"v1,{b64encode(digest).decode()}"
    assert (headers["webhook-id"], headers["webhook-timestamp"]) == ("hot/7", "1700000000")
    plain = signed("text/csv", None, lambda: 0, Letter(b"x\n"))
    assert "webhook-signature" not in plain.headers
    assert plain.headers["webhook-id"] == sha256(b"x").hexdigest()[:32]


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("webhook+http://h/?secret=short", "the secret is shorter than 16 bytes"),
        ("webhook+http://h/?secret=whsec_%21", "not base64 after whsec_"),
        ("webhook+http:///x", "the host is missing"),
        ("webhook+http://h/?colour=red", "unknown option colour"),
        ("webhook+http://h/?dead=/nowhere/at/all", "dead=/nowhere/at/all cannot be written"),
        ("sparql+http://h/?replace=1", "replace clears a graph: name it with graph=IRI"),
        ("graphstore+http://h/?replace=1", "unknown option replace"),
        ("graphstore+http://h/?graph=a%20b", "is not an IRI"),
        ("webhook+http://h/?secret_file=/nowhere", "/nowhere cannot be read"),
    ],
)
def test_what_cannot_be_opened_is_refused(url, says):
    with pytest.raises(SourceError, match=says.replace("?", r"\?")):
        open_sink(url)


def test_secrets_come_from_files(tmp_path):
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    sink = open_sink(f"webhook+http://h/?secret_file={tmp_path / 'secret'}")
    post = sink._request(Letter(b"x", "1"))
    assert "webhook-signature" in post.headers
    sink._options = type("Quick", (), {"patience": 0})
    sink._pending._patience = 0
    sink.close()


QUADS = b"""<urn:a> <urn:b> "1" <urn:g> .
<urn:a> <urn:b> _:x <urn:g> .
<urn:a> <urn:b> <urn:c> .
"""


def test_graphs_are_added_or_inserted():
    letter = Letter(QUADS, "k")
    assert addition(None, letter).body == QUADS
    one = addition(ox.NamedNode("urn:mine"), letter)
    assert one.parameters == {"graph": "urn:mine"}
    assert one.body.count(b" .\n") == 3
    assert b"urn:g" not in one.body
    text = update(None, False, letter).body.decode()
    assert text.startswith("INSERT DATA {\nGRAPH <urn:g> {\n<urn:a> <urn:b> ")
    assert text.endswith("}\n<urn:a> <urn:b> <urn:c> .\n}")
    store = ox.Store()
    for replace in (False, True):
        store.add(
            ox.Quad(ox.NamedNode("urn:old"), ox.NamedNode("urn:b"), ox.NamedNode("urn:c"), ox.NamedNode("urn:mine"))
        )
        store.update(update(ox.NamedNode("urn:mine"), replace, letter).body.decode())
        assert len(store) == (3 if replace else 4)
    with pytest.raises(ValueError, match="not N-Quads"):
        addition(None, Letter(b'{"vars":[]}'))


@pytest.mark.server
def test_a_store_gets_what_is_sent_and_no_more(tmp_path):
    dead = tmp_path / "dead.jsonl"
    with receiving() as (port, came):
        sink = open_sink(f"graphstore+http://127.0.0.1:{port}/store?graph=urn:mine&dead={dead}")
        sink.send(QUADS, "hot/1")
        sink.send(b"no quads", "hot/2")
        assert sink.close().undelivered == 1
    ((path, headers, body),) = came
    assert parse_qs(urlsplit(path).query) == {"graph": ["urn:mine"]}
    assert (headers["content-type"], headers["idempotency-key"]) == ("application/n-triples", "hot/1")
    assert len(list(ox.parse(body, format=ox.RdfFormat.N_TRIPLES))) == 3
    assert letters(dead)[0]["message"] == "no quads"


@pytest.mark.server
def test_an_endpoint_of_updates_has_the_facts():
    one = broker()
    with serving(one) as (url, _):
        sink = open_sink(f"sparql+{url}/update")
        sink.send(b"<urn:a> <urn:b> <urn:c> .\n<urn:a> <urn:b> <urn:d> .\n", "hot/1")
        delivery = sink.close()
    assert (delivery.sent, delivery.undelivered) == (1, 0)
    assert one.explicit == 2


def test_the_format_of_messages_is_the_sinks():
    assert message_form("graphstore+http://h/") == "nquads"
    assert message_form("webhook+http://h/") == message_form("out.jsonl") == "jsonl"
