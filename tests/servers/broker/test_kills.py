"""kill -9 under load, through HTTP: publishers that retry by key, subscribers that resume by events and WebSocket."""

import json
import random
import time
from threading import Event, Thread

import httpx
import pytest
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from tests.servers.broker.process import Process, until
from tests.servers.broker.world import BASE, QUERIES, answers, fact, select, student

pytestmark = pytest.mark.server

CHANNELS = ("students", "named", "courses", "one")
AWAY = (httpx.TransportError, OSError, WebSocketException, TimeoutError)


def turtle(graph):
    return "".join(f"{' '.join(triple)} .\n" for triple in graph)


class Publisher(Thread):
    """Publishes and deletes, each with a key of its own until it is acknowledged; ``done`` has what was, by number."""

    def __init__(self, url, name, done, ending, seed):
        super().__init__(name=f"publisher {name}")
        self._url, self._name, self._done, self._ending = url, name, done, ending
        self._draw, self.repeated, self.tries, self.wrong = random.Random(seed), 0, 0, None

    def run(self):
        try:
            with httpx.Client(base_url=self._url, timeout=300) as http:
                count = 0
                while not self._ending.is_set():
                    count += 1
                    self._change(http, f"{self._name}/{count}")
        except Exception as error:
            self.wrong = error

    def _change(self, http, key):
        operation = "publish" if self._draw.random() < 0.6 else "delete"
        graph = student(self._draw.randrange(60), 1 + self._draw.randrange(2))
        graph = graph if self._draw.random() < 0.7 else self._draw.sample(graph, 3)
        while True:
            self.tries += 1
            try:
                said = http.post(
                    f"/{operation}",
                    content=turtle(graph),
                    headers={"Content-Type": "text/turtle", "Idempotency-Key": key},
                )
            except AWAY:
                time.sleep(0.05)
                continue
            if said.status_code in (429, 503):
                time.sleep(0.05)
                continue
            got = said.raise_for_status().json()
            self.repeated += got["repeated"]
            assert got["publication"] not in self._done
            self._done[got["publication"]] = (operation, tuple(graph))
            return


class Subscriber(Thread):
    """Hears a channel by a name, again and again; ``heard`` has every notification by number, ``twice`` those again."""

    def __init__(self, url, channel, name, ending):
        super().__init__(name=f"subscriber {name}")
        self._url, self.channel, self._name, self._ending = url, channel, name, ending
        self.heard, self.twice, self.connected, self.wrong = {}, 0, 0, None

    def run(self):
        try:
            while not self._ending.is_set():
                try:
                    self._hear()
                except AWAY:
                    time.sleep(0.05)
        except Exception as error:
            self.wrong = error

    def note(self, said):
        assert "missed" not in said
        number = said["number"]
        self.twice += number in self.heard
        assert self.heard.setdefault(number, said) == said
        return number


class ByEvents(Subscriber):
    def _hear(self):
        path = f"{self._url}/channels/{self.channel}/notifications?subscriber={self._name}"
        last = {"Last-Event-ID": str(max(self.heard))} if self.heard and self.connected % 2 else {}
        with httpx.stream("GET", path, headers=last, timeout=httpx.Timeout(5)) as events:
            self.connected += events.raise_for_status().is_success
            for line in events.iter_lines():
                if line.startswith("data: ") and "number" in (said := json.loads(line[6:])):
                    self.note(said)
                if self._ending.is_set():
                    return


class ByWebSocket(Subscriber):
    def _hear(self):
        path = f"{self._url.replace('http', 'ws', 1)}/channels/{self.channel}/notifications?subscriber={self._name}"
        with connect(path, open_timeout=60) as socket:
            self.connected += 1
            while not self._ending.is_set():
                number = self.note(json.loads(socket.recv(5)))
                if number % 3:
                    socket.send(json.dumps({"acknowledge": number}))


