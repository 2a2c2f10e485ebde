"""How far the stream of a run has been fed, told each second while the run goes on."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from streamgauge.formats.stream import Written

Tell = Callable[[str, float], object]

EVERY_S: Final = 1.0
"""Seconds between two words about a run."""

FEEDING: Final = 0.9
"""The share of a run that feeding has; its last answers and the verdict have the rest."""


class FedSoFar:
    """A stream that is being fed, and where it is; ``begin`` and ``end`` of its time in ms.

    The feeder's thread only notes the element that it takes, so that no word delays an element.
    """

    def __init__(self, stream: Iterator[Written], begin: int, end: int) -> None:
        self._stream, self._begin, self._end = stream, begin, end
        self._last: Written | None = None
        self._over = False

    def __iter__(self) -> Iterator[Written]:
        for each in self._stream:
            self._last = each
            yield each
        self._over = True

    def place(self) -> tuple[str, float]:
        """Where it is in words, and as a share of the run from 0 to 1.

        Example: ``("fed to 12 s of 60 s, element 1,200", 0.18)``.
        """
        last, span = self._last, self._end - self._begin
        if self._over:
            return "all is fed, the engine is at its last answers", FEEDING
        if last is None:
            return "the engine gets ready", 0.0
        if span <= 0:
            return f"fed to element {last.sequence + 1:,}", 0.0
        come = min(max(0, last.time - self._begin), span)
        return f"fed to {_seconds(come)} of {_seconds(span)}, element {last.sequence + 1:,}", FEEDING * come / span


def _seconds(ms: int) -> str:
    return f"{ms / 1000:,.0f} s" if ms >= 10_000 or ms % 1000 == 0 else f"{ms / 1000:.1f} s"


@contextmanager
def told(fed: FedSoFar, tell: Tell, every: float = EVERY_S) -> Iterator[Iterator[Written]]:
    """The stream, of which another thread tells where it is, every so many seconds."""
    ended = threading.Event()
    thread = threading.Thread(target=_tell, args=(fed, tell, every, ended), daemon=True, name="fed")
    thread.start()
    try:
        yield iter(fed)
    finally:
        ended.set()
        thread.join()


def _tell(fed: FedSoFar, tell: Tell, every: float, ended: threading.Event) -> None:
    while not ended.wait(every):
        tell(*fed.place())
