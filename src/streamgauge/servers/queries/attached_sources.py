"""Sources that feed streams of the service: a thread each, only from where the service was told to allow them."""

import time
from collections.abc import Callable, Sequence
from threading import Event, RLock, Thread

from streamgauge.formats.lines import Input
from streamgauge.formats.streams import Reading
from streamgauge.servers.queries.limits import QueriesBusyError
from streamgauge.servers.queries.registry import ConflictError, Queries
from streamgauge.sources import Source, SourceError, open_source
from streamgauge.sources.contract import parse_address

BATCH = 500
WAIT_S = 0.05
LEAVE_S = 5.0


class AttachError(PermissionError):
    """A source that the service was not told to allow."""


class Attached:
    """The attached sources by their streams; ``allowed`` are URLs: a source lies at one or below it. Thread-safe."""

    def __init__(
        self,
        queries: Queries,
        allowed: Sequence[str],
        open_: Callable[[str, Reading], Source] = open_source,
    ) -> None:
        self._queries, self._allowed, self._open = queries, tuple(allowed), open_
        self._lock = RLock()
        self._feeding: dict[str, _Feeding] = {}

    def attach(self, stream: str, url: str) -> None:
        """Feed a stream from a source. AttachError, ConflictError or SourceError say why not."""
        if not any(_below(url, one) for one in self._allowed):
            raise AttachError(
                f"{parse_address(url).text}: sources there are not allowed: start the service with --attach"
            )
        with self._lock:
            running = self._feeding.get(stream)
            if running is not None and not running.ended:
                raise ConflictError(f"<{stream}> is fed from {running.url}: detach it first")
            source = self._open(url, Reading(stream=stream, lateness=_ANY_LATENESS))
            self._feeding[stream] = _Feeding(self._queries, stream, url, source)

    def detach(self, stream: str) -> None:
        """Let the source of a stream go; ConflictError when it has none."""
        with self._lock:
            running = self._feeding.pop(stream, None)
        if running is None:
            raise ConflictError(f"<{stream}> has no source attached")
        running.close()

    def status(self) -> dict[str, dict[str, object]]:
        """Stream -> its source, whether it has ended, and why."""
        with self._lock:
            return {stream: running.status() for stream, running in self._feeding.items()}

    def close(self) -> None:
        """Let all sources go."""
        with self._lock:
            feeding, self._feeding = list(self._feeding.values()), {}
        for running in feeding:
            running.close()


_ANY_LATENESS = 2**53
"""Lateness is judged by each query, not by the reader."""


def _below(url: str, allowed: str) -> bool:
    """Whether a URL is the allowed one or lies below it: same scheme, user, host and port, path in its folder."""
    asked, known = parse_address(url), parse_address(allowed)
    same = (asked.scheme, asked.host, asked.port, asked.user) == (known.scheme, known.host, known.port, known.user)
    if not same or ".." in asked.path.split("/"):
        return False
    return asked.path == known.path or asked.path.startswith(known.path.rstrip("/") + "/")


class _Feeding:
    """A source on its way into a stream; its thread waits while queries cannot keep up."""

    def __init__(self, queries: Queries, stream: str, url: str, source: Source) -> None:
        self.url, self.ended, self.fault = parse_address(url).text, False, ""
        self._queries, self._stream, self._source, self._leaving = queries, stream, source, Event()
        self._thread = Thread(target=self._run, name="streamgauge-attached", daemon=True)
        self._thread.start()

    def status(self) -> dict[str, object]:
        """The source's identity and state."""
        found: dict[str, object] = {"source": self.url, "ended": self.ended, "refused": self._source.refused}
        return found | ({"fault": self.fault} if self.fault else {})

    def close(self) -> None:
        """Stop."""
        self._leaving.set()
        self._source.close()
        self._thread.join(LEAVE_S)

    def _run(self) -> None:
        try:
            batch: list[Input] = []
            began = time.monotonic()
            for item in self._source.items():
                batch.append(item)
                if len(batch) >= BATCH or time.monotonic() - began > WAIT_S:
                    self._publish(batch)
                    batch, began = [], time.monotonic()
            self._publish(batch)
        except (SourceError, ConflictError, ValueError) as error:
            self.fault = str(error)
        finally:
            self.ended = True

    def _publish(self, batch: Sequence[Input]) -> None:
        while batch and not self._leaving.is_set():
            try:
                self._queries.publish(self._stream, batch)
            except QueriesBusyError:
                self._leaving.wait(WAIT_S)
            else:
                return
