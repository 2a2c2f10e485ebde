"""Program: a fragments server whose one data set, ``/trains``, is renewed from a stream as time passes.

Told ``stream`` (a stream table), ``static`` (N-Triples), ``method``, ``label``, ``renewal``, ``slack`` (ms), ``port``,
``store`` (a folder, or null for memory),
``template`` and, on a later line, ``begins`` (ms since 1970). Says ``address``, then for each update
``applied`` (the stream's time) and ``at``.
"""

import asyncio
import json
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from streamgauge.formats.stream import elements
from streamgauge.servers.fragments.serving.dataset import DataSet
from streamgauge.servers.fragments.serving.face import application
from streamgauge.servers.fragments.serving.loading import load
from streamgauge.servers.fragments.storing.disk import DiskStore
from streamgauge.servers.fragments.storing.indexed import IndexedStore
from streamgauge.servers.fragments.storing.memory import MemoryStore
from streamgauge.servers.fragments.style import Label, Style
from streamgauge.servers.http.serving import Serving
from streamgauge.suites.crowds.programs import say, task
from streamgauge.suites.crowds.renewing import Renewal, Renewing, Update, updates

NAME = "trains"
PAGE = 100


def main() -> None:
    """Serve until the input ends."""
    told = task()
    style = Style(told["method"], Label(told["label"]), template=told["template"])
    store: IndexedStore = MemoryStore() if told["store"] is None else DiskStore(Path(told["store"]))
    dataset = DataSet(NAME, store, style, _now, PAGE)
    load(Path(told["static"]), store, style)
    found = list(updates(elements(told["stream"]), told["slack"]))
    server = Serving(
        application([dataset]),
        "127.0.0.1",
        told["port"],
        lambda: None,
        lambda at: say(address=at + NAME, quads=dataset.size),
        settings={"date_header": False, "server_header": False},
    )
    asyncio.run(_serve(server, dataset, Renewal(told["renewal"]), found))


async def _serve(server: Serving, dataset: DataSet, renewal: Renewal, found: Sequence[Update]) -> None:
    loop, begins = asyncio.get_running_loop(), asyncio.Event()
    told: dict[str, Any] = {}

    def listen() -> None:
        for line in sys.stdin:
            told.update(json.loads(line))
            loop.call_soon_threadsafe(begins.set)
        loop.call_soon_threadsafe(setattr, server, "should_exit", True)

    threading.Thread(target=listen, daemon=True).start()

    async def renew() -> None:
        await begins.wait()
        renewing = Renewing(dataset, renewal, told["begins"])
        for update in found:
            await asyncio.sleep(max(0, told["begins"] + update.time - _now()) / 1000)
            renewing.apply(update)
            say(applied=update.time, at=_now())

    renewal_task = asyncio.create_task(renew())
    await server.serve()
    renewal_task.cancel()


def _now() -> int:
    return time.time_ns() // 1_000_000


if __name__ == "__main__":
    main()
