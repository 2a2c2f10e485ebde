"""When a subscription of a broker is begun again, and when it is given up; how a broker refuses."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

import httpx

from streamgauge.model.mistake import MistakeError, obstacle
from streamgauge.outgoing.failures import TRANSIENT, permanent_failure, unknown_host
from streamgauge.servers.http.headers import retry_after
from streamgauge.sources.backoff import Backoff

PATIENCE_S: Final = 600.0
"""For how long a broker may be away, unless told otherwise."""

BUSY: Final = TRANSIENT
"""Statuses of a broker, or of a proxy before it, that says to come again."""

_LOG: Final = logging.getLogger(__name__)

Tell: TypeAlias = Callable[[str, float], None]
"""Is told each time why a connection is made again, and in how many seconds."""


class BrokerError(MistakeError, RuntimeError):
    """A broker refused, or what it says is not understood; ``status`` is HTTP's, 0 without one.

    ``after`` is in how many seconds to come again, where the broker says so.
    """

    def __init__(self, sentence: str, status: int = 0, after: float | None = None) -> None:
        super().__init__(sentence)
        self.status, self.after = status, after


class AwayError(BrokerError):
    """Nobody answers."""


def log(why: str, wait: float) -> None:
    """Say it in the log ``streamgauge.servers.broker.reconnection``."""
    _LOG.warning("%s: trying again in %.1f s", why, wait)


@dataclass(slots=True)
class Reconnection:
    """The tries of one subscription: after 0.1, 0.2, .. 10 s, each between half and all, or as Retry-After asks.

    ``steady`` is a clock in seconds that never goes back; after ``patience`` seconds without a word AwayError ends it.
    """

    url: str
    backoff: Backoff
    patience: float = PATIENCE_S
    tell: Tell = log
    steady: Callable[[], float] = time.monotonic
    _since: float | None = None
    _heard: bool = False

    def heard(self) -> None:
        """The broker said something."""
        self.backoff.reset()
        self._since, self._heard = None, True

    def after(self, error: httpx.HTTPError | httpx.InvalidURL | BrokerError) -> float:
        """The seconds to wait after a failure; BrokerError when no try mends it, AwayError when it is enough."""
        why = permanent_failure(error)
        if why:
            raise BrokerError(f"{self.url}: {why}") from error
        if not self._heard and unknown_host(error):
            raise AwayError(f"{self.url}: {error}: name a host that is there") from error
        return self._wait(obstacle(error).partition(": is it")[0], getattr(error, "after", None))

    def busy(self, response: httpx.Response) -> float:
        """The seconds to wait after an answer that says to come again, or after one that ended."""
        if response.is_success:
            return self._wait("the connection ended", None)
        return self._wait(f"answers {response.status_code}", retry_after(response.headers, int(1000 * time.time())))

    def _wait(self, why: str, seconds: float | None) -> float:
        now = self.steady()
        self._since = now if self._since is None else self._since
        wait = max(self.backoff.next(), seconds or 0.0)
        where = why if self.url in why else f"{self.url}: {why}"
        away = now - self._since
        if away + wait > self.patience:
            message = f" and asks to come again in {seconds:g} s" if seconds else ""
            raise AwayError(f"{where}{message}: given up after {away:.0f} s, as patience is {self.patience:g} s")
        self.tell(where, wait)
        return wait
