"""Reconnection of a subscription to a broker: when to retry and when to give up; errors of a broker."""

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
"""Default time for which a broker may be unreachable."""

BUSY: Final = TRANSIENT
"""Statuses of a broker, or of a proxy in front of it, that ask to retry."""

_LOG: Final = logging.getLogger(__name__)

Tell: TypeAlias = Callable[[str, float], None]
"""Called before every reconnection with the reason and the delay (s)."""


class BrokerError(MistakeError, RuntimeError):
    """A refusal, or an unintelligible response; ``status`` is HTTP's, 0 without one.

    ``after`` are the seconds of Retry-After, if the broker sent it.
    """

    def __init__(self, sentence: str, status: int = 0, after: float | None = None) -> None:
        super().__init__(sentence)
        self.status, self.after = status, after


class AwayError(BrokerError):
    """A broker that does not respond."""


def log(why: str, wait: float) -> None:
    """Log a reconnection as a warning of ``streamgauge.servers.broker.reconnection``."""
    _LOG.warning("%s: trying again in %.1f s", why, wait)


@dataclass(slots=True)
class Reconnection:
    """The retries of one subscription: after 0.1, 0.2, .. 10 s with jitter, or as Retry-After asks.

    ``steady`` is a monotonic clock in seconds; AwayError after ``patience`` seconds of silence.
    """

    url: str
    backoff: Backoff
    patience: float = PATIENCE_S
    tell: Tell = log
    steady: Callable[[], float] = time.monotonic
    _since: float | None = None
    _heard: bool = False

    def heard(self) -> None:
        """Record that data arrived: start the backoff and the patience again."""
        self.backoff.reset()
        self._since, self._heard = None, True

    def after(self, error: httpx.HTTPError | httpx.InvalidURL | BrokerError) -> float:
        """The delay (s) after a failed request; BrokerError for a permanent failure, AwayError after ``patience``."""
        why = permanent_failure(error)
        if why:
            raise BrokerError(f"{self.url}: {why}") from error
        # A name that has worked once is a passing failure of DNS; one that never has is a typing mistake.
        if not self._heard and unknown_host(error):
            raise AwayError(f"{self.url}: {error}: name a host that is there") from error
        return self._wait(obstacle(error).partition(": is it")[0], getattr(error, "after", None))

    def busy(self, response: httpx.Response) -> float:
        """The delay (s) after a response that asks to retry, or after one that ended."""
        if response.is_success:
            return self._wait("the connection ended", None)
        return self._wait(f"answers {response.status_code}", retry_after(response.headers, int(1000 * time.time())))

    def _wait(self, why: str, seconds: float | None) -> float:
        now = self.steady()
        # From the first failure after data arrived.
        self._since = now if self._since is None else self._since
        # Retry-After may lengthen the wait; a server that asks for 0 s does not switch the backoff off.
        wait = max(self.backoff.next(), seconds or 0.0)
        where = why if self.url in why else f"{self.url}: {why}"
        away = now - self._since
        # Given up before the wait and not after it: nobody is helped by sleeping first.
        if away + wait > self.patience:
            message = f" and asks to come again in {seconds:g} s" if seconds else ""
            raise AwayError(f"{where}{message}: given up after {away:.0f} s, as patience is {self.patience:g} s")
        self.tell(where, wait)
        return wait
