"""An hour of accelerated load: the requests of an hour as fast as they are answered, while what is held stays the same.

An hour has 18,000 requests, ``RATE`` a second. `python -m tests.prove.load broker 60` sends those of 60 minutes and
prints figures twenty times. Streams have times of their own, a second for each step, so that hours of windows pass.
"""

import http.client
import json
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from urllib.parse import quote, urlencode

from tests.boundaries.sockets import BOUNDARIES, EVERY, MEBI, TOKEN, Boundary, Running, started

RATE: Final = 5
"""Requests a second of an ordinary hour."""
LOOKS: Final = 20
GROWTH: Final = 32 * MEBI
"""How much more a process may have in the last third of the time than in the second."""
FILES: Final = 64 * MEBI
"""How much more its files may have."""


class Caller:
    """Requests to a server over one connection, opened again where it was closed."""

    def __init__(self, port: int) -> None:
        self._web = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.port, self.answered = port, 0

    def __call__(self, method: str, path: str, body: str = "", kind: str = "text/turtle", **headers: str) -> bytes:
        """The body of the answer; AssertionError for an error of the server's."""
        fields = {"Authorization": f"Bearer {TOKEN}", "Content-Type": kind, **headers}
        try:
            self._web.request(method, path, body.encode(), fields)
            reply = self._web.getresponse()
        except (http.client.HTTPException, ConnectionError):
            self._web.close()
            self._web.request(method, path, body.encode(), fields)
            reply = self._web.getresponse()
        data = reply.read()
        assert reply.status < 500, (method, path, reply.status, data[:300])
        self.answered += 1
        return data

    def events(self, path: str) -> bytes:
        """The beginning of a stream of events, which is then left."""
        self.answered += 1
        web = http.client.HTTPConnection("127.0.0.1", self.port, timeout=0.2)
        with suppress(TimeoutError):
            web.request("GET", path, headers={"Authorization": f"Bearer {TOKEN}", "Accept": "text/event-stream"})
            reply = web.getresponse()
            data = reply.read1(10_000) if reply.status == 200 else b""
            web.close()
            return data
        web.close()
        return b""


def _facts(number: int, count: int = 20) -> str:
    return "".join(f'<urn:s{number}:{n}> <urn:p{n % 3}> "{number * n}" .\n' for n in range(count))


BEHIND: Final = 100
"""After how many steps what was made is taken back."""


def broker_step(call: Caller, number: int, _folder: Path) -> None:
    """Facts come and go, channels and subscribers too; answers and notifications are read."""
    key = {"Idempotency-Key": f"k{number}"}
    call("POST", "/publish", _facts(number), **key)
    call("POST", "/delete", _facts(number - BEHIND))
    name = f"/channels/c{number % 30}"
    if number % 5 == 0:
        call("DELETE", name)
        query = f"SELECT ?s ?o {{ ?s <urn:p{number % 3}> ?o FILTER (?o != '{number}') }}"
        call("PUT", name, query, "application/sparql-query")
        call("PUT", f"{name}/subscribers/me")
    if number % 7 == 0:
        call("GET", f"{name}/rows")
        call.events(f"{name}/notifications?subscriber=me&after=0")
        call("POST", "/update", f"DELETE WHERE {{ <urn:u> ?p ?o }} ; INSERT DATA {{ <urn:u> <urn:p> {number} }}",
             "application/sparql-update")  # fmt: skip
        call("GET", "/metrics")


def engine_step(call: Caller, number: int, _folder: Path) -> None:
    """A second of a stream, read by queries that come and go."""
    call("POST", f"/streams/urn:s?t={1000 * number}", _facts(number))
    if number % 10 == 0:
        query = EVERY.replace("PT1S STEP PT1S", f"PT{5 + number % 60}S STEP PT5S")
        made = json.loads(call("POST", "/queries", query, "application/sparql-query"))
        if "id" in made:
            call.events(f"/queries/{made['id']}/answers?after=0")
        for old in json.loads(call("GET", "/queries"))["queries"][:-5]:
            call("DELETE", f"/queries/{old['id']}")
        call("PUT", "/static/urn:d", _facts(number))
        call("GET", "/metrics")


def fragments_step(call: Caller, number: int, _folder: Path) -> None:
    """Facts of a few hundred subjects are replaced, ended and removed; pages, changes and events are read."""
    subject = f"urn:s{number % 300}"
    call("PUT", f"/trains?subject={quote(subject)}&for=1s", f"<{subject}> <urn:p> {number} .")
    call("GET", f"/trains?subject={quote(subject)}")
    call("POST", "/trains?for=1s", _facts(number % 200, 5), **{"Idempotency-Key": f"k{number}"})
    call("DELETE", f"/trains?subject={quote(f'urn:s{number % 200}:1')}")
    if number % 10 == 0:
        call("PATCH", "/trains", f"DELETE WHERE {{ ?s <urn:p{number % 3}> ?o }}", "application/sparql-update")
        call("GET", f"/trains?predicate=urn:p&page={number % 5 + 1}", Accept="text/html")
        call.events("/trains")
        call("GET", "/metrics")


