"""Cost of a cycle of updates for a fragments server and its followers: labels written in place, patches, events.

python -m benchmarks.fragments_writing [--cycles 20] [--departures 100] [--listeners 1000]

Each cycle renews the delay and the platform of every departure for 12 s more, 1% of the facts with another value (the
paper's experiment: 200 dynamic facts every 10 s beside 300 static ones). Replaced: ``writing.replace``. Anew: all old
facts removed and all new ones added under new names, as the prototype's server did. Quads changed in the last cycle;
CPU ms of this process, the least of the cycles, memory store. Bytes are of bodies as br: all pages of the fragments
that the forms of both patterns ask for, labels included, and the patches of those since the version before. Events:
CPU ms from a change until every listener has it, without sockets.
"""

import argparse
import asyncio
import time
from collections.abc import Iterator, Sequence

import httpx
from starlette.types import Message

from benchmarks.results import ResultTable
from streamgauge.model.algebra import TriplePattern, Var
from streamgauge.model.fact import Fact
from streamgauge.servers.fragments.annotations import method, methods
from streamgauge.servers.fragments.labels import Label, Style
from streamgauge.servers.fragments.pages.dataset import DataSet
from streamgauge.servers.fragments.pages.http import FragmentsApp, application
from streamgauge.servers.fragments.store.indexed import MemoryStore
from streamgauge.servers.fragments.writes import FactDraft, WriteResult, add

TRAIN = "http://example.org/train#"
PERIOD, LASTING = 10_000, 12_000


class Trains:
    """A data set in which time passes by cycles."""

    def __init__(self, style: Style, departures: int) -> None:
        self.departures, self.now = departures, 1_000_000
        self.data = DataSet("trains", MemoryStore(), style, lambda: self.now)

    def cycle(self, number: int) -> WriteResult:
        """Everything holds on for a while; 1% of it is something else."""
        self.now += PERIOD
        draft = FactDraft(self.data)
        for name in ("delay", "platform"):
            draft.replace((None, f"<{TRAIN}{name}>", None), list(self.facts(name, number)))
        return draft.commit()

    def facts(self, name: str, number: int) -> Iterator[Fact]:
        """The facts of a cycle."""
        for place in range(self.departures):
            value = number if (place + number) % 100 == 0 else 0
            triple = f"<{TRAIN}departure-{place}>", f"<{TRAIN}{name}>", f'"{value}"'
            yield Fact(triple, self.now, self.now + LASTING)


def trains(style: Style, departures: int) -> Trains:
    """Static facts, and those of a first cycle."""
    made = Trains(style, departures)
    named = [(f"<{TRAIN}departure-{n}>", f"<{TRAIN}{p}>", f'"{n}"') for n in range(departures) for p in "abc"]
    add(made.data, [Fact(triple) for triple in named])
    made.cycle(0)
    return made


def anew(made: Trains, number: int) -> int:
    """Quads changed by a cycle that removes all and adds all again."""
    draft = FactDraft(made.data)
    for name in ("delay", "platform"):
        draft.remove((None, f"<{TRAIN}{name}>", None))
    gone = draft.commit()
    come = made.cycle(number)
    return len(gone.quads.removed) + len(come.quads.added)


def renewals(style: Style, cycles: int, departures: int) -> tuple[float, float, int, int]:
    """CPU ms and quads of a cycle, replaced and anew."""
    replaced, other = trains(style, departures), trains(style, departures)
    costs: tuple[list[float], list[float]] = [], []
    quads, fresh = 0, 0
    for number in range(1, cycles + 1):
        begun = time.process_time()
        changed = replaced.cycle(number).quads
        between = time.process_time()
        fresh = anew(other, number)
        costs[0].append(between - begun)
        costs[1].append(time.process_time() - between)
        quads = len(changed.added) + len(changed.removed)
    return 1000 * min(costs[0]), 1000 * min(costs[1]), quads, fresh


