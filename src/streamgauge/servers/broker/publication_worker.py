"""The thread that takes in publications as they come, and does what was put off when none do."""

from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from threading import Event, Thread
from typing import Final

from streamgauge.model.terms import Triple
from streamgauge.query.updates import UpdateOperation
from streamgauge.servers.broker.broker import Broker, Receipt
from streamgauge.servers.http.access import OPEN
from streamgauge.servers.http.retries import RetryKey

IDLE_S: Final = 0.5
"""After how long without publications what was put off is done, and acknowledgements become durable."""


class Worker:
    """Steps a broker in a thread of its own, from ``start`` until ``close``."""

    def __init__(self, broker: Broker) -> None:
        self._broker, self._come, self._ending = broker, Event(), False
        self._thread = Thread(target=self._work, name="streamgauge-broker", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def submit(
        self, added: tuple[Triple, ...], removed: tuple[Triple, ...], key: RetryKey | None, owner: str = OPEN
    ) -> "Future[Receipt]":
        """A publication waits for its turn; LimitError, BusyError, FailedError."""
        future = self._broker.submit(added, removed, key, owner)
        self._come.set()
        return future

    def modify(self, changes: Sequence[UpdateOperation], key: RetryKey | None, owner: str = OPEN) -> "Future[Receipt]":
        """A SPARQL Update waits for its turn; BusyError, FailedError."""
        future = self._broker.modify(changes, key, owner)
        self._come.set()
        return future

    def close(self) -> None:
        """Take in what waits, and end."""
        self._ending = True
        self._come.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _work(self) -> None:
        while not self._ending:
            if self._come.wait(IDLE_S):
                self._come.clear()
                self._step()
            else:
                self._rest()
        self._step()

    def _step(self) -> None:
        """Take in what waits; who waits is told what fails, and from then on its fault."""
        with suppress(Exception):
            while self._broker.step():
                pass
        while self._broker.fault and self._broker.step():
            pass

    def _rest(self) -> None:
        if not self._broker.fault:
            with suppress(Exception):  # it is the broker's fault from then on
                self._broker.evaluate()