def workbench_step(call: Caller, number: int, _folder: Path) -> None:
    """The playground evaluates; a live query is registered, fed, read and ended; pages are shown."""
    stream = " | ".join(f"{t}: a p {t * number % 50}." for t in range(10))
    query = EVERY.replace("PT1S STEP PT1S", f"PT{2 + number % 9}S STEP PT1S")
    call("POST", "/playground/evaluate", json.dumps({"query": query, "stream": stream}), "application/json")
    form = "application/x-www-form-urlencoded"
    if number % 5 == 0:
        call("POST", "/live/new", urlencode({"query": query, "sources": ""}), form)
        elements = json.dumps({"t": 1000 * number, "n": 1, "stream": "urn:s", "add": "<urn:a> <urn:p> <urn:b> .\n"})
        fields = {"stream": "urn:s", "elements": elements, "form": "jsonl", "query": ""}
        call("POST", "/live/streams/publish", urlencode(fields), form)
        call.events(f"/live/queries/q{number // 5 + 1}/events")
        call("POST", f"/live/queries/q{number // 5 + 1}/end", "", form)
        for path in ("/", "/runs/", "/live/", "/servers/", "/playground/"):
            call("GET", path)


def sink_step(call: Caller, number: int, folder: Path) -> None:
    """A second of the stream that the query follows; its answers are taken by clients that come and go."""
    with (folder / "feed.jsonl").open("a") as feed:
        for n in range(20):
            line = {"t": 1000 * number, "n": n, "stream": "urn:s", "add": f"<urn:s{number}> <urn:p> <urn:o{n}> .\n"}
            feed.write(json.dumps(line) + "\n")
    if number % 25 == 0:
        call.events("/x")
    call("GET", "/none")


@dataclass(frozen=True)
class Load:
    """A server and what a step of its load is."""

    boundary: Boundary
    step: Callable[[Caller, int, Path], None]


def _with(name: str, *options: Callable[[Path], str]) -> Boundary:
    known = BOUNDARIES[name]
    return replace(known, words=lambda folder: [*known.words(folder), *(option(folder) for option in options)])


LOADS: Final[Mapping[str, Load]] = {
    "broker": Load(_with("broker", lambda folder: f"--journal={folder / 'journal'}"), broker_step),
    "engine": Load(BOUNDARIES["engine"], engine_step),
    "fragments": Load(
        _with("fragments", lambda folder: f"--store={folder / 'store'}", lambda _: "--keep=1m"), fragments_step
    ),
    "workbench": Load(BOUNDARIES["workbench"], workbench_step),
    "event sink": Load(BOUNDARIES["event sink"], sink_step),
}


@dataclass(frozen=True)
class Look:
    """What a server has: bytes of memory and of files, descriptors, threads; after so many steps."""

    steps: int
    memory: int
    files: int
    descriptors: int
    threads: int

    def __str__(self) -> str:
        sizes = f"{self.memory / MEBI:.0f} MiB, files {self.files / MEBI:.1f} MiB"
        return f"{self.steps:,} steps: {sizes}, {self.descriptors} descriptors, {self.threads} threads"


def _look(running: Running, folder: Path, steps: int) -> Look:
    family = running.family()
    kept = [file for file in folder.rglob("*") if file.is_file() and file.name not in ("log", "feed.jsonl")]
    return Look(
        steps,
        sum(process.memory_info().rss for process in family),
        sum(file.stat().st_size for file in kept),
        sum(process.num_fds() for process in family),
        sum(process.num_threads() for process in family),
    )


def looks(name: str, minutes: float, tell: Callable[[str], None] = print) -> list[Look]:
    """Send a server the requests of so many minutes; what it had at ``LOOKS`` times."""
    load, result = LOADS[name], list[Look]()
    with TemporaryDirectory() as place, started(load.boundary, Path(place)) as running:
        folder, call, steps = Path(place), Caller(running.ports[0]), 0
        for number in range(1, LOOKS + 1):
            while call.answered < 60 * minutes * RATE * number / LOOKS:
                load.step(call, steps, folder)
                steps += 1
            with suppress(OSError):
                result.append(_look(running, folder, steps))
            tell(f"{name}, {call.answered:,} requests, {result[-1]}")
        assert running.process.is_running(), running.text
        assert "Traceback" not in running.text, running.text
    return result


def growths(result: list[Look]) -> dict[str, int]:
    """What grew beyond its bound from the second third of the looks to the last: by how much."""
    second, last = result[LOOKS // 3 : 2 * LOOKS // 3], result[2 * LOOKS // 3 :]
    bounds = {"memory": GROWTH, "files": FILES, "descriptors": 20, "threads": 10}
    grown = {
        name: max(getattr(look, name) for look in last) - max(getattr(look, name) for look in second) for name in bounds
    }
    return {name: size for name, size in grown.items() if size > bounds[name]}


MINUTES: Final = float(os.environ.get("STREAMGAUGE_LOAD_MINUTES", "60"))

if __name__ == "__main__":
    grown = growths(looks(sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else MINUTES))
    print(grown or "nothing grew beyond its bound")
    sys.exit(1 if grown else 0)