async def sizes(style: Style, departures: int) -> tuple[int, int]:
    """Bytes of what a client of both patterns reads in a cycle: all pages of the fragments it needs, or patches."""
    made = trains(style, departures)
    since = made.data.version.decode()
    made.cycle(1)
    headers = {"Accept-Encoding": "br", "Accept": "application/trig"}
    transport = httpx.ASGITransport(app=application([made.data]))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as web:
        whole = patches = 0
        for query, pages in _fragments(made):
            for page in range(1, pages + 1):
                whole += await _size(web, {**query, "page": str(page)})
            patches += await _size(web, {**query, "since": since})
    return whole, patches


def _fragments(made: Trains) -> Iterator[tuple[dict[str, str], int]]:
    """Each fragment that the annotated forms ask for, and how many pages it has."""
    names = "subject", "predicate", "object", "graph"
    patterns = [TriplePattern(Var("s"), f"<{TRAIN}{name}>", Var("o")) for name in ("delay", "platform")]
    forms = [method(made.data.style.method).form(pattern, 0, made.data.style) for pattern in patterns]
    for match in dict.fromkeys(pattern.match for form in forms for pattern in form.patterns):
        query = {name: term[1:-1] for name, term in zip(names, match, strict=True) if term}
        yield query, -(-made.data.store.count(match) // made.data.page_size)


async def _size(web: httpx.AsyncClient, query: dict[str, str]) -> int:
    async with web.stream("GET", "/trains", params=query) as reply:
        reply.raise_for_status()
        return sum([len(part) async for part in reply.aiter_raw()])


async def listening(listeners: int, cycles: int, departures: int) -> float:
    """CPU ms of a cycle with so many listeners, until each has its event."""
    made = trains(Style(), departures)
    app, got = application([made.data]), asyncio.Semaphore(0)
    tasks = [asyncio.create_task(_listen(app, got)) for _ in range(listeners)]
    await _all(got, listeners)
    costs = []
    for number in range(1, cycles + 1):
        begun = time.process_time()
        made.cycle(number)
        await _all(got, listeners)
        costs.append(time.process_time() - begun)
    app.leave()
    await asyncio.gather(*tasks)
    return 1000 * min(costs)


async def _all(got: asyncio.Semaphore, number: int) -> None:
    for _ in range(number):
        await got.acquire()


async def _listen(app: FragmentsApp, got: asyncio.Semaphore) -> None:
    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        if message.get("body"):
            got.release()

    headers = [(b"host", b"localhost"), (b"accept", b"text/event-stream")]
    query = f"predicate={TRAIN}delay".replace("#", "%23").encode()
    scope = {"type": "http", "method": "GET", "scheme": "http", "path": "/trains", "query_string": query}
    await app({**scope, "headers": headers, "asgi": {"spec_version": "2.4"}}, receive, send)


def main(words: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycles", type=int, default=20)
    parser.add_argument("--departures", type=int, default=100)
    parser.add_argument("--listeners", type=int, default=1000)
    given = parser.parse_args(words)
    columns = ("method, label", "quads changed: replaced", "anew", "CPU ms: replaced", "anew", "bytes: fragments",
               "patches")  # fmt: skip
    with ResultTable("fragments_writing", columns) as table:
        for name in methods():
            for label in (Label.EXPIRATION, Label.INTERVAL):
                style = Style(name, label)
                ours, theirs, quads, fresh = renewals(style, given.cycles, given.departures)
                whole, patches = asyncio.run(sizes(style, given.departures))
                cells = (quads, fresh, f"{ours:.1f}", f"{theirs:.1f}", f"{whole:,}", f"{patches:,}")
                table.add(f"{name}, {label}", *cells)
    for number in (0, given.listeners):
        cost = asyncio.run(listening(number, given.cycles, given.departures))
        print(f"a cycle with {number:,} listeners: {cost:.1f} ms CPU")


if __name__ == "__main__":
    main()