class Storm:
    """A broker, publishers and subscribers, and kills at random points."""

    def __init__(self, folder, seed):
        self.broker, self.draw = Process(folder), random.Random(seed)
        self.done, self._ending, self._silent = {}, Event(), Event()
        self.publishers = [Publisher(self.broker.url, f"p{n}", self.done, self._ending, seed + n) for n in range(3)]
        kinds = (ByEvents, ByWebSocket)
        self.subscribers = [
            kind(self.broker.url, channel, f"{kind.__name__}-{channel}", self._silent)
            for channel in CHANNELS
            for kind in kinds
        ]

    def run(self, kills):
        with self.broker:
            self._begin()
            for item in (*self.subscribers, *self.publishers):
                item.start()
            try:
                for _ in range(kills):
                    before = len(self.done)
                    until(lambda before=before: len(self.done) > before or self._wrong())
                    time.sleep(self.draw.random() / 2)
                    self.broker.kill()
                    self.broker.start()
                self._settle()
            finally:
                self._ending.set()
                self._silent.set()
                for item in (*self.subscribers, *self.publishers):
                    item.join(300)
            return {name: self._rows(name) for name in CHANNELS}

    def _begin(self):
        base = {"Content-Type": "text/turtle", "Idempotency-Key": "base"}
        httpx.post(f"{self.broker.url}/publish", content=turtle(BASE), headers=base, timeout=300).raise_for_status()
        for name in CHANNELS:
            httpx.put(
                f"{self.broker.url}/channels/{name}", content=select(QUERIES[name]), timeout=300
            ).raise_for_status()
        for subscriber in self.subscribers:
            path = f"{self.broker.url}/channels/{subscriber.channel}/subscribers/{subscriber._name}"
            httpx.put(path, timeout=300).raise_for_status()

    def _settle(self):
        """Publishers end when what they began is acknowledged, subscribers when they have heard of it."""
        self._ending.set()
        for publisher in self.publishers:
            publisher.join(300)
        last = {name: self._rows(name)[0] for name in CHANNELS}
        until(
            lambda: (
                self._wrong()
                or all(len(subscriber.heard) >= last[subscriber.channel] for subscriber in self.subscribers)
            ),
            120,
        )

    def _wrong(self):
        return any(item.wrong for item in (*self.publishers, *self.subscribers))

    def _rows(self, name):
        said = httpx.get(f"{self.broker.url}/channels/{name}/rows", timeout=300).raise_for_status()
        return int(said.headers["notification"]), bindings(said.json())


def bindings(said):
    result = said["results"]["bindings"]
    return {frozenset((name, term["value"]) for name, term in row.items()) for row in result}


def folded(heard, begun):
    """The answer that notifications make of the one at the beginning."""
    shown = set(begun)
    assert sorted(heard) == list(range(1, len(heard) + 1))
    for number in sorted(heard):
        added, removed = bindings(heard[number]["added"]), bindings(heard[number]["removed"])
        assert not added & shown
        assert removed <= shown
        shown = (shown - removed) | added
    return shown


def named(rows, name):
    """Rows of the answers from scratch, as they are compared."""
    variables = {"students": "x", "named": "xn", "courses": "xcn", "one": "x"}[name]
    return {frozenset(zip(variables, (term.strip('<>"') for term in row), strict=True)) for row in rows}


@pytest.mark.heavy("a kill and a start of the broker, twice")
@pytest.mark.parametrize("kills", [1, pytest.param(50, marks=pytest.mark.prove)])
def test_kills_under_load_lose_nothing_and_tell_nothing_twice(tmp_path, capsys, kills):
    folder = tmp_path / "broker"
    folder.mkdir()
    storm = Storm(folder, seed=kills)
    rows = storm.run(kills)
    for subscriber in (*storm.publishers, *storm.subscribers):
        assert subscriber.wrong is None, (subscriber.name, repr(subscriber.wrong))
    assert sorted(storm.done) == list(range(2, len(storm.done) + 2))
    facts = set(BASE)
    for _, (operation, graph) in sorted(storm.done.items()):
        facts = facts | set(graph) if operation == "publish" else facts - set(graph)
    now, begun = answers(facts), answers(BASE)
    for name in CHANNELS:
        assert rows[name][1] == named(now[name], name)
    for subscriber in storm.subscribers:
        assert len(subscriber.heard) == rows[subscriber.channel][0]
        assert (
            folded(subscriber.heard, named(begun[subscriber.channel], subscriber.channel))
            == rows[subscriber.channel][1]
        )
    if kills > 3:
        with capsys.disabled():
            tries, repeated = (sum(getattr(p, name) for p in storm.publishers) for name in ("tries", "repeated"))
            again = sum(subscriber.twice for subscriber in storm.subscribers)
            heard = sum(len(subscriber.heard) for subscriber in storm.subscribers)
            print(f"\n{kills} kills: {len(storm.done)} publications in {tries} tries, {repeated} told as repeated")
            print(f"{heard} notifications heard, {again} of them again")


def test_the_fold_is_not_blind():
    row = {"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {"type": "uri", "value": "urn:t:s1"}}]}}
    none = {"head": {"vars": ["x"]}, "results": {"bindings": []}}
    once, again = {"added": row, "removed": none}, {"added": none, "removed": row}
    assert folded({1: once, 2: again}, set()) == set()
    with pytest.raises(AssertionError):
        folded({1: once, 2: once}, set())
    with pytest.raises(AssertionError):
        folded({1: once, 3: again}, set())
    assert fact("s1", "a", "Student") not in BASE
