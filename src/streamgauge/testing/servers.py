"""A broker and a fragments server for tests, each in a thread of this process at a free port of 127.0.0.1."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, Final

from starlette.types import ASGIApp

from streamgauge.broker import Client
from streamgauge.model.mistake import MistakeError
from streamgauge.reasoning import Rules
from streamgauge.servers.broker.broker import Broker
from streamgauge.servers.broker.http import application as broker_application
from streamgauge.servers.broker.strategies import begin
from streamgauge.servers.fragments.labels import Style
from streamgauge.servers.fragments.pages.dataset import DataSet
from streamgauge.servers.fragments.pages.http import application as fragments_application
from streamgauge.servers.fragments.store.indexed import MemoryStore
from streamgauge.servers.fragments.writes.feeds import BackgroundApp
from streamgauge.servers.fragments.writes.files import load
from streamgauge.servers.http.server import Serving

START_S: Final = 30.0
"""Maximum time (s) for a server to start, and to stop."""


class ServerError(MistakeError, RuntimeError):
    """A server that did not start or stop."""


@dataclass(frozen=True)
class ServedBroker:
    """A broker at an address: ``client`` publishes and subscribes, ``broker`` is the broker itself."""

    url: str
    client: Client
    broker: Broker


@contextmanager
def served_broker(strategy: str = "incremental") -> Iterator[ServedBroker]:
    """An empty broker in memory, until the context ends."""
    broker = Broker(begin(strategy, Rules()), _now, time.monotonic)
    with _serving(broker_application(broker), broker.close, "broker") as url, Client(url) as client:
        yield ServedBroker(url, client, broker)


@contextmanager
def served_fragments(datasets: Mapping[str, str | Path], clock: Callable[[], int] | None = None) -> Iterator[str]:
    """Serve data sets by name, each TriG text or an RDF file, as fragments until the context ends; yields the address.

    ``clock`` (ms since 1970) decides which facts hold; it is the wall clock by default.
    """
    now = clock or _now
    datasets_ = [DataSet(name, _filled(dataset, now()), Style(), now) for name, dataset in datasets.items()]
    face = fragments_application(datasets_)
    with _serving(BackgroundApp(face, datasets_, (), None), face.leave, "fragments server") as url:
        yield url
    for dataset in datasets_:
        dataset.store.close()


def _filled(data: str | Path, at: int) -> MemoryStore:
    """A store with the quads of TriG text, or of a file."""
    store = MemoryStore()
    if isinstance(data, Path):
        load(data, store, Style(), at)
        return store
    with TemporaryDirectory() as scratch:
        file = Path(scratch) / "data.trig"
        file.write_text(data, encoding="utf-8")
        load(file, store, Style(), at)
    return store


@contextmanager
def _serving(app: ASGIApp, leave: Callable[[], None], name: str) -> Iterator[str]:
    """The address of an application, served by a thread until the context ends; ServerError."""
    # ``Serving`` sets the switch interval of the process, which other tests share.
    switching = sys.getswitchinterval()
    # The thread puts its address here, or the error that kept it from starting.
    addresses: Queue[str | BaseException] = Queue()
    server = Serving(app, "127.0.0.1", 0, leave, addresses.put)
    thread = Thread(target=_run, args=(server, addresses.put), name=f"streamgauge-{name}", daemon=True)
    thread.start()
    try:
        started = addresses.get(timeout=START_S)
        if isinstance(started, BaseException):
            raise ServerError(f"the {name} did not start: {started}") from started
        yield started.removesuffix("/")
    finally:
        server.stop()
        thread.join(START_S)
        sys.setswitchinterval(switching)
    if thread.is_alive():
        raise ServerError(f"the {name} did not stop within {START_S:g} s")


def _run(server: Serving, tell: Callable[[BaseException], Any]) -> None:
    """Serve; an error is passed to ``tell``, for the thread that waits for the address."""
    try:
        server.run()
    except BaseException as error:
        tell(error)


def _now() -> int:
    """The time, ms since 1970."""
    return time.time_ns() // 1_000_000
