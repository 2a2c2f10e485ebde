"""Program: a fragments server whose only data set, ``/trains``, is renewed by the updates of a stream.

The task has ``stream`` (a stream table), ``static`` (N-Triples), ``method``, ``label``, ``renewal``, ``slack`` (ms),
``port``, ``store`` (a folder, or null for memory) and ``template``. It writes ``address``; for each later line with
``begins`` (the stream's time 0, ms since 1970) and ``apply`` (the time of an update) it writes ``applied`` and ``at``
(ms since 1970).
"""

import asyncio
import json
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from streamgauge.formats.stream import elements
from streamgauge.model.fact import Fact
from streamgauge.servers.fragments import Quad
from streamgauge.servers.fragments.annotations import method
from streamgauge.servers.fragments.labels import Label, Style
from streamgauge.servers.fragments.pages.dataset import DataSet
from streamgauge.servers.fragments.pages.http import application
from streamgauge.servers.fragments.store.disk import DiskStore
from streamgauge.servers.fragments.store.indexed import MemoryStore, Store
from streamgauge.servers.fragments.writes import FactDraft
from streamgauge.servers.fragments.writes.files import load
from streamgauge.servers.http.server import Serving
from streamgauge.suites.crowds.clients import say, task
from streamgauge.suites.crowds.updates import FactRenewal, Update, updates, wall_ms

NAME = "trains"
PAGE = 100


@dataclass(slots=True)
class DataSetRenewal:
    """Applies updates to a data set; ``begins`` is the stream's time 0, ms since 1970."""

    dataset: DataSet
    renewal: FactRenewal
    begins: int
    _before: Sequence[Quad] = ()
    _names: Iterator[int] = field(default_factory=lambda: count(1))

    def apply(self, update: Update) -> None:
        """Replace the facts of the previous update by those of this one."""
        initial, final = self.begins + update.time, self.begins + update.until
        facts = [Fact(triple, initial, final) for triple in update.triples]
        match self.renewal:
            case FactRenewal.KEPT:
                self._keep(facts)
            case FactRenewal.PUBLISHED:
                self._publish(facts)
            case FactRenewal.PLAIN:
                self._change([(*triple, "") for triple in update.triples])

    def _keep(self, facts: Sequence[Fact]) -> None:
        draft = FactDraft(self.dataset)
        # By predicate, since the write interface replaces all facts that match one pattern.
        for predicate in sorted({fact.triple[1] for fact in facts}):
            draft.replace((None, predicate, None), [fact for fact in facts if fact.triple[1] == predicate])
        draft.commit()

    def _publish(self, facts: Sequence[Fact]) -> None:
        style = self.dataset.style
        quads = method(style.method).annotate(facts, style, lambda _shared: str(next(self._names)))
        come = {quad for quad, _ in quads}
        # Facts with intervals end by themselves.
        gone = () if style.label is Label.INTERVAL else [quad for quad in self._before if quad not in come]
        self.dataset.change(gone, quads)
        self._before = tuple(come)

    def _change(self, quads: Sequence[Quad]) -> None:
        come = set(quads)
        self.dataset.change([quad for quad in self._before if quad not in come], [(quad, None) for quad in quads])
        self._before = quads


def main() -> None:
    """Serve until the input ends."""
    document = task()
    style = Style(document["method"], Label(document["label"]), template=document["template"])
    store: Store = MemoryStore() if document["store"] is None else DiskStore(Path(document["store"]))
    dataset = DataSet(NAME, store, style, wall_ms, PAGE)
    load(Path(document["static"]), store, style)
    updates_by_time = {update.time: update for update in updates(elements(document["stream"]), document["slack"])}
    server = Serving(
        application([dataset]),
        "127.0.0.1",
        document["port"],
        lambda: None,
        lambda at: say(address=at + NAME, quads=dataset.size),
        settings={"date_header": False, "server_header": False},
    )
    asyncio.run(_serve(server, DataSetRenewal(dataset, FactRenewal(document["renewal"]), 0), updates_by_time))


async def _serve(server: Serving, renewal: DataSetRenewal, updates_by_time: Mapping[int, Update]) -> None:
    loop = asyncio.get_running_loop()

    def apply(begins: int, time: int) -> None:
        renewal.begins = begins
        renewal.apply(updates_by_time[time])
        say(applied=time, at=wall_ms())

    def listen() -> None:
        for line in sys.stdin:
            # In the thread of the event loop, which also answers the requests.
            loop.call_soon_threadsafe(lambda message: apply(message["begins"], message["apply"]), json.loads(line))
        loop.call_soon_threadsafe(setattr, server, "should_exit", True)

    threading.Thread(target=listen, daemon=True).start()
    await server.serve()


if __name__ == "__main__":
    main()
