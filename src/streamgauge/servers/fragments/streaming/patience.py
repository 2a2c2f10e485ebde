"""Polls that fail: which are tried again, when, and for how long; the rest end a watch."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from streamgauge.servers.fragments.fetching.contract import (
    HopelessError,
    SourceError,
    StatusError,
    UnavailableError,
    UnknownHostError,
)
from streamgauge.servers.fragments.fetching.reach import RefusedError
from streamgauge.servers.fragments.labelling import LabelError
from streamgauge.servers.http.failures import permanent_status
from streamgauge.sources.backoff import Backoff

PATIENCE: Final = 600_000
"""How long polls may fail without one that succeeds (ms), unless told otherwise."""


class GaveUpError(SourceError):
    """A watch whose polls failed for longer than its patience; the sentence says why the last one did."""


@dataclass(slots=True)
class Patience:
    """What is done about failed polls; ``clock`` in ms, ``longest`` is how long they may fail (ms, ``None``: for ever).

    Before the first poll that succeeds only a source that does not answer is waited for: all else is a mistake in what
    was asked for. Later also one that sends what cannot be read.
    """

    backoff: Backoff
    clock: Callable[[], int]
    longest: int | None = PATIENCE
    worked: bool = False
    since: int | None = None

    def success(self) -> None:
        """A poll succeeded."""
        self.backoff.reset()
        self.worked, self.since = True, None

    def wait(self, error: SourceError | LabelError) -> float:
        """The seconds until the next try; the error itself when no try mends it, GaveUpError when it is enough."""
        if isinstance(error, SourceError) and self._permanent(error):
            raise error
        now = self.clock()
        self.since = now if self.since is None else self.since
        asked = error.after if isinstance(error, UnavailableError) else None
        wait = max(self.backoff.next(), asked or 0.0)
        if self.longest is not None and now - self.since + wait * 1000 > self.longest:
            address = error.address if isinstance(error, SourceError) else "what was read"
            why = str(error).removeprefix(f"{address}: ")
            told = f" and asks to come again in {asked:g} s" if asked else ""
            raise GaveUpError(address, f"{why}{told}: given up, as --patience is {self.longest / 1000:g} s")
        return wait

    def _permanent(self, error: SourceError) -> bool:
        if isinstance(error, StatusError):
            return permanent_status(error.status)
        if isinstance(error, RefusedError | HopelessError):
            return True
        return not self.worked and (isinstance(error, UnknownHostError) or not isinstance(error, UnavailableError))
