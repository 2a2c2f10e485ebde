"""A workbench that serves in a thread of this process."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace

from streamgauge.servers.http.server import Serving
from streamgauge.workbench.application import application
from streamgauge.workbench.rooms import Bench


@contextmanager
def opened(folder: Path, tokens: Sequence[str] = ()) -> Iterator[SimpleNamespace]:
    """``url`` of a workbench over a folder."""
    ready, address = Event(), []

    def say(at: str) -> None:
        address.append(at.rstrip("/"))
        ready.set()

    bench = Bench(folder)
    server = Serving(application(bench, tokens), "127.0.0.1", 0, bench.leaving.set, say)
    thread = Thread(target=server.run)
    thread.start()
    try:
        assert ready.wait(60)
        yield SimpleNamespace(url=address[0], folder=folder)
    finally:
        server.stop()
        thread.join(60)
